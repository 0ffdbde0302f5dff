//! What cluster tests and the demo stand on: a real control plane, a node agent, the operator as a process.
//!
//! ```ignore
//! #[path = "../support/mod.rs"]
//! mod support;
//! use support::{cluster::Cluster, objects::Namespace, operator::{Install, Operator}, wait::eventually, workload::{Via, Workload}};
//!
//! #[tokio::test]
//! async fn a_changed_secret_rolls_its_consumer() {
//!     let cluster = Cluster::shared().await;              // one for the whole test process
//!     let ns = Namespace::create(cluster, "roll").await;   // removed when `ns` is dropped
//!     ns.set_secret("db", &[("password", "one")]).await;
//!     let web = Workload::deployment("web").consumes(Via::env("db", "password"));
//!     ns.run(&web).await;                                  // created, and its pods are ready
//!     let install = Install::for_namespaces(cluster, &[&ns.name]).await;
//!     let operator = Operator::start(cluster, &install);   // killed when dropped; start again: same identity
//!     operator.wait_ready(Duration::from_secs(10)).await;
//!     ns.set_secret("db", &[("password", "two")]).await;
//!     eventually(Duration::from_secs(20), || async {
//!         let values = ns.values_in_pods(&web, "db/password").await;   // what the processes really hold
//!         if values == ["two"] { Ok(()) } else { Err(format!("{values:?}")) }
//!     })
//!     .await;
//!     assert_eq!(ns.revisions(&web).await, 2);
//! }
//! ```
//!
//! Everything is real but the containers: etcd, kube-apiserver, the controller manager, the scheduler and kwok
//! (nodes and their leases, deletion of pods) run as processes; `cluster::kubelet` plays the rest of a kubelet,
//! holding pods back whose Secret or key is missing. Annotations on a pod template choose a pod's behaviour:
//! see [`cluster::kubelet::behaviour`].
//!
//! What else a test may do: `proxy` puts faults between the operator and the API server, `webhook` has a say in
//! admission, `Cluster::audit` tells who asked for what, `Cluster::{stop_api_server, compact_etcd, back_up, restore}`
//! break the control plane, `Cluster::user` and `grant` make somebody with few rights.
//!
//! Tests share one cluster and keep apart by namespace and by user. A test that stops a component, restores a
//! backup or needs other options boots its own with `Cluster::start`.
//!
//! Whatever ends the test process, `supervise.sh` ends the cluster. When a test panics, or with `KEEP_LOGS=1`, the
//! logs stay and their folder is printed.

// Each crate that includes this module uses a part of it, and a helper that can't go on fails its test.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod chart;
pub mod cluster;
pub mod http;
pub mod image;
pub mod objects;
pub mod operator;
pub mod proxy;
pub mod rules;
pub mod wait;
pub mod webhook;
pub mod workload;

/// What can go wrong while the stage is set; its text is all that anybody needs of it.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Error>;
