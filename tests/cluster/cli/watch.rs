//! `status --watch`: a process that goes on until somebody has seen enough.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::{PATIENCE, Person};
use crate::stage::{ROLLED, reader};
use crate::support::cluster::Cluster;
use crate::support::objects::Namespace;
use crate::support::operator::program;
use crate::support::wait::eventually;

/// A watch, and what of it wasn't read yet.
struct Watch {
    child: Child,
    out: ChildStdout,
    unread: Vec<u8>,
}

impl Watch {
    fn start(person: &Person) -> Self {
        let mut command = Command::new(program());
        command
            .args(["status", "--watch", "-o", "json", "-n", &person.namespace])
            .env("KUBECONFIG", &person.kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let out = child.stdout.take().unwrap();
        Self { child, out, unread: Vec::new() }
    }

    /// The next report.
    async fn next(&mut self) -> Value {
        loop {
            let mut reports = serde_json::Deserializer::from_slice(&self.unread).into_iter();
            if let Some(Ok(report)) = reports.next() {
                let end = reports.byte_offset();
                self.unread.drain(..end);
                return report;
            }
            let read = self.out.read_buf(&mut self.unread).await.unwrap();
            assert!(read > 0, "it ended: {}", String::from_utf8_lossy(&self.unread));
        }
    }

    /// Reads on to a report that says so.
    async fn until(&mut self, what: &str, says: impl Fn(&Value) -> bool) {
        let read = async { while !says(&self.next().await) {} };
        timeout(PATIENCE, read).await.unwrap_or_else(|_| panic!("no report says: {what}"));
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id().expect("it runs")).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// How it ends.
    async fn ended(&mut self) -> Option<i32> {
        timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap().code()
    }
}

#[tokio::test]
async fn a_watch_shows_what_changes_until_somebody_has_seen_enough() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "watch").await;
    ns.set_secret("db", &[("password", "one")]).await;
    let web = &reader("web");
    ns.run(web).await;
    let person = Person::admin(cluster, ns);
    let mut watch = Watch::start(&person);
    watch.until("one pod is fresh", |report| report["summary"]["fresh"] == 1).await;
    eventually(ROLLED, || async {
        let births = ns.pods(web).await.into_iter().filter_map(|pod| pod.metadata.creation_timestamp);
        let aged = births.map(|birth| birth.0 + std::time::Duration::from_secs(4));
        let young = aged.into_iter().any(|aged| aged > jiff::Timestamp::now());
        (!young).then_some(()).ok_or("the pod is too young")
    })
    .await;
    ns.set_secret("db", &[("password", "two")]).await;
    watch.until("one pod is stale", |report| report["summary"]["probablyStale"] == 1).await;
    watch.signal(Signal::INT);
    assert_eq!(watch.ended().await, Some(0));

    let mut watch = Watch::start(&person);
    watch.next().await;
    watch.signal(Signal::TERM);
    assert_eq!(watch.ended().await, Some(0));

    let Watch { mut child, mut out, .. } = Watch::start(&person);
    assert!(out.read_u8().await.is_ok(), "it says something");
    drop(out);
    assert_eq!(timeout(PATIENCE, child.wait()).await.expect("it ends").unwrap().code(), Some(0));
}
