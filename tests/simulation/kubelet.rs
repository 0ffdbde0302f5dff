//! Pods: their admission, their containers' start, their end.

use std::rc::Rc;

use uptake::{decide::Trouble, facts::Name};

use crate::{
    store::{Pod, Sort, Template},
    world::{Event, World},
};

impl World {
    /// A controller makes a pod. It has its creation time before its place in the store.
    pub fn make_pod(&mut self, owner: usize, set: Option<usize>, ordinal: u32, template: &Rc<Template>) {
        let created = self.stamp_time(self.now);
        let slow = self.knobs.slow_admission && !self.quiet && self.rng.permille(250);
        if let Some(set) = set.filter(|_| slow) {
            self.sets[set].pending += 1;
            let delay = self.rng.between(200, 12_000);
            self.after(delay, Event::Admitted { owner, set: Some(set), ordinal, created });
            return;
        }
        self.bear(owner, set, ordinal, template, created);
    }

    pub fn admitted(&mut self, owner: usize, set: Option<usize>, ordinal: u32, created: i64) {
        let Some(set_number) = set else { return };
        self.sets[set_number].pending = self.sets[set_number].pending.saturating_sub(1);
        if self.owners[owner].gone || self.owners[owner].deleting {
            return;
        }
        let template = self.sets[set_number].template.clone();
        self.bear(owner, set, ordinal, &template, created);
    }

    fn bear(
        &mut self,
        owner: usize,
        set: Option<usize>,
        ordinal: u32,
        template: &Rc<Template>,
        created: i64,
    ) {
        let born = self.bump_pods();
        let born = if self.knobs.separate_stores { self.version.max(born) } else { born };
        let uid = self.new_uid();
        let above = match set {
            Some(set) => self.sets[set].name.clone(),
            None => self.owners[owner].name.clone(),
        };
        let name = if self.owners[owner].sort == Sort::StatefulSet {
            format!("{above}-{ordinal}")
        } else {
            format!("{above}-p{}", self.serial())
        };
        let pod = self.pods.len();
        self.tell(|_| {
            format!(
                "pod {name} is born at {born}{}",
                template.stamp.as_deref().map(|stamp| format!(" with stamp {stamp}")).unwrap_or_default()
            )
        });
        self.pods.push(Pod {
            uid,
            name: Name::from(name),
            born,
            changed: born,
            created,
            owner,
            set,
            ordinal,
            template: template.clone(),
            started: [false; 2],
            ready: false,
            ended: false,
            deleting: false,
            gone: None,
            trouble: None,
        });
        let delay = if self.rng.permille(100) {
            self.rng.between(2_000, 30_000)
        } else {
            self.rng.between(100, 1_500)
        };
        self.after(delay, Event::Container { pod, which: 0 });
        self.wake(owner);
    }

    /// A pod's status changes: after all that has a version now.
    fn touch_pod(&mut self, pod: usize) -> &mut Pod {
        let it = &mut self.pods[pod];
        it.changed = self.version + 1;
        it
    }

    /// A container starts, if the kubelet has all that it needs.
    pub fn start_container(&mut self, pod: usize, which: u8) {
        let it = &self.pods[pod];
        if it.gone.is_some() || it.ended || it.deleting {
            return;
        }
        let template = it.template.clone();
        if template.bad {
            self.touch_pod(pod).trouble = Some(Trouble::ImagePull);
            return;
        }
        let namespace = self.owners[it.owner].namespace;
        let missing = template
            .uses
            .iter()
            .filter(|one| one.container.is_none_or(|container| container == which) && !one.optional)
            .any(|one| {
                let secret = self.secrets.get(&(namespace, one.secret));
                secret.is_none_or(|secret| one.key.is_some_and(|key| !secret.data.contains_key(&key)))
            });
        if missing {
            self.touch_pod(pod).trouble = Some(Trouble::Config);
            let delay = self.rng.between(2_000, 12_000);
            self.after(delay, Event::Container { pod, which });
            return;
        }
        self.touch_pod(pod).started[usize::from(which)] = true;
        self.pods[pod].trouble = None;
        if which == 0 {
            let delay = self.rng.between(0, 2_000);
            self.after(delay, Event::Container { pod, which: 1 });
        } else if !template.never_ready && !self.is_bad(namespace, &template) {
            let delay = self.rng.between(200, 4_000);
            self.after(delay, Event::Ready(pod));
        }
    }

    /// Whether a program can't work with what its Secrets say now.
    fn is_bad(&self, namespace: u8, template: &Template) -> bool {
        !self.bad_values.is_empty()
            && template.uses.iter().any(|one| {
                let data = self.secrets.get(&(namespace, one.secret)).map(|secret| &secret.data);
                let mut consumed =
                    data.into_iter().flatten().filter(|(key, _)| one.key.is_none_or(|name| name == **key));
                consumed.any(|(_, datum)| self.bad_values.contains(&datum.value))
            })
    }

    pub fn pod_ready(&mut self, pod: usize) {
        let it = &self.pods[pod];
        if it.is_live() && !it.ready {
            let owner = it.owner;
            self.touch_pod(pod).ready = true;
            self.wake(owner);
        }
    }

    pub fn delete_pod(&mut self, pod: usize) {
        if self.pods[pod].deleting || self.pods[pod].gone.is_some() {
            return;
        }
        self.touch_pod(pod).deleting = true;
        self.tell(|world| format!("pod {} is being deleted", world.pods[pod].name));
        let delay = self.rng.between(0, 5_000);
        self.after(delay, Event::PodGone(pod));
        let owner = self.pods[pod].owner;
        self.wake(owner);
    }

    pub fn pod_gone(&mut self, pod: usize) {
        if self.pods[pod].gone.is_none() {
            let version = self.bump_pods();
            self.pods[pod].gone = Some(version);
            let owner = self.pods[pod].owner;
            self.wake(owner);
        }
    }

    /// A pod fails for good, as an evicted one does: it stays listed.
    pub fn evict_pod(&mut self, pod: usize) {
        if self.pods[pod].is_live() {
            self.touch_pod(pod).ended = true;
            self.pods[pod].ready = false;
            self.tell(|world| format!("pod {} is evicted and stays as Failed", world.pods[pod].name));
            let owner = self.pods[pod].owner;
            self.wake(owner);
            if self.owners[owner].sort != Sort::Deployment {
                // Their controllers delete a failed pod to make another.
                self.delete_pod(pod);
            }
        }
    }
}
