//! Uptake makes a Secret change reach the running pod, and proves that it did.
//!
//! Data flows one way, and the modules are its rooms in order:
//!
//! ```text
//! watch  -> catalog -> agenda -> decide -> rollout -> record
//! (API     (who uses   (who is   (pure:    (stamp,    (Events,
//!  streams) what)       looked    facts ->  follow to  metrics,
//!           ledger      at next)  Decision) the end)   reports)
//! ```
//!
//! | room | owns | does I/O |
//! | --- | --- | --- |
//! | [`facts`] | names, versions, times: the words every room speaks | no |
//! | [`watch`] | API streams turned into facts; Secret values are hashed and dropped here | yes |
//! | [`catalog`] | which workload consumes which Secret, and under which policy | no |
//! | [`ledger`] | what survives a crash: histories of values as digests, marks of workloads | no |
//! | [`agenda`] | when a workload is looked at: settling, backoff, slots | no |
//! | [`decide`] | facts in, decision with its reason out | no |
//! | [`rollout`] | the stamp, and what a rollout's status says of its end | no |
//! | [`engine`] | the state machine that joins the rooms: inputs in, API calls out | no |
//! | [`cluster`] | performs the engine's API calls | yes |
//! | [`leader`] | which of several replicas may write, and until when | yes |
//! | [`record`] | Events, metrics, logs | yes |
//! | [`cli`] | the verbs that people call, with or without an operator in the cluster | yes |
//!
//! Around the rooms: [`args`] is what the user typed, [`config`] what it means, [`operator`] starts and joins everything,
//! [`server`] shows metrics and probes, [`probe`] asks for them.
//!
//! The engine has no client, no clock and no randomness: the operator and the simulation drive the same code.

pub mod agenda;
pub mod args;
pub mod catalog;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod decide;
pub mod engine;
pub mod facts;
pub mod leader;
pub mod ledger;
pub mod operator;
pub mod probe;
pub mod record;
pub mod rollout;
pub mod server;
pub mod watch;
