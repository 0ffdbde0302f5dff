//! One script of operations, and what the API server answers to each: the simulated one and the real one alike.
//!
//! Both run it with the engine's own calls, so what is compared is what the engine is told. Included by both tests.

/// Over which version of an object something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// None: it is to be created.
    Nothing,
    /// The one it has.
    Current,
    /// One that it had before.
    Earlier,
    /// The one it has, of an object with another identity.
    Stranger,
}

/// Which kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Deployment,
    StatefulSet,
    DaemonSet,
}

/// What is done.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A ledger object is written whole.
    Write(&'static str, Over),
    /// It is deleted.
    Erase(Over),
    /// A person makes a Secret with one key.
    CreateSecret,
    /// The key gets another value.
    ChangeSecret,
    /// Another manager edits a label.
    LabelSecret,
    /// The Secret is deleted.
    DeleteSecret,
    /// It is read: whether the key's time is the one read before.
    ReadTime,
    /// A person makes a workload, of one pod if it is for him to say, and all comes to rest. It is what is stamped and read
    /// from then on.
    CreateWorkload(Sort),
    /// Another person edits its template.
    EditTemplate,
    /// Whom `managedFields` name as its template's last writer.
    ReadWriter,
    /// All comes to rest, and its pods are listed: what controls them, and which stamp they were born with.
    Born,
    /// The stamp is written.
    Stamp(&'static str, Over),
    /// The version of a write to the store is remembered, the first as number 0.
    Mark,
    /// The namespace's pods are listed at exactly the version of that mark.
    PodsAt(usize),
    /// The same, at a version that is still to come.
    PodsAtFuture,
    /// The Deployment's pod is deleted; it is gone, and another is there.
    ReplacePod,
    /// Old versions are compacted away, and the API server remembers none: it may answer from its memory for a while.
    Compact,
}

use Over::{Current, Earlier, Nothing, Stranger};
use Step::{
    Born, ChangeSecret, Compact, CreateSecret, CreateWorkload, DeleteSecret, EditTemplate, Erase,
    LabelSecret, Mark, PodsAt, PodsAtFuture, ReadTime, ReadWriter, ReplacePod, Stamp, Write,
};

/// The script with its answers. `newer`: done, at a version above all before. `same`: done, and nothing changed.
pub const SCRIPT: &[(Step, &str)] = &[
    (Write("one", Nothing), "newer"),
    (Write("two", Nothing), "conflict"),
    (Write("two", Current), "newer"),
    (Write("three", Earlier), "conflict"),
    // What changes nothing gets no version.
    (Write("two", Current), "same"),
    (Erase(Earlier), "conflict"),
    (Erase(Current), "done"),
    (Erase(Current), "not found"),
    (Write("one", Current), "not found"),
    (Write("one", Nothing), "newer"),
    (CreateSecret, "newer"),
    (ReadTime, "first"),
    (LabelSecret, "newer"),
    (ReadTime, "same"),
    (ChangeSecret, "newer"),
    (DeleteSecret, "done"),
    (ReadTime, "not found"),
    (CreateSecret, "newer"),
    (Stamp("db@1", Current), "not found"),
    (CreateWorkload(Sort::Deployment), "done"),
    (Stamp("db@1", Earlier), "conflict"),
    (Stamp("db@1", Stranger), "refused"),
    (Stamp("db@1", Current), "newer"),
    (Stamp("db@1", Current), "same"),
    (Mark, "newer"),
    (PodsAt(0), "these"),
    (ReplacePod, "done"),
    (PodsAt(0), "these"),
    (Mark, "newer"),
    (PodsAt(1), "others"),
    (PodsAtFuture, "expired"),
    (Mark, "newer"),
    (Compact, "done"),
    (PodsAt(0), "expired"),
    // The stamp isn't its template's writing.
    (ReadWriter, "its maker"),
    (EditTemplate, "newer"),
    (ReadWriter, "another"),
    (Stamp("db@2", Current), "newer"),
    (ReadWriter, "another"),
    (Born, "a ReplicaSet of it, db@2"),
    (CreateWorkload(Sort::StatefulSet), "done"),
    (Born, "it, no stamp"),
    (Stamp("db@3", Earlier), "conflict"),
    (Stamp("db@3", Current), "newer"),
    (Born, "it, db@3"),
    (CreateWorkload(Sort::DaemonSet), "done"),
    (Born, "it, no stamp"),
    (Stamp("db@4", Current), "newer"),
    (ReadWriter, "its maker"),
    (Born, "it, db@4"),
];

/// What the watch of Secrets delivers of it at first, each at a higher version than the one before; before it ends
/// it says how far it is.
pub const WATCHED: &[&str] = &["applied", "applied", "applied", "deleted", "applied"];

/// Of one pod: what controls it, and its stamp.
pub fn birth(owner: &str, stamp: Option<&str>) -> String {
    format!("{owner}, {}", stamp.unwrap_or("no stamp"))
}
