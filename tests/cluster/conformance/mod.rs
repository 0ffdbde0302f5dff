//! The simulation's API server is held to the real one: the script in `agreed`, run here against the real one. The
//! simulation runs it against its own before its first history.

use std::{collections::BTreeSet, time::Duration};

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::json;
use uptake::{
    catalog::{ReadOptions, Selection},
    cluster::{Api, Connection, Meter, Performer, PerformerConfig, ServerClock, between, connect},
    engine::{Answer, Call, Fault},
    facts::{Kind, Name, SecretId, Time, Uid, Version, WorkloadId},
    ledger::{DigestKey, HEAD},
    record::Metrics,
};

use crate::{
    stage::{ROLLED, reader},
    support::{
        cluster::{Cluster, Options},
        objects::Namespace,
        wait::eventually,
        workload::{self, Via, Workload},
    },
};

mod agreed;

use agreed::{Over, SCRIPT, Sort, Step, WATCHED, birth};

struct Run<'a> {
    cluster: &'a Cluster,
    ns: Namespace<'a>,
    performer: Performer,
    workload: Workload,
    /// The ledger object's versions, and the highest of all.
    ledger: [u64; 2],
    seen: u64,
    time: Option<Time>,
    marks: Vec<(u64, BTreeSet<Uid>)>,
    changes: u32,
}

#[tokio::test]
async fn the_real_api_server_answers_as_agreed_with_the_simulated_one() {
    // Its own: it is compacted.
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let mut run = Run::begin(&cluster).await;
    let from = run.version_of_secrets().await;
    let mut wrong = Vec::new();
    for (number, (step, agreed)) in SCRIPT.iter().enumerate() {
        if matches!(step, Step::Compact) {
            let watched = run.watched(&from).await;
            if watched != WATCHED {
                wrong.push(format!("the watch delivers {watched:?}"));
            }
        }
        let answer = run.take(*step).await;
        if answer != *agreed {
            wrong.push(format!("step {number}, {step:?}: {answer}, and {agreed} was agreed"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

impl<'a> Run<'a> {
    async fn begin(cluster: &'a Cluster) -> Self {
        let ns = Namespace::create(cluster, "conformance").await;
        let kubeconfig = Some(cluster.kubeconfig(&cluster.admin()));
        let requests = Metrics::new().expect("metrics").requests();
        let meter = Meter { requests, clock: ServerClock::new() };
        let connected = connect(&Connection { kubeconfig, context: None }, &meter).await.expect("a client");
        let performer = Performer::new(
            Api::new(connected.client),
            PerformerConfig {
                own_namespace: Name::from(ns.name.as_str()),
                namespaces: Vec::new(),
                instance: "conformance".to_owned(),
                digest_key: DigestKey::new([7; 32]),
                read: ReadOptions { roll_volumes: true },
                between: between(&[]),
            },
        );
        let workload = reader("web");
        Self {
            cluster,
            ns,
            performer,
            workload,
            ledger: [0; 2],
            seen: 0,
            time: None,
            marks: Vec::new(),
            changes: 0,
        }
    }

    fn newer(&mut self, version: u64) -> String {
        let newer = version > self.seen;
        self.seen = self.seen.max(version);
        if newer { "newer" } else { "same" }.to_owned()
    }

    async fn take(&mut self, step: Step) -> String {
        match step {
            Step::Write(body, over) => {
                let call =
                    Call::WriteLedger { name: HEAD.to_owned(), over: self.over(over), body: body.into() };
                let Answer::Written(result) = self.performer.perform(call).await else {
                    return "?".to_owned();
                };
                match result {
                    Ok(version) => {
                        if self.ledger[1] != version.0 {
                            self.ledger = [self.ledger[1], version.0];
                        }
                        self.newer(version.0)
                    }
                    Err(fault) => word(&fault),
                }
            }
            Step::Erase(over) => {
                let over = self.over(over).unwrap_or_default();
                match self.performer.perform(Call::DeleteLedger { name: HEAD.to_owned(), over }).await {
                    Answer::Done(Ok(())) => "done".to_owned(),
                    Answer::Done(Err(fault)) => word(&fault),
                    _ => "?".to_owned(),
                }
            }
            Step::CreateSecret => {
                let secret = self.ns.set_secret("db", &[("password", "one")]).await;
                self.newer(version(&secret))
            }
            Step::ChangeSecret => {
                let version = self.change_secret().await;
                self.newer(version)
            }
            Step::LabelSecret => {
                let patch = json!({ "metadata": { "labels": { "turn": "next" } } });
                let secret =
                    self.ns.merge_secret("db", &patch, "another").await.expect("the Secret is there");
                self.newer(version(&secret))
            }
            Step::DeleteSecret => {
                self.ns.delete_secret("db").await;
                "done".to_owned()
            }
            Step::ReadTime => self.read_time().await,
            Step::CreateWorkload(sort) => {
                self.workload = match sort {
                    Sort::Deployment => reader("web"),
                    Sort::StatefulSet => Workload::stateful_set("store").consumes(Via::env("db", "password")),
                    Sort::DaemonSet => Workload::daemon_set("agent").consumes(Via::env("db", "password")),
                };
                self.ns.create_workload(&self.workload).await;
                self.ns.wait_rolled_out_within(ROLLED, &self.workload).await;
                "done".to_owned()
            }
            Step::EditTemplate => self.edit_template().await,
            Step::ReadWriter => self.read_writer().await,
            Step::Born => self.born().await,
            Step::Stamp(stamp, over) => self.stamp(stamp, over).await,
            Step::Mark => {
                // Of a rollout all pods but the new one are gone then.
                self.ns.wait_rolled_out_within(ROLLED, &self.workload).await;
                let there = self.one_pod(None).await;
                let version = self.change_secret().await;
                self.marks.push((version, BTreeSet::from([there])));
                self.newer(version)
            }
            Step::PodsAt(mark) => self.pods_at(self.marks[mark].0).await,
            Step::PodsAtFuture => self.pods_at(self.seen + 1_000_000).await,
            Step::ReplacePod => self.replace_pod().await,
            Step::Compact => {
                self.cluster.compact_etcd().await.expect("etcd can be compacted");
                self.cluster.stop_api_server();
                self.cluster.start_api_server().await.expect("the API server comes back");
                eventually(ROLLED, || async {
                    match self.performer.perform(Call::ListLedger).await {
                        Answer::Ledger(Ok(_)) => Ok(()),
                        other => Err(format!("{other:?}")),
                    }
                })
                .await;
                "done".to_owned()
            }
        }
    }

    fn over(&self, over: Over) -> Option<Version> {
        match over {
            Over::Nothing => None,
            Over::Current | Over::Stranger => Some(Version(self.ledger[1])),
            Over::Earlier => Some(Version(self.ledger[0])),
        }
    }

    async fn change_secret(&mut self) -> u64 {
        self.changes += 1;
        version(&self.ns.set_secret("db", &[("password", &format!("value {}", self.changes))]).await)
    }

    async fn read_time(&mut self) -> String {
        let id = SecretId { namespace: self.ns.name.as_str().into(), name: "db".into() };
        let Answer::Secret(Ok(found)) = self.performer.perform(Call::GetSecret(id)).await else {
            return "?".to_owned();
        };
        let Some(facts) = found else { return "not found".to_owned() };
        let time = facts.keys[0].written;
        match self.time.replace(time.unwrap_or_default()) {
            None => "first".to_owned(),
            before if before == time => "same".to_owned(),
            _ => "another".to_owned(),
        }
    }

    fn id(&self) -> WorkloadId {
        let kind = match self.workload.kind {
            workload::Kind::Deployment => Kind::Deployment,
            workload::Kind::StatefulSet => Kind::StatefulSet,
            workload::Kind::DaemonSet => Kind::DaemonSet,
        };
        WorkloadId::new(kind, self.ns.name.as_str(), self.workload.name.as_str())
    }

    async fn edit_template(&mut self) -> String {
        // Entries of one second are in the order of their managers' names.
        let parameters = PatchParams { field_manager: Some("zoe".into()), ..PatchParams::default() };
        let patch = json!({ "spec": { "template": { "metadata": { "annotations": { "edited": "yes" } } } } });
        let api = self.ns.workloads(self.workload.kind);
        let patched = api.patch(&self.workload.name, &parameters, &Patch::Merge(&patch)).await;
        let version = patched.expect("a template can be edited").metadata.resource_version;
        self.newer(version.and_then(|version| version.parse().ok()).expect("a version"))
    }

    async fn read_writer(&self) -> String {
        let Answer::Workload(Ok(workload)) = self.performer.perform(Call::GetWorkload(self.id())).await
        else {
            return "?".to_owned();
        };
        match workload.last_writer.as_deref() {
            Some("test") => "its maker",
            Some("zoe") => "another",
            other => other.unwrap_or("nobody"),
        }
        .to_owned()
    }

    async fn born(&self) -> String {
        self.ns.wait_rolled_out_within(ROLLED, &self.workload).await;
        let Answer::Workload(Ok(workload)) = self.performer.perform(Call::GetWorkload(self.id())).await
        else {
            return "?".to_owned();
        };
        let namespace = || Name::from(self.ns.name.as_str());
        let only = Selection::of([&workload.selector]);
        let listed = self.performer.perform(Call::ListPods(namespace(), only.clone())).await;
        let Answer::Pods(Ok(pods)) = listed else {
            return "?".to_owned();
        };
        let Answer::Owners(Ok(sets)) = self.performer.perform(Call::ListReplicaSets(namespace(), only)).await
        else {
            return "?".to_owned();
        };
        let births = pods.iter().filter(|pod| !pod.deleting).filter_map(|pod| {
            let owner = pod.owner.as_ref()?;
            let above = sets.get(&owner.uid).and_then(|above| above.as_ref());
            let is = if owner.uid == workload.uid && *owner.kind == *workload.id.kind.as_str() {
                "it".to_owned()
            } else if above.is_some_and(|above| above.uid == workload.uid) {
                format!("a {} of it", owner.kind)
            } else {
                return None;
            };
            Some(birth(&is, pod.stamp.as_deref()))
        });
        births.collect::<BTreeSet<String>>().into_iter().collect::<Vec<_>>().join("; ")
    }

    /// A busy Deployment changes between a look and a write: then both are repeated.
    async fn stamp(&mut self, stamp: &str, over: Over) -> String {
        let id = self.id();
        let answer = eventually(ROLLED, || async {
            let found = self.performer.perform(Call::GetWorkload(id.clone())).await;
            let (uid, current) = match found {
                Answer::Workload(Ok(workload)) => (workload.uid, workload.version),
                _ => (Uid(1), Version(1)),
            };
            let (uid, written) = match over {
                Over::Earlier => (uid, Version(current.0 - 1)),
                Over::Stranger => (Uid(1), current),
                Over::Nothing | Over::Current => (uid, current),
            };
            let call = Call::Stamp { id: id.clone(), uid, over: written, stamp: stamp.to_owned() };
            match self.performer.perform(call).await {
                Answer::Workload(Ok(workload)) => Ok(Ok((current, workload.version))),
                Answer::Workload(Err(Fault::Conflict)) if over == Over::Current => {
                    Err("a conflict".to_owned())
                }
                Answer::Workload(Err(fault)) => Ok(Err(word(&fault))),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        match answer {
            Ok((before, after)) if before == after => "same".to_owned(),
            Ok((_, after)) => {
                self.seen = self.seen.max(after.0);
                "newer".to_owned()
            }
            Err(word) => word,
        }
    }

    /// The only pod that is there, another than that one.
    async fn one_pod(&self, but: Option<Uid>) -> Uid {
        eventually(ROLLED, || async {
            let pods = self.ns.pods(&self.workload).await;
            match &pods[..] {
                [pod] if pod.metadata.deletion_timestamp.is_none() && Some(uid(pod)) != but => Ok(uid(pod)),
                _ => Err(format!("{} pods", pods.len())),
            }
        })
        .await
    }

    async fn replace_pod(&self) -> String {
        let there = self.one_pod(None).await;
        let pods = self.ns.pods(&self.workload).await;
        let name = pods[0].metadata.name.clone().unwrap_or_default();
        self.ns.api::<Pod>().delete(&name, &DeleteParams::default()).await.expect("a pod can be deleted");
        self.one_pod(Some(there)).await;
        "done".to_owned()
    }

    async fn pods_at(&self, version: u64) -> String {
        let call = Call::ListPodsAt(self.ns.name.as_str().into(), Version(version));
        match self.performer.perform(call).await {
            Answer::PodUids(Ok(uids)) => {
                let there: BTreeSet<Uid> = uids.into_iter().collect();
                if there == self.marks[0].1 { "these" } else { "others" }.to_owned()
            }
            Answer::PodUids(Err(fault)) => word(&fault),
            _ => "?".to_owned(),
        }
    }

    async fn version_of_secrets(&self) -> String {
        let list = self.ns.api::<Secret>().list(&kube::api::ListParams::default()).await.expect("a list");
        list.metadata.resource_version.expect("a version")
    }

    /// What a watch from there delivers of the Secret, as far as it was agreed, with rising versions, and that it says how
    /// far it is before it ends.
    async fn watched(&self, from: &str) -> Vec<&'static str> {
        eventually(ROLLED, || async {
            let api = self.ns.api::<Secret>();
            // A bookmark comes two seconds before the end; a busy API server may not get to it.
            let parameters = WatchParams::default().fields("metadata.name=db").timeout(8);
            let events = api.watch(&parameters, from).await.map_err(|error| error.to_string())?;
            let events = tokio::time::timeout(Duration::from_secs(30), events.try_collect::<Vec<_>>()).await;
            let events = events.map_err(|_| "it doesn't end")?.map_err(|error| error.to_string())?;
            let mut before = 0;
            let mut seen = Vec::new();
            for event in events {
                let (word, secret) = match event {
                    WatchEvent::Added(secret) | WatchEvent::Modified(secret) => ("applied", secret),
                    WatchEvent::Deleted(secret) => ("deleted", secret),
                    WatchEvent::Bookmark(mark) => {
                        let at = mark.metadata.resource_version.parse::<u64>().expect("a version");
                        assert!(at >= before, "a bookmark at {at} after {before}");
                        return Ok(seen);
                    }
                    WatchEvent::Error(error) => panic!("{error:?}"),
                };
                assert!(version(&secret) > before, "{word} at {} after {before}", version(&secret));
                before = version(&secret);
                if seen.len() < WATCHED.len() {
                    seen.push(word);
                }
            }
            Err("it ended without a bookmark".to_owned())
        })
        .await
    }
}

fn version(secret: &Secret) -> u64 {
    secret.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).expect("a version")
}

fn uid(pod: &Pod) -> Uid {
    Uid::parse(pod.metadata.uid.as_deref().expect("a uid"))
}

fn word(fault: &Fault) -> String {
    match fault {
        Fault::NotFound => "not found",
        Fault::Conflict => "conflict",
        Fault::Forbidden(_) => "forbidden",
        Fault::Refused(_) => "refused",
        Fault::Expired => "expired",
        Fault::Throttled => "throttled",
        Fault::Unknown(_) => "unknown",
    }
    .to_owned()
}
