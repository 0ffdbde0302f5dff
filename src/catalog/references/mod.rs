//! From a pod template to the Secrets it consumes.
//!
//! ```text
//! template ── table (where names stand) ──┐
//! its volumeMounts (who gets a volume) ───┼─> references, sorted, each once
//! annotations (what the API can't see) ───┘
//! ```
//!
//! What a malformed template names in a malformed way isn't a reference: no pod comes of it either. What the
//! template's ServiceAccount and SecretProviderClasses name is added by [`effective`](super::effective). What a
//! PersistentVolume names isn't seen.

#[cfg(test)]
mod guard;
mod path;
mod table;
#[cfg(test)]
mod tests;
mod users;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use self::{
    table::{CONTAINERS, KeysRule, Optional, ROWS, Row, SECRETS_STORE_DRIVER, VOLUMES, Within},
    users::{Mount, Mounts, Users},
};
use super::{
    policy::{Problem, ReferenceAnnotations},
    reference::{Containers, Keys, Origin, Reference, Rolls, Via},
};
use crate::facts::{
    Name,
    raw::{elements, text},
};

/// The most references that are kept of a workload.
pub const MAX_REFERENCES: usize = 1000;

/// What a pod template consumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// The references, sorted, each once; at most [`MAX_REFERENCES`].
    pub kept: Vec<Reference>,
    /// How many there are.
    pub count: usize,
    /// The SecretProviderClasses that its containers mount, sorted by name.
    pub provider_classes: Vec<ProviderClass>,
    /// What is too much.
    pub problems: Vec<Problem>,
}

/// A SecretProviderClass that a template's containers mount.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderClass {
    /// Its name; it lies in the workload's own namespace.
    pub name: Name,
    /// The containers that mount it as a folder, whose files the driver may refresh.
    pub live: Containers,
    /// The containers that mount it by `subPath`.
    pub sub_path: Containers,
}

/// Finds what a pod template (`{metadata, spec}`) consumes. Without `roll_volumes`, the whole cluster's
/// workloads are said to re-read their mounted files.
#[must_use]
pub fn references(template: &Value, annotations: &ReferenceAnnotations, roll_volumes: bool) -> References {
    let mut found = Found::new(annotations, roll_volumes);
    if let Some(spec) = template.get("spec") {
        let mounts = Mounts::of(spec);
        for container in containers(spec) {
            found.rows(Within::Container, container, &Users::container(container));
        }
        for volume in elements(spec, VOLUMES) {
            let Some(mount) = mounts.of_volume(volume) else { continue };
            found.volume(volume, mount);
        }
        found.rows(Within::Pod, spec, &Users::everyone());
    }
    for secret in &annotations.secrets {
        // Pods start without it, whatever their processes then do.
        found.add(secret, Keys::All, Via::Annotation, true, &Users::everyone());
    }
    found.finish()
}

/// The ServiceAccount that a template's pods run as.
#[must_use]
pub fn service_account(template: &Value) -> Name {
    let spec = template.get("spec").unwrap_or(&Value::Null);
    // `serviceAccount` is the deprecated alias; the API server fills in both.
    text(spec, "serviceAccountName").or_else(|| text(spec, "serviceAccount")).unwrap_or("default").into()
}

/// Whether a change of a Secret rolls the workload. The workload's own word comes first, then what the kind of
/// reference is, then who re-reads its files.
pub(super) fn rolls(annotations: &ReferenceAnnotations, roll_volumes: bool, secret: &str, via: Via) -> Rolls {
    if annotations.ignored.contains(secret) {
        Rolls::Ignored
    } else if !via.rolls_by_default() {
        Rolls::KindIsListedOnly
    } else if via.is_live_mount() && (!roll_volumes || annotations.reloads.contain(secret)) {
        Rolls::Reloads
    } else {
        Rolls::Yes
    }
}

/// All containers of a pod's spec.
fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    CONTAINERS.into_iter().flat_map(|list| elements(spec, list))
}

/// What a reference is but for its containers: those that differ in nothing else are one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    secret: Name,
    keys: Keys,
    via: Via,
    optional: bool,
}

/// References as they are found.
struct Found<'a> {
    annotations: &'a ReferenceAnnotations,
    roll_volumes: bool,
    /// Each name once in memory, however often it stands there.
    names: BTreeSet<Name>,
    references: BTreeMap<Identity, Users>,
    provider_classes: BTreeMap<Name, Mount>,
}

impl<'a> Found<'a> {
    fn new(annotations: &'a ReferenceAnnotations, roll_volumes: bool) -> Self {
        Self {
            annotations,
            roll_volumes,
            names: BTreeSet::new(),
            references: BTreeMap::new(),
            provider_classes: BTreeMap::new(),
        }
    }

    fn volume(&mut self, volume: &Value, mount: &Mount) {
        for row in rows(Within::Volume) {
            // One mounted both ways is refreshed in one place and not in the other: two references.
            self.row(row, row.via, volume, &mount.live);
            let via = if row.via.is_live_mount() { Via::SubPath } else { row.via };
            self.row(row, via, volume, &mount.sub_path);
        }
        if let Some(class) = provider_class(volume) {
            let class = self.name(class);
            self.provider_classes.entry(class).or_default().join(mount);
        }
    }

    fn rows(&mut self, within: Within, from: &Value, users: &Users) {
        for row in rows(within) {
            self.row(row, row.via, from, users);
        }
    }

    fn row(&mut self, row: &Row, via: Via, from: &Value, users: &Users) {
        if users.is_nobody() {
            return;
        }
        for place in path::find(from, row.path) {
            let Some(secret) = text(place, row.name) else { continue };
            let Some(keys) = self.keys(row.keys, place) else { continue };
            let optional = match row.optional {
                Optional::Field => place.get("optional").and_then(Value::as_bool).unwrap_or(false),
                Optional::Never => false,
                Optional::Always => true,
            };
            self.add(secret, keys, via, optional, users);
        }
    }

    fn keys(&mut self, rule: KeysRule, place: &Value) -> Option<Keys> {
        match rule {
            KeysRule::All => Some(Keys::All),
            KeysRule::One(field) => text(place, field).map(|key| Keys::named([self.name(key)])),
            KeysRule::Items => {
                let keys: Vec<Name> = elements(place, "items")
                    .filter_map(|item| text(item, "key"))
                    .map(|k| self.name(k))
                    .collect();
                Some(if keys.is_empty() { Keys::All } else { Keys::named(keys) })
            }
        }
    }

    fn add(&mut self, secret: &str, keys: Keys, via: Via, optional: bool, users: &Users) {
        let identity = Identity { secret: self.name(secret), keys, via, optional };
        self.references.entry(identity).or_default().join(users);
    }

    fn name(&mut self, text: &str) -> Name {
        if let Some(known) = self.names.get(text) {
            return known.clone();
        }
        let name = Name::from(text);
        self.names.insert(name.clone());
        name
    }

    fn finish(mut self) -> References {
        let count = self.references.len();
        let mut kept: Vec<Reference> = std::mem::take(&mut self.references)
            .into_iter()
            .take(MAX_REFERENCES)
            .map(|(Identity { secret, keys, via, optional }, users)| {
                let rolls = rolls(self.annotations, self.roll_volumes, &secret, via);
                let from = Origin::default();
                Reference {
                    secret,
                    keys,
                    via,
                    optional,
                    containers: users.into(),
                    rolls,
                    from,
                    synced: false,
                }
            })
            .collect();
        kept.sort();
        let provider_classes = self.provider_classes.into_iter().map(|(name, mount)| ProviderClass {
            name,
            live: mount.live.into(),
            sub_path: mount.sub_path.into(),
        });
        let too_many = || {
            Problem::new(
                "spec.template",
                format!("it has {count} references to Secrets; more than {MAX_REFERENCES} aren't followed"),
            )
        };
        References {
            kept,
            count,
            provider_classes: provider_classes.collect(),
            problems: (count > MAX_REFERENCES).then(too_many).into_iter().collect(),
        }
    }
}

fn rows(within: Within) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| row.within == within)
}

/// The SecretProviderClass that a volume names (secrets-store-csi-driver, `docs/book/src/getting-started/usage.md`).
fn provider_class(volume: &Value) -> Option<&str> {
    let csi = volume.get("csi")?;
    (text(csi, "driver") == Some(SECRETS_STORE_DRIVER))
        .then(|| csi.get("volumeAttributes").and_then(|attributes| text(attributes, "secretProviderClass")))
        .flatten()
}
