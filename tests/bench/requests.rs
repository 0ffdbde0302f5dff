//! What a user asked the API server for, by its audit log.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use crate::support::cluster::{
    Cluster, User,
    audit::{Audit, Entry},
};

/// Nobody asks for anything so long: what a change brings about is over.
const QUIET: Duration = Duration::from_secs(2);

/// Counts by verb and resource.
pub type Requests = BTreeMap<String, usize>;

pub struct Counter {
    audit: Audit,
    user: User,
}

impl Counter {
    pub fn new(cluster: &Cluster, user: &User) -> Self {
        Self { audit: cluster.audit_from_now(), user: user.clone() }
    }

    /// Since the last call, until nothing more comes.
    pub async fn read_all(&mut self) -> Requests {
        let mut all = Requests::new();
        loop {
            let more = counted(&self.read());
            if more.is_empty() {
                return all;
            }
            for (what, count) in more {
                *all.entry(what).or_default() += count;
            }
            tokio::time::sleep(QUIET).await;
        }
    }

    /// Since the last call, one by one. A watch counts when it begins.
    pub fn read(&mut self) -> Vec<Entry> {
        let mut entries = self.audit.read_of(&self.user);
        entries.retain(|entry| {
            entry.stage == if entry.verb == "watch" { "ResponseStarted" } else { "ResponseComplete" }
                && entry.resource != "leases"
        });
        entries
    }

    /// How many came from that moment on up to the patch of a template, which is one of them. Events tell of what was before.
    pub fn before_stamp(&mut self, since: Timestamp) -> usize {
        let entries = self.read();
        let stamp = entries.iter().find(|entry| entry.changed("deployments") && entry.received >= since);
        let Some(stamp) = stamp else { return 0 };
        entries
            .iter()
            .filter(|entry| entry.received >= since && entry.received <= stamp.received)
            .filter(|entry| entry.resource != "events")
            .count()
    }
}

fn counted(entries: &[Entry]) -> Requests {
    let mut requests = Requests::new();
    for entry in entries {
        *requests.entry(format!("{} {}", entry.verb, entry.resource)).or_default() += 1;
    }
    requests
}

pub fn sum(requests: &Requests) -> usize {
    requests.values().sum()
}
