//! A workload's reference to a Secret.

use std::fmt;

use crate::facts::Name;

/// How a pod template names a Secret. The words stand in Events, reports and docs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Via {
    /// `env[].valueFrom.secretKeyRef`.
    Env,
    /// `envFrom[].secretRef`.
    EnvFrom,
    /// A `secret` volume, mounted as a folder: the kubelet refreshes its files.
    Volume,
    /// A `secret` or `projected` volume or a SecretProviderClass mounted by `subPath`: never refreshed.
    SubPath,
    /// A `projected` volume's source, mounted as a folder.
    Projected,
    /// A Secret that the Secrets Store CSI driver syncs from a SecretProviderClass mounted as a folder: the driver
    /// refreshes its files.
    Csi,
    /// `csi.nodePublishSecretRef` and the storage drivers' own references.
    Storage,
    /// `imagePullSecrets`, the template's own or the ServiceAccount's (see [`Origin`]).
    Pull,
    /// The annotation `uptake.dev/secrets`.
    Annotation,
}

impl Via {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Env => "env",
            Self::EnvFrom => "envFrom",
            Self::Volume => "volume",
            Self::SubPath => "subPath",
            Self::Projected => "projected",
            Self::Csi => "csi",
            Self::Storage => "storage",
            Self::Pull => "pull",
            Self::Annotation => "annotation",
        }
    }

    /// Whether the kubelet or the CSI driver refreshes what a running container sees.
    #[must_use]
    pub const fn is_live_mount(self) -> bool {
        matches!(self, Self::Volume | Self::Projected | Self::Csi)
    }

    /// Whether a change rolls the workload unless a policy says otherwise. Pull secrets and storage
    /// credentials are used when a pod starts, not by its process.
    #[must_use]
    pub const fn rolls_by_default(self) -> bool {
        !matches!(self, Self::Storage | Self::Pull)
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a reference stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// In the workload itself.
    #[default]
    Workload,
    /// In the ServiceAccount of that name.
    ServiceAccount(Name),
    /// In the SecretProviderClass of that name.
    ProviderClass(Name),
}

/// Empty for the workload itself, else `ServiceAccount/NAME` or `SecretProviderClass/NAME`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workload => Ok(()),
            Self::ServiceAccount(name) => write!(f, "ServiceAccount/{name}"),
            Self::ProviderClass(name) => write!(f, "SecretProviderClass/{name}"),
        }
    }
}

/// The keys that a reference consumes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Keys {
    /// All that the Secret has.
    All,
    /// These, sorted, each once.
    Named(Box<[Name]>),
}

impl Keys {
    /// These keys, sorted, each once.
    pub fn named(keys: impl IntoIterator<Item = Name>) -> Self {
        let sorted: std::collections::BTreeSet<Name> = keys.into_iter().collect();
        Self::Named(sorted.into_iter().collect())
    }
}

/// The containers whose start binds the value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Containers {
    /// All of the pod's.
    All,
    /// These, sorted, each once.
    Named(Box<[Name]>),
}

/// One reference of a workload to a Secret. References that differ in nothing but the container are
/// one reference with several containers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The Secret's name; it lies in the workload's own namespace.
    pub secret: Name,
    /// What it consumes of it.
    pub keys: Keys,
    /// How it names it.
    pub via: Via,
    /// Whether pods start without the Secret or the key.
    pub optional: bool,
    /// The containers that get the value.
    pub containers: Containers,
    /// Whether a change of the value rolls the workload; with the reason if not.
    pub rolls: Rolls,
    /// Where it stands.
    pub from: Origin,
    /// Whether the workload's own pods bring it about: they mount a SecretProviderClass, and the CSI driver
    /// syncs the Secret as long as one of them does. Its absence keeps no pod from starting.
    pub synced: bool,
}

/// Whether a change of what a reference consumes rolls the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rolls {
    /// It does.
    Yes,
    /// It is a kind of reference that is listed only (pull secrets, storage credentials).
    KindIsListedOnly,
    /// The workload says that it re-reads the mounted files (`uptake.dev/reloads`), or the cluster says
    /// so for all (`--roll-volumes=false`).
    Reloads,
    /// The workload leaves this Secret out (`uptake.dev/ignore-secrets`).
    Ignored,
}
