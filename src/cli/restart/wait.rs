//! Follows restarted workloads to their outcomes.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    follow::{Standing, detail, standing},
    perform::Stamped,
    report::{OutcomeReport, UNFINISHED},
};
use crate::{
    catalog::{Workload, read},
    cli::{Session, gather, output::Progress, scene::controllers},
    cluster,
    decide::{self, Owners, PodFacts},
    engine::Fault,
    facts::{Kind, Namespace, WorkloadId},
    rollout::Outcome,
};

/// How often it is looked.
const POLL: Duration = Duration::from_millis(500);
/// Workloads that are read at a time.
const READS_IN_FLIGHT: usize = 4;
/// How long a rollout may be unable to make pods before that is its outcome.
const STUCK: Duration = Duration::from_secs(30);

/// Waits until all have their outcome, or the deadline.
pub async fn wait(
    session: &Session,
    namespace: &Namespace,
    stamped: Vec<Stamped>,
    deadline: Instant,
) -> Vec<OutcomeReport> {
    let mut following: Vec<Following> = stamped.into_iter().map(Following::new).collect();
    let mut progress = Progress::new();
    loop {
        look(session, namespace, &mut following, &mut progress).await;
        let open = following.iter().filter(|one| one.outcome.is_none()).count();
        if open == 0 || Instant::now() >= deadline {
            break;
        }
        let waits = following.iter().find(|one| one.outcome.is_none());
        let waits =
            waits.map(|one| format!("{}: {}", name(&one.stamped.workload.id), one.waits)).unwrap_or_default();
        progress.show(&format!("{} of {} done; {waits}", following.len() - open, following.len()));
        sleep(POLL.min(deadline.saturating_duration_since(Instant::now()))).await;
    }
    progress.end();
    following.into_iter().map(Following::report).collect()
}

struct Following {
    stamped: Stamped,
    waits: String,
    stuck_since: Option<Instant>,
    outcome: Option<Outcome>,
}

impl Following {
    fn new(stamped: Stamped) -> Self {
        Self { stamped, waits: String::new(), stuck_since: None, outcome: None }
    }

    fn report(self) -> OutcomeReport {
        let WorkloadId { namespace, kind, name } = self.stamped.workload.id;
        let (outcome, detail) = match &self.outcome {
            Some(outcome) => (outcome.as_str(), detail(outcome)),
            None => (UNFINISHED, self.waits),
        };
        OutcomeReport { namespace, kind: kind.as_str().into(), name, outcome, detail }
    }
}

fn name(id: &WorkloadId) -> String {
    format!("{}/{}", id.kind, id.name)
}

async fn look(
    session: &Session,
    namespace: &Namespace,
    following: &mut [Following],
    progress: &mut Progress,
) {
    let open: Vec<usize> = following
        .iter()
        .enumerate()
        .filter(|(_, one)| one.outcome.is_none())
        .map(|(place, _)| place)
        .collect();
    let kinds: Vec<Kind> =
        open.iter().map(|&place| following[place].stamped.workload.id.kind.clone()).collect();
    let ids: Vec<(usize, WorkloadId)> =
        open.iter().map(|&place| (place, following[place].stamped.workload.id.clone())).collect();
    let reads = ids.into_iter().map(|(place, id)| async move { (place, get(session, &id).await) });
    let reads: Vec<_> = stream::iter(reads).buffered(READS_IN_FLIGHT).collect().await;
    let mut pods: Option<Result<Pods, Fault>> = None;
    for (place, now) in reads {
        let one = &mut following[place];
        let standing = match &now {
            Ok(now) => standing(&one.stamped, now.as_ref()),
            // It is asked again.
            Err(fault) => Standing::GoesOn(format!("it can't be read: {}", cluster::words(fault))),
        };
        one.outcome = match standing {
            Standing::GoesOn(waits) => {
                one.waits = waits;
                None
            }
            Standing::Ended(outcome) => Some(outcome),
            Standing::Stuck(block) => {
                let since = *one.stuck_since.get_or_insert_with(Instant::now);
                one.waits = block.to_string();
                (since.elapsed() >= STUCK).then_some(Outcome::Blocked(block))
            }
            Standing::Done => {
                if pods.is_none() {
                    pods = Some(Pods::list(session, namespace, &kinds).await);
                }
                prove(one, pods.as_ref())
            }
        };
        if let Some(outcome) = &one.outcome {
            progress.said(&format!("{} {}", name(&one.stamped.workload.id), outcome.as_str()));
        }
    }
}

/// The pods have the last word: no live one may be of before.
fn prove(one: &mut Following, pods: Option<&Result<Pods, Fault>>) -> Option<Outcome> {
    match pods {
        Some(Ok(pods)) => {
            let old = pods.without(&one.stamped);
            one.waits = format!("{old} pods of before still live");
            (old == 0).then_some(Outcome::Completed)
        }
        Some(Err(fault)) => {
            one.waits = format!("pods can't be listed: {}", cluster::words(fault));
            None
        }
        None => None,
    }
}

async fn get(session: &Session, id: &WorkloadId) -> Result<Option<Workload>, Fault> {
    let object: Value = match gather::workload(session, id).await {
        Err(Fault::NotFound) => return Ok(None),
        object => object?,
    };
    read::workload(&id.kind, &object, &gather::READ).map(Some).map_err(|_| cluster::undecodable())
}

struct Pods {
    pods: Vec<PodFacts>,
    owners: Owners,
}

impl Pods {
    async fn list(session: &Session, namespace: &Namespace, kinds: &[Kind]) -> Result<Self, Fault> {
        let (pods, owners) =
            futures::join!(gather::pods_of(session, namespace), gather::owners_of(session, namespace, kinds));
        Ok(Self { pods: pods?, owners: owners? })
    }

    /// The live pods of a workload that weren't born with its stamp.
    fn without(&self, stamped: &Stamped) -> usize {
        let is_of =
            |pod: &PodFacts| controllers(pod, &self.owners).any(|owner| owner.uid == stamped.workload.uid);
        let live = self.pods.iter().filter(|pod| decide::is_live(pod) && is_of(pod));
        live.filter(|pod| pod.stamp.as_deref() != Some(&stamped.stamp)).count()
    }
}
