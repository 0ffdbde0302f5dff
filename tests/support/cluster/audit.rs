//! The API server's own account of who did what, request by request.

use super::{Cluster, User};
use crate::support::wait::eventually;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

/// One answered request.
#[derive(Clone, Debug)]
pub struct Entry {
    pub user: String,
    /// `get list watch create update patch delete deletecollection`
    pub verb: String,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub uri: String,
    pub user_agent: String,
    /// `ResponseStarted` (of a watch), `ResponseComplete` or `Panic`.
    pub stage: String,
    pub code: u16,
    pub received: Timestamp,
    /// When this stage was reached.
    pub at: Timestamp,
    /// What was sent, of writes by users without rights of their own over the cluster; never of Secrets.
    pub request: Option<Value>,
}

impl Entry {
    pub fn is_by(&self, user: &User) -> bool {
        self.user == user.name
    }

    /// A request that asked for a change, granted or not.
    pub fn is_write(&self) -> bool {
        matches!(&*self.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    /// An accepted patch or update of an object of this resource itself.
    pub fn changed(&self, resource: &str) -> bool {
        self.is_write() && self.resource == resource && self.subresource.is_empty() && self.code < 300
    }
}

/// Reads on from where it stopped.
pub struct Audit {
    log: PathBuf,
    /// Behind the last complete line.
    position: u64,
}

impl Cluster {
    /// Notes that a user is an operator with exactly the rights of an installation: `tests/rights` looks at what such
    /// users did, when all tests are over. `supervise.sh` puts the log beside this note.
    pub fn audited(&self, user: &User, own_namespace: &str, rights: &str) {
        let run = self.folder().file_name().and_then(|name| name.to_str()).expect("a run has a folder");
        let notes = super::binaries::audit_folder(&self.programs);
        std::fs::create_dir_all(&notes).expect("the folder can be made");
        let mut file = File::options().create(true).append(true).open(notes.join(format!("{run}.operators")));
        let line = json!({ "user": user.name, "own_namespace": own_namespace, "rights": rights });
        let written = file.as_mut().map(|file| file.write_all(format!("{line}\n").as_bytes()));
        written.expect("the note can be written").expect("the note can be written");
    }

    /// Takes those notes back: an API server that starts again forbids everything until it knows its roles.
    pub(super) fn unaudited(&self) {
        let run = self.folder().file_name().and_then(|name| name.to_str()).expect("a run has a folder");
        let notes = super::binaries::audit_folder(&self.programs);
        let _ = std::fs::remove_file(notes.join(format!("{run}.operators")));
    }

    /// From the cluster's first request on.
    pub fn audit(&self) -> Audit {
        Audit { log: self.folder().join("audit.log"), position: 0 }
    }

    /// From now on.
    pub fn audit_from_now(&self) -> Audit {
        let mut audit = self.audit();
        audit.position = audit.log.metadata().map(|file| file.len()).unwrap_or_default();
        audit
    }
}

impl Audit {
    /// What was answered since the last call. A request's line is written before its answer is sent, so what a
    /// test has seen the effect of is here.
    pub fn read(&mut self) -> Vec<Entry> {
        let mut text = Vec::new();
        let mut file = File::open(&self.log).expect("the API server writes an audit log");
        file.seek(SeekFrom::Start(self.position)).expect("a file can be sought in");
        file.read_to_end(&mut text).expect("the audit log can be read");
        // The API server may be in the middle of a line.
        let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.position += complete as u64;
        let lines = text[..complete].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        // `audit_from_now` may have begun within a line: such a rest is no JSON object.
        lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok()).map(Entry::from).collect()
    }

    /// As [`Self::read`], one user's only.
    pub fn read_of(&mut self, user: &User) -> Vec<Entry> {
        self.read().into_iter().filter(|entry| entry.is_by(user)).collect()
    }
}

impl Audit {
    /// Reads on until an entry is found; what comes with it and after it is read, too.
    pub async fn wait(&mut self, deadline: Duration, mut is_meant: impl FnMut(&Entry) -> bool) -> Entry {
        let audit = RefCell::new(self);
        let is_meant = RefCell::new(&mut is_meant);
        eventually(deadline, || async {
            let entries = audit.borrow_mut().read();
            let found = entries.into_iter().find(|entry| is_meant.borrow_mut()(entry));
            found.ok_or("no such request in the audit log")
        })
        .await
    }
}

/// `audit.k8s.io/v1` Event, as far as it is of use here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stage: String,
    #[serde(rename = "requestURI")]
    uri: String,
    verb: String,
    user: Name,
    impersonated_user: Option<Name>,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    response_status: Option<Code>,
    request_object: Option<Value>,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct Name {
    username: String,
}

#[derive(Deserialize)]
struct Code {
    #[serde(default)]
    code: u16,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

impl From<Line> for Entry {
    fn from(line: Line) -> Self {
        let ObjectRef { api_group, resource, subresource, namespace, name } = line.object_ref;
        Self {
            user: line.impersonated_user.unwrap_or(line.user).username,
            verb: line.verb,
            group: api_group,
            resource,
            subresource,
            namespace,
            name,
            uri: line.uri,
            user_agent: line.user_agent,
            stage: line.stage,
            code: line.response_status.map_or(0, |status| status.code),
            received: line.request_received_timestamp,
            at: line.stage_timestamp,
            request: line.request_object,
        }
    }
}
