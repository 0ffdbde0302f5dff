//! The table of the places in a pod's spec that name a Secret.
//!
//! Its measure is `VisitPodSecretNames` in kubernetes `pkg/api/v1/pod/util.go`; the guard test compares it with
//! the schema of `PodSpec`. A new kind of reference is a row here and a row in the tests.

use crate::catalog::reference::Via;

/// One place that names a Secret.
#[derive(Debug)]
pub(super) struct Row {
    /// What the path starts from.
    pub within: Within,
    /// The path to the object that holds the name; `[*]` stands for each element of an array.
    pub path: &'static str,
    /// The field of that object with the Secret's name.
    pub name: &'static str,
    /// Which keys it consumes.
    pub keys: KeysRule,
    /// What it is called. A live mount's word is for mounts as a folder; by `subPath` it is [`Via::SubPath`].
    pub via: Via,
    /// Whether pods start without the Secret.
    pub optional: Optional,
}

/// What a row's path starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    /// Each container of each of [`CONTAINERS`].
    Container,
    /// Each volume that a container mounts: the kubelet prepares no others
    /// (`desired_state_of_world_populator.go`, `GetPodVolumeNames`).
    Volume,
    /// The pod's spec.
    Pod,
}

/// Which keys a reference consumes.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeysRule {
    /// All.
    All,
    /// The one that this field names.
    One(&'static str),
    /// Those of `items[*].key`; all if there are no items.
    Items,
}

/// Whether pods start without the Secret.
#[derive(Clone, Copy, Debug)]
pub(super) enum Optional {
    /// As the field `optional` beside the name says; they don't if it is absent.
    Field,
    /// They don't.
    Never,
    /// They do.
    Always,
}

/// Where a pod's spec keeps containers. Sidecars are init containers; ephemeral ones are only in pods, never in
/// templates, but cost nothing here.
pub(super) const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Where a pod's spec keeps volumes.
pub(super) const VOLUMES: &str = "volumes";

/// All rows.
pub(super) const ROWS: [Row; 14] = [
    Row {
        within: Within::Container,
        path: "env[*].valueFrom.secretKeyRef",
        name: "name",
        keys: KeysRule::One("key"),
        via: Via::Env,
        optional: Optional::Field,
    },
    Row {
        within: Within::Container,
        path: "envFrom[*].secretRef",
        name: "name",
        keys: KeysRule::All,
        via: Via::EnvFrom,
        optional: Optional::Field,
    },
    Row {
        within: Within::Volume,
        path: "secret",
        name: "secretName",
        keys: KeysRule::Items,
        via: Via::Volume,
        optional: Optional::Field,
    },
    Row {
        within: Within::Volume,
        path: "projected.sources[*].secret",
        name: "name",
        keys: KeysRule::Items,
        via: Via::Projected,
        optional: Optional::Field,
    },
    storage("csi.nodePublishSecretRef", "name"),
    storage("azureFile", "secretName"),
    storage("cephfs.secretRef", "name"),
    storage("cinder.secretRef", "name"),
    storage("flexVolume.secretRef", "name"),
    storage("iscsi.secretRef", "name"),
    storage("rbd.secretRef", "name"),
    storage("scaleIO.secretRef", "name"),
    storage("storageos.secretRef", "name"),
    Row {
        within: Within::Pod,
        path: "imagePullSecrets[*]",
        name: "name",
        keys: KeysRule::All,
        via: Via::Pull,
        // The kubelet goes on without it and pulls what needs no credentials (`getPullSecretsForPod` in
        // kubernetes `pkg/kubelet/kubelet_pods.go`).
        optional: Optional::Always,
    },
];

/// The Secrets Store CSI driver, whose volumes name a SecretProviderClass instead of a Secret.
pub(super) const SECRETS_STORE_DRIVER: &str = "secrets-store.csi.k8s.io";

const fn storage(path: &'static str, name: &'static str) -> Row {
    Row {
        within: Within::Volume,
        path,
        name,
        keys: KeysRule::All,
        via: Via::Storage,
        optional: Optional::Never,
    }
}
