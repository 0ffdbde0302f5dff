//! All that a workload's pods consume: what its template and annotations say, what its ServiceAccount says, and what
//! the SecretProviderClasses that it mounts say.
//!
//! ```text
//! the workload itself ─────────────┐
//! its ServiceAccount ── Pull ──────┼─> effective references
//! its classes ── Csi, or SubPath ──┘
//! ```
//!
//! A class's Secret is there only as long as a pod mounts the class: the CSI driver makes it after the first pod's
//! mount and removes it after the last pod's end. So the absence of a *synced* Secret keeps no pod from
//! starting, isn't a change, and what appears after it is what the pods got: on a fresh install nothing waits
//! and nothing rolls. This holds for the class's references and for the workload's own ones of the same keys.
//!
//! Not followed are the versions of mounted objects (`SecretProviderClassPodStatus.status.objects`): a class without
//! `secretObjects` rolls nobody.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Declared,
    beside::{ProviderClassFacts, ServiceAccountFacts, SyncedSecret},
    reference::{Containers, Keys, Origin, Reference, Rolls, Via},
    references::{MAX_REFERENCES, ProviderClass, rolls},
};

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
    if account.is_none() && mounted.is_empty() {
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

fn of_class<'a>(
    declared: &'a Declared,
    mounted: &'a ProviderClass,
    class: &'a ProviderClassFacts,
) -> impl Iterator<Item = Reference> + 'a {
    let ways = [(Via::Csi, &mounted.live), (Via::SubPath, &mounted.sub_path)];
    ways.into_iter().filter(|(_, users)| !is_nobody(users)).flat_map(move |(via, users)| {
        class.synced.iter().map(move |SyncedSecret { name, keys }| Reference {
            secret: name.clone(),
            keys: keys.clone(),
            via,
            optional: false,
            containers: users.clone(),
            rolls: rolls(&declared.annotations, declared.roll_volumes, name, via),
            from: Origin::ProviderClass(class.id.name.clone()),
            synced: true,
        })
    })
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
