//! Which of a workload's live pods are stale.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    PodFacts,
    births::{Birth, Births, FAR, Holds, holds_value},
};
use crate::{
    catalog::reference::{Containers, Reference},
    facts::{Name, Time, Uid, Version},
    ledger::{History, Marks, Since, Value, Versions},
    rollout::Stamp,
};

/// One consumed value: a part of a Secret that a reference names.
#[derive(Clone, Copy, Debug)]
pub struct Consumed<'a> {
    /// The reference.
    pub reference: &'a Reference,
    /// The value's history.
    pub history: &'a History,
    /// Nothing after this version counts; none if everything does.
    pub upto: Option<Version>,
}

/// What pods were born with, where the CSI driver tells: by the class, as it stands among Secrets, and the pod.
pub type Mounted = BTreeMap<(Name, Uid), Value>;

/// What a pod's births are held against.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'a> {
    /// What the workload consumes, in references that roll it.
    pub consumed: &'a [Consumed<'a>],
    /// What it consumes of Secrets whose annotation says report.
    pub reported: &'a [Consumed<'a>],
    /// How births are compared.
    pub births: Births<'a>,
    /// What pods were born with of SecretProviderClasses.
    pub mounted: &'a Mounted,
    /// The workload's marks: which stamps are this ledger's own.
    pub marks: Option<&'a Marks>,
    /// When the ledger was made.
    pub made: Time,
}

/// What is known of a workload's live pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Live pods.
    pub live: usize,
    /// Pods that hold an old value, by name.
    pub stale: Vec<Name>,
    /// Pods of the installed base that are probably stale.
    pub first_sight: Vec<Name>,
    /// The same, of Secrets whose annotation says report.
    pub first_sight_reported: Vec<Name>,
    /// Pods that hold an old value only of Secrets whose annotation says report.
    pub reported: Vec<Name>,
    /// Pods of which a consuming container hasn't started.
    pub undecided: usize,
    /// Pods with the newest values whose containers started and that aren't ready, for no cause that says nothing of
    /// the values.
    pub broken: Vec<Name>,
    /// Stale pods that aren't ready: a controller that goes in order waits for them.
    pub in_the_way: Vec<Name>,
}

impl Verdict {
    /// Whether it proves that no live pod is stale.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.stale.is_empty()
            && self.first_sight.is_empty()
            && self.first_sight_reported.is_empty()
            && self.reported.is_empty()
            && self.undecided == 0
    }
}

/// The verdict, or the exact lists that have to be read first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// All pods are judged.
    Verdict(Verdict),
    /// These versions' lists are needed.
    Ask(BTreeSet<Version>),
}

/// What one pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PodIs {
    Fresh,
    Stale,
    FirstSight,
    FirstSightReported,
    Reported,
    Undecided,
}

/// Judges a workload's pods. Pods that ended or are being deleted don't count.
pub fn judge<'a>(pods: impl IntoIterator<Item = &'a PodFacts>, bench: &Bench<'_>) -> Judgement {
    let mut verdict = Verdict::default();
    let mut ask = BTreeSet::new();
    for pod in pods.into_iter().filter(|pod| is_live(pod)) {
        verdict.live += 1;
        match pod_is(pod, bench) {
            Ok(PodIs::Fresh) if is_broken(pod) => verdict.broken.push(pod.name.clone()),
            Ok(PodIs::Fresh) => {}
            Ok(PodIs::Stale) => {
                verdict.stale.push(pod.name.clone());
                if !pod.ready {
                    verdict.in_the_way.push(pod.name.clone());
                }
            }
            Ok(PodIs::FirstSight) => verdict.first_sight.push(pod.name.clone()),
            Ok(PodIs::FirstSightReported) => verdict.first_sight_reported.push(pod.name.clone()),
            Ok(PodIs::Reported) => verdict.reported.push(pod.name.clone()),
            Ok(PodIs::Undecided) => verdict.undecided += 1,
            Err(version) => {
                ask.insert(version);
            }
        }
    }
    if ask.is_empty() { Judgement::Verdict(verdict) } else { Judgement::Ask(ask) }
}

/// Whether a pod counts: it hasn't ended and isn't being deleted.
#[must_use]
pub fn is_live(pod: &PodFacts) -> bool {
    !pod.ended && !pod.deleting
}

/// Whether a pod runs and isn't ready. What keeps it from running at all says nothing of the values it got.
fn is_broken(pod: &PodFacts) -> bool {
    !pod.ready && pod.not_started.is_empty() && pod.trouble.is_none()
}

fn pod_is(pod: &PodFacts, bench: &Bench<'_>) -> Result<PodIs, Version> {
    let is = consumes(pod, bench, bench.consumed)?;
    if is == PodIs::Stale {
        return Ok(is);
    }
    Ok(match consumes(pod, bench, bench.reported)? {
        PodIs::Stale => worse(is, PodIs::Reported),
        PodIs::FirstSight => worse(is, PodIs::FirstSightReported),
        other => worse(is, other),
    })
}

/// What a pod is by some of what it consumes.
fn consumes(pod: &PodFacts, bench: &Bench<'_>, some: &[Consumed<'_>]) -> Result<PodIs, Version> {
    let mut is = PodIs::Fresh;
    let mut ask = None;
    for consumed in some {
        if !has_started(pod, &consumed.reference.containers) {
            is = worse(is, PodIs::Undecided);
            continue;
        }
        let birth = Birth {
            uid: pod.uid,
            born: pod.born,
            version: pod.version,
            stamped: trusted(pod, &consumed.reference.secret, bench.marks),
        };
        let mounted = bench.mounted.get(&(consumed.reference.secret.clone(), pod.uid));
        let holds = match mounted {
            Some(value) => holds_value(*value, consumed.history, consumed.upto),
            None => bench.births.holds(&birth, consumed.history, !consumed.reference.optional, consumed.upto),
        };
        match holds {
            Holds::Current => {}
            Holds::FirstSight if pod.born < bench.made || is_of_making(consumed.history, bench.made) => {
                is = worse(is, PodIs::FirstSight);
            }
            Holds::Other | Holds::FirstSight => return Ok(PodIs::Stale),
            Holds::Ask(version) => ask = Some(version),
        }
    }
    ask.map_or(Ok(is), Err)
}

/// Whether a value was first looked at when the ledger was made: who is older than that look is of the installed base,
/// whatever its own clock says.
fn is_of_making(history: &History, made: Time) -> bool {
    let looks = history.entries().iter().filter_map(|entry| match entry.since {
        Since::FirstSight { by, .. } => Some(by.time),
        Since::Beginning | Since::Seen(_) | Since::Between { .. } => None,
    });
    looks.into_iter().any(|look| look <= made + FAR)
}

/// Undecided outweighs a probable staleness: it is looked at again.
fn worse(a: PodIs, b: PodIs) -> PodIs {
    let rank = |is: &PodIs| match is {
        PodIs::Fresh => 0,
        PodIs::FirstSightReported => 1,
        PodIs::Reported => 2,
        PodIs::FirstSight => 3,
        PodIs::Undecided => 4,
        PodIs::Stale => 5,
    };
    if rank(&b) > rank(&a) { b } else { a }
}

/// Whether the containers that a reference gives a value to have started.
#[must_use]
pub fn has_started(pod: &PodFacts, containers: &Containers) -> bool {
    match containers {
        Containers::All => pod.not_started.is_empty(),
        Containers::Named(names) => !names.iter().any(|name| pod.not_started.contains(name)),
    }
}

/// The version of a Secret that a pod's stamp names, if this ledger wrote that stamp on the workload: anybody
/// can write anything into a template, and manifests travel between clusters.
#[must_use]
pub fn trusted(pod: &PodFacts, secret: &str, marks: Option<&Marks>) -> Option<Version> {
    let (text, marks) = (pod.stamp.as_deref()?, marks?);
    if let Some(stamp) = Stamp::parse(text) {
        let version = stamp.get(secret)?;
        return marks.has_stamped(secret, version).then_some(version);
    }
    let attempt = marks.attempt.as_ref()?;
    let whole: Stamp = attempt.versions.clone().into_iter().collect();
    whole.matches(text).then(|| attempt.versions.get(secret).copied()).flatten()
}

/// The newest version of each consumed Secret: what a stamp names.
#[must_use]
pub fn versions(consumed: &[Consumed<'_>]) -> Versions {
    let mut versions = Versions::new();
    for one in consumed {
        let newest = versions.entry(one.reference.secret.clone()).or_default();
        *newest = one.history.version().max(*newest);
    }
    versions
}
