//! All that is known of the consumers in a namespace, or in all of them, at one moment. Pure: it is gathered elsewhere.
//!
//! The rules are the operator's own: what a reference is, what a policy says, when a pod is stale, what would be decided.
//! Where there is no ledger, everything is at first sight: a pod that is older than its Secret's last writing is
//! probably stale.

mod assemble;
mod consumer;
mod ledger;
mod told;

use std::collections::BTreeMap;

use serde::Serialize;

pub use self::{
    assemble::{Gathered, SeenPod, controllers},
    consumer::{Consumer, Fate},
    ledger::{Ledger, nobodys_key},
    told::{Telling, Told},
};
use super::Class;
use crate::{
    catalog::{
        SecretFacts,
        beside::ProviderClassFacts,
        mounted::{MountFacts, Mounts},
        policy::{self, Mode, Source},
        reference::{Reference, Rolls},
    },
    decide::{
        self, Bench, Births, Consumed, Consumption, Decision, ExactLists, Facts, Judgement, Mounted,
        PodFacts, ReportOnly, Step, Values, Verdict,
        births::{Birth, Holds, holds_value},
    },
    engine::FirstSight,
    facts::{Namespace, SecretId, Time, Uid, Version},
    ledger::{DigestKey, Entry, History, Marks, Part, Point, Settings, Since, Value, Versions},
    rollout::{State, state},
};

/// What couldn't be listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unknown {
    /// The kind.
    pub kind: String,
    /// Why, for programs.
    pub reason: Class,
    /// Why, for people.
    pub message: String,
}

/// What is known.
#[derive(Debug)]
pub struct Scene {
    /// The moment, and the store's version then.
    pub at: Point,
    /// The namespace that was looked at; none if all were.
    pub namespace: Option<Namespace>,
    /// Where the operator's ledger was looked for.
    pub operator_namespace: Namespace,
    /// Everybody who has pods.
    pub consumers: Vec<Consumer>,
    /// The SecretProviderClasses that name Secrets.
    pub classes: Vec<ProviderClassFacts>,
    /// The operator's ledger, if it could be read.
    pub ledger: Option<Ledger>,
    /// What the operator told in Events.
    pub told: Told,
    /// Whether the operator is paused.
    pub paused: bool,
    /// What couldn't be listed.
    pub unknown: Vec<Unknown>,
    /// The pods that lived at versions, as far as they were asked for.
    pub exact: BTreeMap<Namespace, ExactLists>,
    comparable: bool,
    digest_key: DigestKey,
    /// What the CSI driver mounted into pods.
    mounts: Mounts,
    /// All Secrets that were looked at; none if they may not be read.
    secrets: Option<BTreeMap<SecretId, SecretFacts>>,
    /// The live pods of each consumer, and those that ended.
    pods: BTreeMap<Uid, Vec<PodFacts>>,
    namespaces: BTreeMap<Namespace, Option<Mode>>,
    histories: BTreeMap<SecretId, BTreeMap<Part, Known>>,
}

/// A history, and whether the ledger told it.
#[derive(Clone, Debug)]
struct Known {
    history: History,
    recorded: bool,
}

impl Values for Scene {
    fn mode(&self, secret: &SecretId) -> Option<Mode> {
        policy::rollout(self.secret(secret)?.annotations.rollout.as_deref()).0
    }

    fn is_left_out(&self, _: &SecretId) -> bool {
        false
    }

    fn is_present(&self, secret: &SecretId) -> bool {
        self.secret(secret).is_some()
    }

    fn history(&self, secret: &SecretId, part: &Part) -> Option<&History> {
        Some(&self.histories.get(secret)?.get(part)?.history)
    }
}

/// Which of a consumer's references are meant.
pub type Meant<'a> = &'a dyn Fn(&Reference) -> bool;

/// A consumer's pods, judged.
#[derive(Debug)]
pub struct Look<'a> {
    /// What it consumes.
    pub consumption: Consumption<'a>,
    /// Its pods in all.
    pub verdict: Verdict,
    /// The pods that hold an old value.
    pub stale: Vec<Stale<'a>>,
    /// The pods of which a consuming container hasn't started.
    pub undecided: Vec<&'a PodFacts>,
}

/// A pod that holds an old value.
#[derive(Debug)]
pub struct Stale<'a> {
    /// The pod.
    pub pod: &'a PodFacts,
    /// Whether it is known, and not only probable.
    pub certain: bool,
    /// Of which values, and since when each: `SECRET/KEY`, or the Secret for all of it.
    pub of: BTreeMap<String, Time>,
}

impl Scene {
    /// The facts of a Secret; none if it isn't there or may not be read.
    #[must_use]
    pub fn secret(&self, id: &SecretId) -> Option<&SecretFacts> {
        self.secrets.as_ref()?.get(id)
    }

    /// Whether there is a Secret of that name, in any namespace that was looked at.
    #[must_use]
    pub fn has_secret(&self, name: &str) -> bool {
        self.secrets.iter().flat_map(BTreeMap::keys).any(|id| *id.name == *name)
    }

    /// Whether Secrets may be read.
    #[must_use]
    pub fn knows_secrets(&self) -> bool {
        self.secrets.is_some()
    }

    /// The live pods of a consumer.
    pub fn live_pods(&self, consumer: &Consumer) -> impl Iterator<Item = &PodFacts> {
        self.pods.get(&consumer.uid).into_iter().flatten().filter(|pod| decide::is_live(pod))
    }

    /// The marks of a consumer in the ledger.
    #[must_use]
    pub fn marks(&self, consumer: &Consumer) -> Option<&Marks> {
        self.ledger.as_ref()?.book.marks(&consumer.namespace, consumer.uid)
    }

    /// What a consumer's policy is because of its own words, its namespace's and the default, and whose word it is.
    #[must_use]
    pub fn policy(&self, consumer: &Consumer, secret: Option<&SecretId>) -> (Mode, Source) {
        if !self.is_watched(&consumer.namespace) {
            return (Mode::Off, Source::Default);
        }
        let namespace = self.namespaces.get(&consumer.namespace).copied().flatten();
        let secret = secret.and_then(|secret| self.mode(secret));
        policy::effective(&consumer.policy, secret, namespace, self.default_rollout())
    }

    /// What the operator was told; none if it can't be read: then its defaults are taken for granted.
    #[must_use]
    pub fn settings(&self) -> Option<&Settings> {
        self.ledger.as_ref()?.settings.as_ref()
    }

    /// Whether the operator looks at that namespace, as far as is known.
    #[must_use]
    pub fn is_watched(&self, namespace: &Namespace) -> bool {
        self.settings().is_none_or(|settings| settings.watches(namespace))
    }

    /// The operator's mode where nothing says otherwise.
    #[must_use]
    pub fn default_rollout(&self) -> Mode {
        self.settings().and_then(|settings| Mode::parse(&settings.default_rollout).ok()).unwrap_or(Mode::Auto)
    }

    /// What a consumer consumes in the references that are meant.
    pub fn consumption<'a>(&'a self, consumer: &'a Consumer, meant: Meant<'_>) -> Consumption<'a> {
        let references = consumer.references.iter().filter(|reference| meant(reference));
        decide::consumption(&consumer.namespace, references, self)
    }

    /// Judges a consumer's pods.
    ///
    /// # Errors
    /// Gives the versions whose exact lists have to be read first.
    pub fn look<'a>(&'a self, consumer: &'a Consumer, meant: Meant<'_>) -> Result<Look<'a>, Vec<Version>> {
        let consumption = self.consumption(consumer, meant);
        let (exact, mounted) = (ExactLists::new(), self.mounted_by(consumer));
        let bench = Bench {
            mounted: &mounted,
            consumed: &consumption.rolling,
            reported: &consumption.reported,
            births: Births {
                exact: self.exact.get(&consumer.namespace).unwrap_or(&exact),
                comparable: self.comparable,
            },
            marks: self.marks(consumer),
            made: self.made(consumer, &consumption),
        };
        let verdict = match decide::judge(self.live_pods(consumer), &bench) {
            Judgement::Ask(versions) => return Err(versions.into_iter().collect()),
            Judgement::Verdict(verdict) => verdict,
        };
        let (mut stale, mut undecided) = (Vec::new(), Vec::new());
        // Mostly all are fresh, and there may be thousands.
        let open = (!verdict.is_clean()).then(|| self.live_pods(consumer));
        for pod in open.into_iter().flatten() {
            let Judgement::Verdict(own) = decide::judge([pod], &bench) else { continue };
            let certain = !own.stale.is_empty() || !own.reported.is_empty();
            if certain || !own.first_sight.is_empty() || !own.first_sight_reported.is_empty() {
                let of = self.old(consumer, pod, &consumption, &bench);
                stale.push(Stale { pod, certain, of });
            } else if own.undecided > 0 {
                undecided.push(pod);
            }
        }
        Ok(Look { consumption, verdict, stale, undecided })
    }

    /// What the operator would decide of a workload, by what is known here.
    #[must_use]
    pub fn decision(&self, consumer: &Consumer, look: &Look<'_>) -> Option<Decision> {
        let workload = consumer.workload.as_ref()?;
        let (mode, source) = self.policy(consumer, None);
        let any = consumer.references.iter().any(|one| one.rolls == Rolls::Yes);
        let all_off = look.consumption.all_off && any;
        let step = decide::decide(&Facts {
            known: !look.consumption.untracked,
            deleting: workload.deleting,
            consumes: any,
            candidate: true,
            mode: if all_off { Mode::Off } else { mode },
            report: if source == Source::Problem {
                ReportOnly::InvalidAnnotation
            } else {
                ReportOnly::Policy
            },
            missing: look.consumption.missing.clone(),
            settling: false,
            running: matches!(state(&workload.rollout), State::NotObserved | State::Running(_)),
            pods: Some(&look.verdict),
            first_sight: FirstSight::Report,
            attempted: self.was_attempted(consumer, &look.consumption),
            paused: self.paused,
            ledger_unwritable: false,
            breaker: self.breaker(consumer, &look.consumption).is_some(),
            canary: false,
            slot: true,
        });
        match step {
            Step::Decided(decision) => Some(decision),
            Step::NeedsPods => None,
        }
    }

    /// The Secret and the version that broke another consumer, and keep this one from being rolled.
    #[must_use]
    pub fn breaker(&self, consumer: &Consumer, consumption: &Consumption<'_>) -> Option<(SecretId, Version)> {
        let ledger = self.ledger.as_ref()?;
        let clean = self.marks(consumer).map(|marks| &marks.clean);
        let versions = versions(consumption).into_iter();
        let mut new =
            versions.filter(|(secret, version)| clean.and_then(|clean| clean.get(secret)) < Some(version));
        new.find_map(|(name, version)| {
            let secret = SecretId::new(consumer.namespace.clone(), name);
            let release = self.secret(&secret).and_then(|facts| facts.annotations.release.as_deref());
            let released = release.is_some_and(|release| release.trim() == version.to_string());
            let broke = ledger.broken_by(&consumer.namespace, consumer.uid, &secret.name, version);
            (!released && broke.is_some()).then_some((secret, version))
        })
    }

    fn was_attempted(&self, consumer: &Consumer, consumption: &Consumption<'_>) -> bool {
        let attempt = self.marks(consumer).and_then(|marks| marks.attempt.as_ref());
        attempt.is_some_and(|attempt| attempt.has_failed_for(&versions(consumption)))
    }

    /// The values that a pod holds old, and since when.
    fn old(
        &self,
        consumer: &Consumer,
        pod: &PodFacts,
        consumption: &Consumption<'_>,
        bench: &Bench<'_>,
    ) -> BTreeMap<String, Time> {
        let mut old: BTreeMap<String, Time> = BTreeMap::new();
        for reference in consumption.rolling.iter().chain(&consumption.reported).map(|one| one.reference) {
            let secret = SecretId::new(consumer.namespace.clone(), reference.secret.clone());
            let stamped = decide::trusted(pod, &reference.secret, bench.marks);
            let birth = Birth { uid: pod.uid, born: pod.born, version: pod.version, stamped };
            for part in decide::parts(reference) {
                let Some(history) = self.history(&secret, &part) else { continue };
                let holds = match bench.mounted.get(&(reference.secret.clone(), pod.uid)) {
                    Some(value) => holds_value(*value, history, None),
                    None => bench.births.holds(&birth, history, !reference.optional, None),
                };
                if matches!(holds, Holds::Other | Holds::FirstSight) {
                    let value = match &part {
                        Part::All => reference.secret.to_string(),
                        Part::Key(key) => format!("{}/{key}", reference.secret),
                    };
                    let since = changed_after(history, pod.born, stamped);
                    let earliest = old.entry(value).or_insert(since);
                    *earliest = since.min(*earliest);
                }
            }
        }
        old
    }

    /// What pods were born with of the classes that a consumer mounts, where the CSI driver tells.
    fn mounted_by(&self, consumer: &Consumer) -> Mounted {
        let mut mounted = Mounted::new();
        for class in &consumer.declared.provider_classes {
            let source = SecretId::of_class(consumer.namespace.clone(), &class.name);
            for (pod, mount) in self.mounts.births(&consumer.namespace, &class.name) {
                mounted.insert((source.name.clone(), pod), self.mounted_value(&source, mount));
            }
        }
        mounted
    }

    fn mounted_value(&self, source: &SecretId, mount: &MountFacts) -> Value {
        let objects = mount.objects.iter().map(|(object, version)| (&**object, version.as_bytes()));
        Value::Present(self.digest_key.of_all(&source.namespace, &source.name, Some(objects)))
    }

    /// When the records of what a consumer consumes were begun; where the ledger has none, just now.
    fn made(&self, consumer: &Consumer, consumption: &Consumption<'_>) -> Time {
        let recorded = |consumed: &Consumed<'_>| {
            let secret = SecretId::new(consumer.namespace.clone(), consumed.reference.secret.clone());
            self.histories.get(&secret).is_some_and(|parts| parts.values().any(|told| told.recorded))
        };
        let any = consumption.rolling.iter().chain(&consumption.reported).any(recorded);
        self.ledger
            .as_ref()
            .filter(|_| any)
            .map_or(self.at.time, |ledger| ledger.book.made(&consumer.namespace).time)
    }
}

/// The versions that a stamp would name.
#[must_use]
pub fn versions(consumption: &Consumption<'_>) -> Versions {
    let mut versions = decide::versions(&consumption.rolling);
    versions.extend(decide::versions(&consumption.reported));
    versions.retain(|_, version| version.0 > 0);
    versions
}

/// When a value changed that a pod was born with.
fn changed_after(history: &History, born: Time, stamped: Option<Version>) -> Time {
    let began = |entry: &Entry| match entry.since {
        Since::FirstSight { written: Some(written), .. } => written,
        since => since.time(),
    };
    let unknown = |entry: &&Entry| stamped.is_none_or(|stamped| entry.since.version() > stamped);
    let later = history.entries().iter().filter(unknown).map(began).find(|began| *began >= born);
    later.unwrap_or_else(|| began(history.last()))
}
