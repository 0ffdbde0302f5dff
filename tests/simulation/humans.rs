//! What people, GitOps tools and accidents do.

use std::{collections::BTreeMap, rc::Rc};

use uptake::{
    catalog::reference::Via,
    facts::{Name, Version},
    rollout::{RolloutFacts, Strategy},
};

use crate::{
    history::{Action, Ms, NAMESPACES, SECRETS},
    rng::Rng,
    store::{self, Datum, Owner, Secret, SecretKey, Sort, Template, Use, mode_text, secret_id},
    watches::Change,
    world::{Event, World},
};

impl World {
    /// The cluster as it is before Uptake comes.
    pub fn found(&mut self) {
        for name in 0..self.knobs.secrets {
            for of in 0..2 {
                if of == 0 || self.rng.permille(500) {
                    self.create_secret((of, name), None);
                }
            }
        }
        for _ in 0..self.knobs.workloads {
            let draw = self.rng.next();
            self.new_workload(draw);
        }
    }

    #[allow(clippy::too_many_lines)] // One arm an action.
    pub fn act(&mut self, action: Action) {
        match action {
            Action::SetKey { secret, key, silent } => {
                if let Some(place) = self.secret(secret) {
                    let value = self.new_value();
                    self.set_key(place, key, value, silent);
                }
            }
            Action::BadValue { secret, key } => {
                if let Some(place) = self.secret(secret) {
                    let value = self.new_value();
                    self.bad_values.insert(value);
                    self.set_key(place, key, value, false);
                }
            }
            Action::SetBack { secret, key, silent } => {
                if let Some(place) = self.secret(secret) {
                    let past = self.stood.get(&(place.0, place.1, Some(key)));
                    let value = past.and_then(|past| past.iter().rev().skip(1).find_map(|stood| stood.value));
                    if let Some(value) = value {
                        self.set_key(place, key, u32::try_from(value).unwrap_or(0), silent);
                    }
                }
            }
            Action::Storm { secret, key } => {
                if let Some(place) = self.secret(secret) {
                    for nth in 0..10 {
                        self.after(nth * 700, Event::Set { place, key });
                    }
                }
            }
            Action::Label { secret, moves_time } => {
                if let Some(place) = self.secret(secret) {
                    self.tell(|_| format!("a label of Secret {} is edited", secret_id(place)));
                    self.write_secret(place, |data, at| {
                        if moves_time {
                            for datum in data.values_mut() {
                                datum.written = at;
                            }
                        }
                    });
                }
            }
            Action::DeleteSecret { secret } => {
                if let Some(place) = self.secret(secret) {
                    self.delete_secret(place);
                }
            }
            Action::CreateSecret { secret, same } => {
                let gone: Vec<SecretKey> = self
                    .remembered
                    .keys()
                    .filter(|place| !self.secrets.contains_key(place))
                    .copied()
                    .collect();
                if !gone.is_empty() {
                    let place = gone[usize::try_from(secret).unwrap_or(0) % gone.len()];
                    let before = self.remembered.get(&place).cloned();
                    self.create_secret(place, before.filter(|_| same));
                }
            }
            Action::Recreate { secret, same } => {
                if let Some(place) = self.secret(secret) {
                    let before = self.secrets.get(&place).cloned();
                    self.delete_secret(place);
                    self.create_secret(place, before.filter(|_| same));
                }
            }
            Action::RemoveKey { secret, key } => {
                if let Some(place) = self.secret(secret) {
                    self.tell(|_| {
                        format!("key {} is removed from Secret {}", store::key_name(key), secret_id(place))
                    });
                    self.write_secret(place, |data, _| {
                        data.remove(&key);
                    });
                }
            }
            Action::SecretMode { secret, mode } => {
                if let Some(place) = self.secret(secret) {
                    self.tell(|_| {
                        format!("Secret {} says uptake.dev/rollout: {:?}", secret_id(place), mode_text(mode))
                    });
                    if let Some(secret) = self.secrets.get_mut(&place) {
                        secret.mode = mode;
                    }
                    self.write_secret(place, |_, _| {});
                }
            }
            Action::NewWorkload { draw } => self.new_workload(draw),
            Action::OperatorPause { on } => {
                let text = if on { "true" } else { "false" };
                self.tell(|_| format!("the operator is paused: {text}"));
                self.namespaces[2].paused = Some(text.into());
                self.touch_namespace(2);
            }
            Action::NamespaceMode { namespace, mode } => {
                self.tell(|_| {
                    format!(
                        "namespace {} says uptake.dev/rollout: {:?}",
                        store::namespace(namespace),
                        mode_text(mode)
                    )
                });
                self.namespaces[usize::from(namespace)].rollout = mode_text(mode);
                self.touch_namespace(usize::from(namespace));
            }
            Action::Evict { pod } => {
                if let Some(pod) = self.live_pod(pod) {
                    self.evict_pod(pod);
                }
            }
            Action::DeletePod { pod } => {
                if let Some(pod) = self.live_pod(pod) {
                    self.delete_pod(pod);
                }
            }
            Action::Crash { point, down } => {
                self.turn_to_any();
                self.plan_crash(point, down);
            }
            Action::Freeze { pause } => {
                self.turn_to_any();
                self.freeze(pause);
            }
            Action::Break { stream, relist, pause } => {
                self.tell(|_| {
                    format!("watch {stream} breaks{}", if relist { " and must list anew" } else { "" })
                });
                self.turn_to_any();
                self.break_stream(stream, relist, pause);
            }
            Action::Outage { stream, pause } => {
                self.tell(|_| format!("stream {stream} can't be listed for {pause} ms"));
                self.outage(stream, pause);
            }
            Action::LedgerOutage { pause } => {
                self.tell(|_| format!("the ledger can't be written for {pause} ms"));
                self.ledger_down = true;
                self.after(pause, Event::LedgerBack);
            }
            Action::LedgerOverwritten => {
                // Somebody touches it, say with a label: its version moves.
                let names: Vec<String> = self.ledger.keys().cloned().collect();
                for name in names {
                    let version = self.bump();
                    if let Some(object) = self.ledger.get_mut(&name) {
                        object.0 = version;
                    }
                }
                self.tell(|_| "somebody labels the ledger's objects".to_owned());
            }
            Action::LedgerDeleted { draw } => {
                let names: Vec<String> = self.ledger.keys().cloned().collect();
                if !names.is_empty() {
                    let name = &names[usize::try_from(draw % names.len() as u64).unwrap_or(0)];
                    self.tell(|_| format!("somebody deletes {name}"));
                    self.ledger.remove(name);
                    self.checks.ledger_was_deleted = true;
                    self.checks.forget_attempts();
                    self.bump();
                }
            }
            Action::Restore { draw } => self.restore(draw),
            Action::Compact => {
                if self.knobs.compacts {
                    self.compacted = self.version;
                    self.tell(|_| "old versions are compacted away".to_owned());
                }
            }
            other => self.act_on_workload(other),
        }
    }

    fn act_on_workload(&mut self, action: Action) {
        let (Action::EditReferences { workload, .. }
        | Action::Image { workload, .. }
        | Action::NeverReady { workload, .. }
        | Action::Scale { workload, .. }
        | Action::Restart { workload }
        | Action::Undo { workload }
        | Action::Pause { workload, .. }
        | Action::DeleteWorkload { workload, .. }
        | Action::RecreateWorkload { workload }
        | Action::Mode { workload, .. }
        | Action::ForeignStamp { workload, .. }
        | Action::GitOps { workload }
        | Action::GitOpsAlways { workload, .. }
        | Action::Deny { workload, .. }
        | Action::Strip { workload, .. }
        | Action::Quota { workload, .. }) = action
        else {
            return;
        };
        let there: Vec<usize> = (0..self.owners.len())
            .filter(|at| !self.owners[*at].gone && !self.owners[*at].deleting)
            .collect();
        if there.is_empty() {
            return;
        }
        let owner = there[usize::try_from(workload).unwrap_or(0) % there.len()];
        self.tell(|world| format!("{}: {action:?}", world.owners[owner].id()));
        let mut template = (*self.owners[owner].template).clone();
        match action {
            Action::EditReferences { draw, .. } => {
                template.uses = uses(&mut Rng::new(draw), self.knobs.secrets);
                template.image += 1;
                self.tell(|_| format!("  it uses {:?}", template.uses));
                self.set_template(owner, template, "human");
            }
            Action::Image { bad, .. } => {
                template.image += 1;
                template.bad = bad;
                self.set_template(owner, template, "human");
            }
            Action::NeverReady { on, .. } => {
                template.never_ready = on;
                self.set_template(owner, template, "human");
            }
            Action::Restart { .. } => {
                template.restarted += 1;
                self.set_template(owner, template, "kubectl-rollout");
            }
            Action::Undo { .. } => {
                if let Some(past) = self.owners[owner].past.last().cloned() {
                    self.set_template(owner, (*past).clone(), "kubectl-rollout");
                }
            }
            Action::ForeignStamp { draw, .. } => {
                let version = if draw % 2 == 0 { self.version + draw % 50 } else { draw % 5000 };
                let secret = template.uses.first().map_or(0, |one| one.secret);
                let stamp = format!("{}@{version}", store::secret_name(secret));
                template.stamp = Some(Rc::from(&*stamp));
                self.checks.forged.insert((owner, stamp));
                self.set_template(owner, template, "human");
            }
            Action::GitOps { .. } => self.git_applies(owner),
            Action::GitOpsAlways { on, .. } => {
                if on {
                    self.owners[owner].git.get_or_insert(Rc::new(Template { stamp: None, ..template }));
                }
                self.owners[owner].git_always = on;
            }
            Action::Scale { to, .. } => {
                self.owners[owner].desired = to;
                self.owners[owner].generation += 1;
                self.touch(owner);
            }
            Action::Pause { on, .. }
                if self.owners[owner].sort == Sort::Deployment && self.owners[owner].paused != on =>
            {
                self.owners[owner].paused = on;
                self.owners[owner].generation += 1;
                self.owners[owner].rollout.paused = on;
                self.touch(owner);
            }
            Action::DeleteWorkload { slow, .. } => self.delete_workload(owner, slow),
            Action::RecreateWorkload { .. } => {
                self.delete_workload(owner, false);
                self.reborn(owner);
            }
            Action::Mode { mode, .. } => {
                self.owners[owner].mode = mode;
                self.touch(owner);
            }
            Action::Deny { on, .. } => self.owners[owner].denied = on,
            Action::Strip { on, .. } => self.owners[owner].stripped = on,
            Action::Quota { on, .. } => {
                self.owners[owner].quota = on;
                self.wake(owner);
            }
            _ => {}
        }
    }

    /// Git's template is applied as a whole: the stamp goes.
    pub fn git_applies(&mut self, owner: usize) {
        if self.owners[owner].gone || self.owners[owner].deleting {
            return;
        }
        let git = self.owners[owner].git.clone();
        let template = match git {
            Some(git) => (*git).clone(),
            None => Template { stamp: None, ..(*self.owners[owner].template).clone() },
        };
        if template != *self.owners[owner].template {
            self.tell(|world| format!("Git is applied to {}", world.owners[owner].id()));
            self.checks.reverted.insert(self.owners[owner].uid);
        }
        self.set_template(owner, template, "gitops");
    }

    fn secret(&self, number: u64) -> Option<SecretKey> {
        let there: Vec<SecretKey> = self.secrets.keys().copied().collect();
        (!there.is_empty()).then(|| there[usize::try_from(number).unwrap_or(0) % there.len()])
    }

    fn live_pod(&self, draw: u64) -> Option<usize> {
        let live: Vec<usize> = (0..self.pods.len()).filter(|pod| self.pods[*pod].is_live()).collect();
        (!live.is_empty()).then(|| live[usize::try_from(draw % live.len() as u64).unwrap_or(0)])
    }

    fn new_value(&mut self) -> u32 {
        u32::try_from(self.rng.below(1 << 30)).unwrap_or(0)
    }

    /// One change of a storm.
    pub fn set_anew(&mut self, place: SecretKey, key: u8) {
        let value = self.new_value();
        self.set_key(place, key, value, false);
    }

    fn set_key(&mut self, place: SecretKey, key: u8, value: u32, silent: bool) {
        self.tell(|_| {
            let silent = if silent { ", and managedFields keep their time" } else { "" };
            format!("Secret {}: {} becomes {value}{silent}", secret_id(place), store::key_name(key))
        });
        self.write_secret(place, |data, at| match data.get_mut(&key) {
            // An apply with `stringData` leaves the first owner's time.
            Some(datum) if silent => datum.value = value,
            _ => {
                data.insert(key, Datum { value, written: at });
            }
        });
    }

    /// A new version of it, with the same data.
    pub fn rewrite_secret(&mut self, place: SecretKey) {
        self.write_secret(place, |_, _| {});
    }

    fn write_secret(&mut self, place: SecretKey, change: impl FnOnce(&mut BTreeMap<u8, Datum>, Ms)) {
        let at = self.stamp_time(self.now);
        let Some(secret) = self.secrets.get(&place) else { return };
        let mut data = secret.data.clone();
        change(&mut data, at);
        let version = self.bump();
        let moved = self.secrets.get(&place).is_some_and(|before| values(&before.data) != values(&data));
        if let Some(secret) = self.secrets.get_mut(&place) {
            secret.data = data;
            secret.version = version;
            self.remembered.insert(place, secret.clone());
        }
        self.after_write(place, moved);
        self.log_secret(place);
    }

    fn after_write(&mut self, place: SecretKey, moved: bool) {
        if self.ever {
            self.tally.changes += u64::from(moved);
            // A label's edit counts too: to who didn't watch, it may have been a change and back.
            self.checks.changed_namespaces.insert(place.0);
        }
        self.note_values(place);
        let version = self.version;
        self.tell(|_| format!("  at version {version}"));
    }

    pub fn delete_secret(&mut self, place: SecretKey) {
        if let Some(secret) = self.secrets.remove(&place) {
            self.remembered.insert(place, secret);
            self.bump();
            self.tell(|_| format!("Secret {} is deleted", secret_id(place)));
            self.after_write(place, true);
            self.log(SECRETS, Change::SecretGone(secret_id(place)));
        }
    }

    pub fn create_secret(&mut self, place: SecretKey, like: Option<Secret>) {
        let at = self.stamp_time(self.now);
        let uid = self.new_uid();
        let version = self.bump();
        let mut data = BTreeMap::new();
        match like {
            Some(like) => {
                data = like.data;
                for datum in data.values_mut() {
                    datum.written = at;
                }
            }
            None => {
                for key in 0..store::KEYS {
                    if key == 0 || self.rng.permille(500) {
                        data.insert(key, Datum { value: self.new_value(), written: at });
                    }
                }
            }
        }
        self.tell(|_| format!("Secret {} is created", secret_id(place)));
        let secret = Secret { uid, version, created: at, data, mode: 0, release: None };
        self.remembered.insert(place, secret.clone());
        self.secrets.insert(place, secret);
        self.after_write(place, true);
        self.log_secret(place);
    }

    fn touch_namespace(&mut self, number: usize) {
        let version = self.bump();
        self.namespaces[number].version = Version(version);
        let facts = self.namespaces[number].clone();
        self.log(NAMESPACES, Change::Namespace(facts));
    }

    pub fn new_workload(&mut self, draw: u64) {
        let mut rng = Rng::new(draw);
        let sort = rng.pick(&[Sort::Deployment, Sort::Deployment, Sort::StatefulSet, Sort::DaemonSet]);
        let template = Rc::new(Template {
            image: u32::try_from(rng.below(1000)).unwrap_or(0),
            bad: false,
            never_ready: false,
            restarted: 0,
            uses: uses(&mut rng, self.knobs.secrets),
            stamp: None,
        });
        let name = format!("w{}", self.owners.len());
        let strategy = match (sort, rng.below(10)) {
            (Sort::Deployment, _) => Strategy::Automatic,
            (_, 0..=1) => Strategy::OnDelete,
            (Sort::StatefulSet, 2..=3) => Strategy::Partition(i32::try_from(rng.between(1, 2)).unwrap_or(1)),
            _ => Strategy::Automatic,
        };
        let owner = Owner {
            sort,
            namespace: rng.pick(&[0, 0, 0, 1]),
            name: Name::from(name),
            uid: self.new_uid(),
            version: 0,
            gone: false,
            deleting: false,
            current: template.clone(),
            template,
            past: Vec::new(),
            mode: rng.pick(&[0, 0, 0, 0, 0, 0, 1, 2, 3, 4]),
            desired: rng.pick(&[1, 2, 2, 3]),
            paused: false,
            strategy,
            unavailable: rng.pick(&[0, 1]),
            deadline: (sort == Sort::Deployment)
                .then(|| rng.pick(&[Some(60_000), Some(600_000), None]))
                .flatten(),
            generation: 1,
            rollout: RolloutFacts::default(),
            shown: RolloutFacts::default(),
            progressed: self.now,
            moved: self.now,
            trail: Vec::new(),
            writer: Some(Name::from("human")),
            git: None,
            git_always: false,
            denied: false,
            stripped: false,
            quota: false,
            awake: false,
        };
        self.place_workload(owner);
    }

    fn place_workload(&mut self, owner: Owner) {
        self.tell(|_| {
            format!(
                "{} is created: replicas {}, {:?}, mode {}, uses {:?}",
                owner.id(),
                owner.desired,
                owner.strategy,
                owner.mode,
                owner.template.uses
            )
        });
        self.owners.push(owner);
        self.touch(self.owners.len() - 1);
    }

    fn delete_workload(&mut self, owner: usize, slow: bool) {
        if slow {
            self.owners[owner].deleting = true;
            self.touch(owner);
            let delay = self.rng.between(1_000, 30_000);
            self.after(delay, Event::OwnerGone(owner));
        } else {
            self.workload_ends(owner);
        }
    }

    pub fn workload_ends(&mut self, owner: usize) {
        if self.owners[owner].gone {
            return;
        }
        self.owners[owner].gone = true;
        self.bump();
        let (stream, id) = (self.owners[owner].sort.stream(), self.owners[owner].id());
        self.log(stream, Change::WorkloadGone(id));
        for pod in 0..self.pods.len() {
            if self.pods[pod].owner == owner {
                self.delete_pod(pod);
            }
        }
    }

    /// The same workload again, under a new identity.
    fn reborn(&mut self, owner: usize) {
        let uid = self.new_uid();
        let old = &self.owners[owner];
        let template = Rc::new(Template { stamp: None, ..(*old.template).clone() });
        let new = Owner {
            uid,
            gone: false,
            deleting: false,
            current: template.clone(),
            template,
            past: Vec::new(),
            generation: 1,
            rollout: RolloutFacts::default(),
            shown: RolloutFacts::default(),
            progressed: self.now,
            moved: self.now,
            trail: Vec::new(),
            awake: false,
            ..old.clone()
        };
        self.place_workload(new);
    }
}

fn values(data: &BTreeMap<u8, Datum>) -> Vec<(u8, u32)> {
    data.iter().map(|(key, datum)| (*key, datum.value)).collect()
}

/// What a template consumes.
pub fn uses(rng: &mut Rng, secrets: u8) -> Rc<[Use]> {
    let mut all = Vec::new();
    for _ in 0..rng.between(1, 3) {
        let key = rng.pick(&[Some(0), Some(0), Some(1), Some(2), None]);
        all.push(Use {
            secret: u8::try_from(rng.below(u64::from(secrets))).unwrap_or(0),
            key,
            // A Secret's first key is always there at first; others must be optional to start at all.
            optional: key.is_some_and(|key| key > 0) || rng.permille(200),
            container: rng.pick(&[None, Some(0), Some(1)]),
            via: if key.is_some() { Via::Env } else { Via::EnvFrom },
        });
    }
    all.sort();
    all.dedup_by_key(|one| (one.secret, one.key, one.optional));
    all.into()
}
