//! The containers that a value reaches, and how.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::containers;
use crate::{
    catalog::reference::Containers,
    facts::{
        Name,
        raw::{elements, text},
    },
};

/// The most containers that are told apart. Every reference keeps its own, so a template with thousands of both would
/// take the product of them.
const MAX_CONTAINERS: usize = 64;

/// The containers that get a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Users {
    everyone: bool,
    names: BTreeSet<Name>,
}

impl Users {
    /// All of the pod's.
    pub fn everyone() -> Self {
        Self { everyone: true, names: BTreeSet::new() }
    }

    /// This one. One without a name (in a manifest that no API server has seen) might be any.
    pub fn container(container: &Value) -> Self {
        text(container, "name")
            .map_or_else(Self::everyone, |name| Self { everyone: false, names: [name.into()].into() })
    }

    pub fn is_nobody(&self) -> bool {
        !self.everyone && self.names.is_empty()
    }

    pub fn join(&mut self, others: &Self) {
        self.everyone |= others.everyone;
        self.names.extend(others.names.iter().cloned());
        if self.everyone || self.names.len() > MAX_CONTAINERS {
            *self = Self::everyone();
        }
    }
}

impl From<Users> for Containers {
    fn from(users: Users) -> Self {
        if users.everyone { Self::All } else { Self::Named(users.names.into_iter().collect()) }
    }
}

/// The containers that mount a volume.
#[derive(Clone, Debug, Default)]
pub(super) struct Mount {
    /// As a folder: the kubelet refreshes its files.
    pub live: Users,
    /// By `subPath` or `subPathExpr`: bound when the container starts, as an environment variable is.
    pub sub_path: Users,
}

impl Mount {
    pub fn join(&mut self, other: &Self) {
        self.live.join(&other.live);
        self.sub_path.join(&other.sub_path);
    }
}

/// Who mounts which volume.
pub(super) struct Mounts<'a>(BTreeMap<&'a str, Mount>);

impl<'a> Mounts<'a> {
    pub fn of(spec: &'a Value) -> Self {
        let mut mounts: BTreeMap<&str, Mount> = BTreeMap::new();
        for container in containers(spec) {
            let users = Users::container(container);
            for mount in elements(container, "volumeMounts") {
                let Some(volume) = text(mount, "name") else { continue };
                let by_sub_path = text(mount, "subPath").or_else(|| text(mount, "subPathExpr")).is_some();
                let volume = mounts.entry(volume).or_default();
                if by_sub_path { &mut volume.sub_path } else { &mut volume.live }.join(&users);
            }
        }
        Self(mounts)
    }

    /// Who mounts this volume; none if nobody does.
    pub fn of_volume(&self, volume: &Value) -> Option<&Mount> {
        text(volume, "name").and_then(|name| self.0.get(name))
    }
}
