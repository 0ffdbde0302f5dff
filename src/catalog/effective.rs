//! All that a workload's pods consume: what its template and annotations say, what its ServiceAccount says, and what
//! the SecretProviderClasses that it mounts say.
//!
//! ```text
//! the workload itself ─────────────┐
//! its ServiceAccount ── Pull ──────┼─> effective references
//! its classes ── Csi, or SubPath ──┘   (their synced Secrets, and what they mount)
//! ```
//!
//! A class's Secret is there only as long as a pod mounts the class: the CSI driver makes it after the first pod's
//! mount and removes it after the last pod's end. So the absence of a *synced* Secret keeps no pod from
//! starting, isn't a change, and what appears after it is what the pods got: on a fresh install nothing waits
//! and nothing rolls. This holds for the class's references and for the workload's own ones of the same keys.
//!
//! What a class mounts is a reference of its own, to `secretproviderclass/NAME`: the versions of its objects as the
//! driver reports them ([`mounted`](super::mounted)).

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Declared,
    beside::{ProviderClassFacts, ServiceAccountFacts, SyncedSecret},
    reference::{Containers, Keys, Origin, Reference, Rolls, Via},
    references::{MAX_REFERENCES, ProviderClass, rolls},
};
use crate::facts::{Name, class_source};

/// The references that are kept, sorted, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// At most [`MAX_REFERENCES`].
    pub kept: Arc<[Reference]>,
    /// How many.
    pub count: usize,
}

/// All references of a workload. `account` is its ServiceAccount and `class` finds a SecretProviderClass of its
/// namespace; none where there is none or it isn't known.
pub fn effective<'a>(
    declared: &Declared,
    account: Option<&ServiceAccountFacts>,
    class: impl Fn(&str) -> Option<&'a ProviderClassFacts>,
) -> Effective {
    let mounted: Vec<(&ProviderClass, &ProviderClassFacts)> =
        declared.provider_classes.iter().filter_map(|one| Some((one, class(&one.name)?))).collect();
    let account = account.filter(|_| inherits(declared));
    if account.is_none() && declared.provider_classes.is_empty() {
        return Effective { kept: Arc::clone(&declared.references), count: declared.count };
    }
    let own = declared.references.iter().map(|reference| Reference {
        synced: mounted.iter().any(|(_, class)| syncs(class, reference)),
        ..reference.clone()
    });
    let mut all: BTreeSet<Reference> = own.collect();
    let kept = all.len();
    all.extend(account.into_iter().flat_map(inherited));
    all.extend(mounted.iter().flat_map(|(one, class)| of_class(declared, one, class)));
    all.extend(declared.provider_classes.iter().flat_map(|one| of_mount(declared, one)));
    let count = declared.count + all.len() - kept;
    Effective { kept: all.into_iter().take(MAX_REFERENCES).collect(), count }
}

/// The admission plugin gives a pod its ServiceAccount's pull secrets when it has none of its own (kubernetes
/// `plugin/pkg/admission/serviceaccount/admission.go`, `Admit`).
fn inherits(declared: &Declared) -> bool {
    !declared.references.iter().any(|reference| reference.via == Via::Pull)
}

fn inherited(account: &ServiceAccountFacts) -> impl Iterator<Item = Reference> {
    account.pull_secrets.iter().map(|secret| Reference {
        secret: secret.clone(),
        keys: Keys::All,
        via: Via::Pull,
        // As with the template's own: the kubelet goes on without.
        optional: true,
        containers: Containers::All,
        rolls: Rolls::KindIsListedOnly,
        from: Origin::ServiceAccount(account.id.name.clone()),
        synced: false,
    })
}

/// The ways that a class is mounted, with the containers that do.
fn ways(mounted: &ProviderClass) -> impl Iterator<Item = (Via, &Containers)> {
    let ways = [(Via::Csi, &mounted.live), (Via::SubPath, &mounted.sub_path)];
    ways.into_iter().filter(|(_, users)| !is_nobody(users))
}

/// What the driver syncs from a class.
fn of_class<'a>(
    declared: &'a Declared,
    mounted: &'a ProviderClass,
    class: &'a ProviderClassFacts,
) -> impl Iterator<Item = Reference> + 'a {
    ways(mounted).flat_map(move |way| {
        class.synced.iter().map(move |SyncedSecret { name, keys }| {
            of_driver(declared, mounted, way, name.clone(), keys.clone())
        })
    })
}

/// What the driver mounts of a class.
fn of_mount<'a>(declared: &'a Declared, mounted: &'a ProviderClass) -> impl Iterator<Item = Reference> + 'a {
    let source = class_source(&mounted.name);
    ways(mounted).map(move |way| of_driver(declared, mounted, way, source.clone(), Keys::All))
}

fn of_driver(
    declared: &Declared,
    mounted: &ProviderClass,
    (via, users): (Via, &Containers),
    secret: Name,
    keys: Keys,
) -> Reference {
    Reference {
        rolls: rolls(&declared.annotations, declared.roll_volumes, &secret, via),
        secret,
        keys,
        via,
        optional: false,
        containers: users.clone(),
        from: Origin::ProviderClass(mounted.name.clone()),
        synced: true,
    }
}

fn is_nobody(users: &Containers) -> bool {
    matches!(users, Containers::Named(names) if names.is_empty())
}

/// Whether the driver brings about all that a reference needs.
fn syncs(class: &ProviderClassFacts, reference: &Reference) -> bool {
    let covers = |synced: &SyncedSecret| match (&reference.keys, &synced.keys) {
        (Keys::All, _) | (_, Keys::All) => true,
        (Keys::Named(wanted), Keys::Named(there)) => wanted.iter().all(|key| there.contains(key)),
    };
    class.synced.iter().any(|synced| synced.name == reference.secret && covers(synced))
}

#[cfg(test)]
mod tests;
