//! The controllers of Deployments (with ReplicaSets), StatefulSets and DaemonSets, as far as rollouts show.

use std::rc::Rc;

use uptake::{facts::Name, rollout::Strategy};

use crate::{
    store::{ReplicaSet, Sort, Template},
    world::{Event, World},
};

impl World {
    pub fn control(&mut self, owner: usize) {
        self.owners[owner].awake = false;
        if self.owners[owner].gone || self.owners[owner].deleting {
            return;
        }
        self.owners[owner].rollout.observed_generation = self.owners[owner].generation;
        match self.owners[owner].sort {
            Sort::Deployment => self.control_deployment(owner),
            Sort::StatefulSet | Sort::DaemonSet => self.control_ordinals(owner),
        }
        self.report_status(owner);
    }

    fn control_deployment(&mut self, owner: usize) {
        let (desired, unavailable) = (self.owners[owner].desired, self.owners[owner].unavailable);
        let template = self.owners[owner].template.clone();
        let newest = self.sets.iter().position(|set| set.owner == owner && *set.template == *template);
        if self.owners[owner].paused {
            self.scale_paused(owner, desired);
        } else {
            let newest = newest.unwrap_or_else(|| self.make_set(owner, &template));
            self.roll_sets(owner, newest, desired, unavailable);
        }
        let sets: Vec<usize> = (0..self.sets.len()).filter(|set| self.sets[*set].owner == owner).collect();
        for set in sets {
            self.control_set(owner, set);
        }
    }

    fn make_set(&mut self, owner: usize, template: &Rc<Template>) -> usize {
        let uid = self.new_uid();
        let name = Name::from(format!("{}-{}", self.owners[owner].name, self.serial()));
        self.bump();
        self.sets.push(ReplicaSet { uid, name, owner, template: template.clone(), want: 0, pending: 0 });
        self.sets.len() - 1
    }

    /// A paused Deployment is scaled, but not rolled.
    fn scale_paused(&mut self, owner: usize, desired: u32) {
        let largest = (0..self.sets.len())
            .filter(|set| self.sets[*set].owner == owner)
            .max_by_key(|set| self.sets[*set].want);
        let sum: u32 = self.sets.iter().filter(|set| set.owner == owner).map(|set| set.want).sum();
        if let Some(largest) = largest {
            let others = sum - self.sets[largest].want;
            self.sets[largest].want = desired.saturating_sub(others);
        }
    }

    /// As `rolling.go` of the deployment controller: `maxSurge` 1, `maxUnavailable` 0 or 1.
    fn roll_sets(&mut self, owner: usize, newest: usize, desired: u32, unavailable: u32) {
        let of = |world: &Self, set: usize| world.sets[set].owner == owner;
        let all: Vec<usize> = (0..self.sets.len()).filter(|set| of(self, *set)).collect();
        let total: u32 = all.iter().map(|set| self.sets[*set].want).sum();
        let want = self.sets[newest].want;
        if want > desired {
            self.sets[newest].want = desired;
        } else if want < desired && total < desired + 1 {
            self.sets[newest].want += (desired + 1 - total).min(desired - want);
        }
        let total: u32 = all.iter().map(|set| self.sets[*set].want).sum();
        let least = desired.saturating_sub(unavailable);
        let ready = |world: &Self, set: usize| {
            let count =
                world.pods.iter().filter(|pod| pod.set == Some(set) && pod.is_live() && pod.ready).count();
            u32::try_from(count).unwrap_or(0)
        };
        let new_unready = self.sets[newest].want.saturating_sub(ready(self, newest));
        let mut room = total.saturating_sub(least).saturating_sub(new_unready);
        // Broken old pods go first: they serve nobody.
        for &set in all.iter().filter(|set| **set != newest) {
            let broken = self.sets[set].want.saturating_sub(ready(self, set)).min(room);
            self.sets[set].want -= broken;
            room -= broken;
        }
        let available: u32 = all.iter().map(|set| ready(self, *set)).sum();
        let mut room = available.saturating_sub(least);
        for &set in all.iter().filter(|set| **set != newest) {
            let fewer = self.sets[set].want.min(room);
            self.sets[set].want -= fewer;
            room -= fewer;
        }
    }

    /// A ReplicaSet makes and deletes pods of its own template.
    fn control_set(&mut self, owner: usize, set: usize) {
        let mut live: Vec<usize> = (0..self.pods.len())
            .filter(|pod| self.pods[*pod].set == Some(set) && self.pods[*pod].is_live())
            .collect();
        let want = self.sets[set].want as usize;
        let there = live.len() + self.sets[set].pending as usize;
        if there < want {
            let quota = self.owners[owner].quota;
            self.owners[owner].rollout.replica_failure = quota.then(|| "exceeded quota".into());
            if quota {
                return;
            }
            let template = self.sets[set].template.clone();
            for _ in there..want {
                self.make_pod(owner, Some(set), 0, &template);
            }
        } else if live.len() > want {
            live.sort_by_key(|pod| (self.pods[*pod].ready, std::cmp::Reverse(*pod)));
            for pod in live.iter().take(live.len() - want) {
                self.delete_pod(*pod);
            }
        }
        if self.owners[owner].rollout.replica_failure.is_some() && !self.owners[owner].quota {
            self.owners[owner].rollout.replica_failure = None;
        }
    }

    /// StatefulSets and DaemonSets: one pod a place, replaced one after the other.
    fn control_ordinals(&mut self, owner: usize) {
        let it = &self.owners[owner];
        let (desired, strategy, sort) = (it.desired, it.strategy, it.sort);
        let (update, current) = (it.template.clone(), it.current.clone());
        let stateful = sort == Sort::StatefulSet;
        let mine = |world: &Self| -> Vec<usize> {
            (0..world.pods.len())
                .filter(|pod| world.pods[*pod].owner == owner && world.pods[*pod].gone.is_none())
                .collect()
        };
        let pods = mine(self);
        for &pod in &pods {
            if self.pods[pod].ordinal >= desired {
                self.delete_pod(pod);
            }
        }
        let partition = match strategy {
            Strategy::Partition(partition) => u32::try_from(partition).unwrap_or(0),
            Strategy::Automatic | Strategy::OnDelete => 0,
        };
        let rolled = |world: &Self, ordinal: u32| {
            (ordinal..desired).all(|above| {
                above == ordinal
                    || world.pods.iter().any(|pod| {
                        pod.owner == owner
                            && pod.gone.is_none()
                            && pod.ordinal == above
                            && *pod.template == *update
                    })
            })
        };
        for ordinal in 0..desired {
            let there = pods.iter().find(|pod| self.pods[**pod].ordinal == ordinal);
            match there {
                None => {
                    // While a StatefulSet rolls, a pod below those that were replaced is made of the old revision.
                    let old = stateful
                        && strategy != Strategy::OnDelete
                        && (ordinal < partition || !rolled(self, ordinal));
                    let template = if old { current.clone() } else { update.clone() };
                    if self.owners[owner].quota {
                        return;
                    }
                    self.make_pod(owner, None, ordinal, &template);
                    if stateful {
                        return;
                    }
                }
                Some(&pod) if stateful && !self.pods[pod].ready => return,
                Some(_) => {}
            }
        }
        if strategy == Strategy::OnDelete {
            return;
        }
        let old = pods
            .iter()
            .copied()
            .filter(|pod| self.pods[*pod].ordinal >= partition && self.pods[*pod].ordinal < desired)
            .filter(|pod| *self.pods[*pod].template != *update)
            .max_by_key(|pod| (!self.pods[*pod].ready, self.pods[*pod].ordinal));
        let busy =
            pods.iter().any(|pod| self.pods[*pod].deleting || !self.pods[*pod].ready && Some(*pod) != old);
        if let Some(old) = old {
            if !busy {
                self.delete_pod(old);
            }
        } else if !busy && partition == 0 && pods.len() as u32 == desired {
            self.owners[owner].current = update;
        }
    }

    fn report_status(&mut self, owner: usize) {
        let now = self.now;
        let it = &self.owners[owner];
        let mine = || self.pods.iter().filter(|pod| pod.owner == owner && pod.is_live());
        let count = |n: usize| i32::try_from(n).unwrap_or(0);
        let mut new = it.rollout.clone();
        new.desired = i32::try_from(it.desired).unwrap_or(0);
        new.replicas = count(mine().count());
        new.updated = count(mine().filter(|pod| *pod.template == *it.template).count());
        new.ready = count(mine().filter(|pod| pod.ready).count());
        new.available = new.ready;
        new.strategy = it.strategy;
        new.revisions_equal = it.sort != Sort::StatefulSet || *it.current == *it.template;
        let moved = (new.updated, new.ready, new.replicas)
            != (it.rollout.updated, it.rollout.ready, it.rollout.replicas);
        let complete = new.updated >= new.desired && new.replicas == new.updated && new.ready >= new.desired;
        let (deadline, paused) = (it.deadline, it.paused);
        let mut progressed = it.progressed;
        if moved || complete || paused {
            progressed = now;
        }
        if complete || progressed == now {
            new.deadline_exceeded = None;
        }
        if let Some(deadline) = deadline.filter(|_| !complete && !paused) {
            if now - progressed >= deadline {
                new.deadline_exceeded = Some("has timed out progressing".into());
            } else {
                let wait = progressed + deadline - now;
                self.after(wait, Event::Deadline(owner));
            }
        }
        let it = &mut self.owners[owner];
        it.progressed = progressed;
        if (new.updated, new.ready) != (it.rollout.updated, it.rollout.ready) {
            it.moved = now;
        }
        it.rollout = new;
        if it.rollout != it.shown {
            self.touch(owner);
        }
    }
}
