//! What the cluster tests left: notes of who is an operator, and the API server's log of what such users did.

use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A cluster writes its log when its processes have ended, which may be after the tests.
const ENDED: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// A ClusterRole, and a Role in its own namespace.
    Cluster,
    /// Roles only.
    Roles,
    /// A ClusterRole with a custom kind, and a Role in its own namespace.
    Rollouts,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Operator {
    pub user: String,
    pub own_namespace: String,
    pub rights: Rights,
}

#[derive(Clone, Debug)]
pub struct Asked {
    pub verb: String,
    pub group: String,
    pub resource: String,
    /// Empty: the whole cluster.
    pub namespace: String,
    pub name: String,
    pub uri: String,
    /// The right was missing; a refusal by admission is something else.
    pub is_forbidden: bool,
    /// The right was there, whatever came of the request.
    pub is_allowed: bool,
}

/// Everything that operators asked for, with who it was.
pub fn all() -> Vec<(Operator, Asked)> {
    let folder = folder();
    let notes: Vec<PathBuf> = fs::read_dir(&folder)
        .map(|files| files.flatten().map(|file| file.path()).collect::<Vec<_>>())
        .unwrap_or_default()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "operators"))
        .collect();
    assert!(!notes.is_empty(), "nothing in {}: run the cluster tests first (make test)", folder.display());
    notes.iter().flat_map(|note| of_run(note)).collect()
}

fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from);
    target.join("cluster/audit")
}

fn of_run(note: &Path) -> Vec<(Operator, Asked)> {
    let operators: HashMap<String, Operator> = fs::read_to_string(note)
        .expect("it was just found")
        .lines()
        .map(|line| serde_json::from_str::<Operator>(line).expect("a note"))
        .map(|operator| (operator.user.clone(), operator))
        .collect();
    let log = note.with_extension("log");
    let end = Instant::now() + ENDED;
    while !log.exists() {
        assert!(Instant::now() < end, "no {}: its cluster hasn't ended", log.display());
        sleep(Duration::from_millis(50));
    }
    let text = fs::read_to_string(&log).expect("a log");
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .filter_map(|line| {
            Some((operators.get(line["user"]["username"].as_str()?)?.clone(), Asked::of(&line)))
        })
        .collect()
}

impl Asked {
    fn of(line: &Value) -> Self {
        let text =
            |pointer: &str| line.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let decision = text("/annotations/authorization.k8s.io~1decision");
        Self {
            verb: text("/verb"),
            group: text("/objectRef/apiGroup"),
            resource: text("/objectRef/resource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            uri: text("/requestURI"),
            is_forbidden: decision == "forbid",
            is_allowed: decision == "allow",
        }
    }
}
