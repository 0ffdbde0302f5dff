//! The part of a workload's spec and status that tells how its rollout goes.

/// What a workload says of its rollout. Absent numbers are what the API's defaults make of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolloutFacts {
    /// `metadata.generation`.
    pub generation: i64,
    /// `status.observedGeneration`; 0 while the controller hasn't seen it.
    pub observed_generation: i64,
    /// Replicas asked for: `spec.replicas`, or a DaemonSet's `desiredNumberScheduled`.
    pub desired: i32,
    /// Replicas there are, of all revisions.
    pub replicas: i32,
    /// Replicas of the newest template.
    pub updated: i32,
    /// Replicas that are ready, of all revisions.
    pub ready: i32,
    /// Replicas that are available, of all revisions.
    pub available: i32,
    /// `spec.paused`.
    pub paused: bool,
    /// How the controller replaces pods.
    pub strategy: Strategy,
    /// A StatefulSet's `status.currentRevision` equals its `updateRevision`; true for other kinds.
    pub revisions_equal: bool,
    /// The message of condition `Progressing` when its reason is `ProgressDeadlineExceeded`.
    pub deadline_exceeded: Option<Box<str>>,
    /// The message of condition `ReplicaFailure` when it is true: pods could not be made (quota, admission).
    pub replica_failure: Option<Box<str>>,
}

/// How a controller replaces pods when the template changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// By itself, in steps or at once (`RollingUpdate`, `Recreate`).
    #[default]
    Automatic,
    /// A StatefulSet that leaves pods below this ordinal as they are. Only a partition above 0 is one.
    Partition(i32),
    /// Only when somebody deletes a pod (`OnDelete`).
    OnDelete,
}
