//! The objects that the simulated API server keeps, and the facts that are read of them.

use std::{collections::BTreeMap, rc::Rc, sync::Arc};

use uptake::{
    catalog::{
        Declared, KeyFacts, SecretAnnotations, SecretFacts, Selection, Selector, TemplateHash, Workload,
        policy::{Mode, Problem, WorkloadPolicy},
        reference::{Containers, Keys, Origin, Reference, Rolls, Via},
    },
    decide::{OwnerFacts, PodFacts, Trouble},
    facts::{Kind, Name, SecretId, Time, Uid, Version, WorkloadId},
    ledger::Digest,
    rollout::{RolloutFacts, Strategy},
};

use crate::{history::Ms, rng::mix};

/// A namespace and a Secret in it, by number.
pub type SecretKey = (u8, u8);

/// A key of it, or all of it.
pub type Place = (u8, u8, Option<u8>);

pub const KEYS: u8 = 3;

pub fn namespace(number: u8) -> Name {
    Name::from(["alpha", "beta", "uptake"][usize::from(number)])
}

pub fn secret_name(number: u8) -> Name {
    Name::from(["db", "mail", "tls"][usize::from(number)])
}

pub fn key_name(number: u8) -> Name {
    Name::from(["k0", "k1", "k2"][usize::from(number)])
}

pub fn secret_id((of, secret): SecretKey) -> SecretId {
    SecretId { namespace: namespace(of), name: secret_name(secret) }
}

#[derive(Clone, Debug)]
pub struct Secret {
    pub uid: Uid,
    pub version: u64,
    pub created: Ms,
    pub data: BTreeMap<u8, Datum>,
    pub mode: u8,
    /// `uptake.dev/release`.
    pub release: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub struct Datum {
    pub value: u32,
    /// What `managedFields` says.
    pub written: Ms,
}

impl Secret {
    /// One number for all of its data.
    pub fn all(&self) -> u64 {
        self.data
            .iter()
            .fold(7, |sum, (key, datum)| mix(sum ^ mix(u64::from(*key) + 1) ^ u64::from(datum.value)))
    }

    pub fn facts(&self, place: SecretKey) -> SecretFacts {
        let digest =
            |what: u64| Digest(u128::from(mix(what ^ u64::from(place.1))) << 64 | u128::from(mix(what + 1)));
        SecretFacts {
            id: secret_id(place),
            uid: self.uid,
            version: Version(self.version),
            created: Time(self.created),
            all: digest(self.all()),
            keys: self
                .data
                .iter()
                .map(|(key, datum)| KeyFacts {
                    name: key_name(*key),
                    digest: digest(u64::from(datum.value) << 8 | u64::from(*key)),
                    written: Some(Time(datum.written)),
                })
                .collect(),
            written: self.data.values().map(|datum| Time(datum.written)).max(),
            annotations: SecretAnnotations {
                rollout: mode_text(self.mode),
                release: self.release.map(|version| version.to_string().into()),
            },
        }
    }
}

/// An annotation `uptake.dev/rollout`: none, one of the three, or one that can't be read.
pub fn mode_text(mode: u8) -> Option<Box<str>> {
    [None, Some("auto"), Some("report"), Some("off"), Some("TRUE ")][usize::from(mode)].map(Box::from)
}

/// What a template consumes of a Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    pub secret: u8,
    /// None: all.
    pub key: Option<u8>,
    pub optional: bool,
    /// None: all containers.
    pub container: Option<u8>,
    pub via: Via,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    pub image: u32,
    /// Its image can't be pulled.
    pub bad: bool,
    /// It starts and never becomes ready.
    pub never_ready: bool,
    pub restarted: u32,
    pub uses: Rc<[Use]>,
    pub stamp: Option<Rc<str>>,
}

impl Template {
    fn hash(&self) -> TemplateHash {
        let mut sum = mix(u64::from(self.image) << 32 | u64::from(self.restarted));
        sum = mix(sum ^ u64::from(self.bad) ^ (u64::from(self.never_ready) << 1));
        for one in self.uses.iter() {
            let key = one.key.map_or(9, u64::from);
            let container = one.container.map_or(9, u64::from);
            sum =
                mix(sum
                    ^ (u64::from(one.secret) << 24 | key << 16 | container << 8 | u64::from(one.optional)));
        }
        TemplateHash(sum)
    }

    fn references(&self) -> Arc<[Reference]> {
        let mut all: Vec<Reference> = self
            .uses
            .iter()
            .map(|one| Reference {
                secret: secret_name(one.secret),
                keys: one.key.map_or(Keys::All, |key| Keys::named([key_name(key)])),
                via: one.via,
                optional: one.optional,
                containers: match one.container {
                    None => Containers::All,
                    Some(container) => Containers::Named([container_name(container)].into()),
                },
                rolls: Rolls::Yes,
                from: Origin::Workload,
                synced: false,
            })
            .collect();
        all.sort();
        all.into()
    }
}

fn container_name(number: u8) -> Name {
    Name::from(["app", "side"][usize::from(number)])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Deployment,
    StatefulSet,
    DaemonSet,
}

impl Sort {
    pub fn kind(self) -> Kind {
        match self {
            Self::Deployment => Kind::Deployment,
            Self::StatefulSet => Kind::StatefulSet,
            Self::DaemonSet => Kind::DaemonSet,
        }
    }

    pub fn stream(self) -> usize {
        match self {
            Self::Deployment => 1,
            Self::StatefulSet => 2,
            Self::DaemonSet => 3,
        }
    }
}

/// A workload, with what its controller reports.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a circumstance of its own.
pub struct Owner {
    pub sort: Sort,
    pub namespace: u8,
    pub name: Name,
    pub uid: Uid,
    pub version: u64,
    pub gone: bool,
    pub deleting: bool,
    pub template: Rc<Template>,
    /// A StatefulSet's current revision.
    pub current: Rc<Template>,
    /// Earlier templates, for undo.
    pub past: Vec<Rc<Template>>,
    pub mode: u8,
    pub desired: u32,
    pub paused: bool,
    pub strategy: Strategy,
    pub unavailable: u32,
    pub deadline: Option<Ms>,
    pub generation: i64,
    pub rollout: RolloutFacts,
    /// What its last version shows of it.
    pub shown: RolloutFacts,
    pub progressed: Ms,
    /// When its updated or ready pods were last other ones in number.
    pub moved: Ms,
    /// What each of its versions showed of that.
    pub trail: Vec<(u64, (i32, i32))>,
    pub writer: Option<Name>,
    /// What Git has, and whether it is applied after each change.
    pub git: Option<Rc<Template>>,
    pub git_always: bool,
    pub denied: bool,
    pub stripped: bool,
    pub quota: bool,
    /// Whether its controller is to run soon.
    pub awake: bool,
}

impl Owner {
    pub fn id(&self) -> WorkloadId {
        WorkloadId { namespace: namespace(self.namespace), kind: self.sort.kind(), name: self.name.clone() }
    }

    /// Whether its pods and ReplicaSets, all of which have its name as their label `app`, are selected.
    pub fn is_among(&self, selection: &Selection) -> bool {
        selection.matches(|key| (key == "app").then_some(&*self.name))
    }

    pub fn facts(&self) -> Workload {
        let mut policy = WorkloadPolicy::default();
        match self.mode {
            1 => policy.rollout = Some(Mode::Auto),
            2 => policy.rollout = Some(Mode::Report),
            3 => policy.rollout = Some(Mode::Off),
            4 => policy.problems = [Problem::new("uptake.dev/rollout", "not a mode")].into(),
            _ => {}
        }
        let references = self.template.references();
        Workload {
            id: self.id(),
            uid: self.uid,
            version: Version(self.version),
            deleting: self.deleting,
            declared: Arc::new(Declared {
                references: references.clone(),
                count: references.len(),
                ..Declared::default()
            }),
            reference_count: references.len(),
            references,
            policy,
            template: self.template.hash(),
            stamp: self.template.stamp.as_deref().map(Box::from),
            selector: Selector::new([("app", &*self.name)]),
            service_account: Name::from("default"),
            rollout: RolloutFacts {
                generation: self.generation,
                paused: self.paused,
                ..self.rollout.clone()
            },
            last_writer: self.writer.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ReplicaSet {
    pub uid: Uid,
    pub name: Name,
    pub owner: usize,
    pub template: Rc<Template>,
    pub want: u32,
    /// Pods that are being admitted.
    pub pending: u32,
}

#[derive(Clone, Debug)]
pub struct Pod {
    pub uid: Uid,
    pub name: Name,
    /// Its place in the store's order.
    pub born: u64,
    /// The version that it was changed at last.
    pub changed: u64,
    pub created: Ms,
    pub owner: usize,
    pub set: Option<usize>,
    pub ordinal: u32,
    pub template: Rc<Template>,
    pub started: [bool; 2],
    pub ready: bool,
    pub ended: bool,
    pub deleting: bool,
    pub gone: Option<u64>,
    pub trouble: Option<Trouble>,
}

impl Pod {
    /// As the engine counts: a pod that ended or is being deleted isn't live.
    pub fn is_live(&self) -> bool {
        self.gone.is_none() && !self.ended && !self.deleting
    }

    pub fn facts(&self, owner: OwnerFacts) -> PodFacts {
        let names = [0, 1].into_iter().filter(|at| !self.started[usize::from(*at)]).map(container_name);
        PodFacts {
            name: self.name.clone(),
            uid: self.uid,
            born: Time(self.created),
            version: Version(self.changed),
            owner: Some(owner),
            stamp: self.template.stamp.as_deref().map(Box::from),
            ended: self.ended,
            deleting: self.deleting,
            ready: self.ready,
            not_started: names.collect(),
            trouble: self.trouble,
        }
    }
}
