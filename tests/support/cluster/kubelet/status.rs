//! The status of a pod, from where its containers are: pure, as a strategic merge patch.

use super::behaviour::Behaviour;
use super::needs::{self, Secrets, Values};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How far a pod has come; it only ever goes forward.
#[derive(Default)]
pub struct Progress {
    /// Of volumes, then of each container at its start: what a process would hold in its hands.
    pub values: Values,
    /// When each container started, by name.
    started: BTreeMap<String, Timestamp>,
    mounted: bool,
    pub ready: bool,
    pub reached: Reached,
}

/// What the last advance came to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Reached {
    /// A Secret or key is missing: its arrival would help.
    #[default]
    Held,
    /// Something else keeps a container from running; it stays so.
    Stuck,
    /// All containers run.
    Running,
}

/// Where one container is.
enum State {
    Waiting { reason: &'static str, message: String },
    Running { since: Timestamp },
    Done { since: Timestamp },
    Crashing { since: Timestamp },
}

impl Progress {
    /// Starts what can be started now and gives the status that says so.
    pub fn advance(
        &mut self,
        pod: &Pod,
        asked: &Result<Behaviour, String>,
        secrets: &Secrets,
        now: Timestamp,
    ) -> Value {
        let Some(spec) = &pod.spec else { return json!({}) };
        let namespace = pod.namespace().unwrap_or_default();
        self.reached = Reached::Stuck;
        let volumes = needs::of_volumes(spec);
        if !self.mounted {
            if volumes.iter().any(|need| need.unmet(&namespace, secrets).is_some()) {
                self.reached = Reached::Held;
            } else {
                self.mounted = true;
                self.values.extend(needs::values(&volumes, secrets));
            }
        }
        // Init containers one after the other, the others side by side once all of those are through.
        let mut open = self.mounted;
        let mut states = |containers: &[Container], one_by_one: bool| -> Vec<(String, State)> {
            let mut states = Vec::new();
            for container in containers {
                let state = if open {
                    self.start(container, one_by_one, asked, &namespace, secrets, now)
                } else {
                    State::Waiting {
                        reason: if self.mounted { "PodInitializing" } else { "ContainerCreating" },
                        message: String::new(),
                    }
                };
                open &= !one_by_one || matches!(state, State::Done { .. } | State::Running { .. });
                states.push((container.name.clone(), state));
            }
            states
        };
        let init = states(spec.init_containers.as_deref().unwrap_or_default(), true);
        let main = states(&spec.containers, false);
        if main.iter().all(|(_, state)| matches!(state, State::Running { .. })) {
            self.reached = Reached::Running;
        }
        self.status(pod, spec, &init, &main, now)
    }

    fn start(
        &mut self,
        container: &Container,
        is_init: bool,
        asked: &Result<Behaviour, String>,
        namespace: &str,
        secrets: &Secrets,
        now: Timestamp,
    ) -> State {
        let behaviour = match asked {
            Ok(behaviour) => behaviour,
            Err(message) => {
                return State::Waiting { reason: "TestAnnotationInvalid", message: message.clone() };
            }
        };
        if behaviour.image_pull_fails {
            return State::Waiting { reason: "ImagePullBackOff", message: "Back-off pulling image".into() };
        }
        if !self.started.contains_key(&container.name) {
            let needs = needs::of_container(container);
            if let Some(message) = needs.iter().find_map(|need| need.unmet(namespace, secrets)) {
                self.reached = Reached::Held;
                return State::Waiting { reason: "CreateContainerConfigError", message };
            }
            self.values.extend(needs::values(&needs, secrets));
            self.started.insert(container.name.clone(), now);
        }
        let since = self.started[&container.name];
        let is_sidecar = container.restart_policy.as_deref() == Some("Always");
        if is_init && !is_sidecar {
            return State::Done { since };
        }
        match &behaviour.crash_unless {
            Some(condition) if !is_init && !condition.holds(&self.values) => State::Crashing { since },
            _ => State::Running { since },
        }
    }

    fn status(
        &self,
        pod: &Pod,
        spec: &PodSpec,
        init: &[(String, State)],
        main: &[(String, State)],
        now: Timestamp,
    ) -> Value {
        let waits = |states: &[(String, State)]| {
            states.iter().any(|(_, state)| matches!(state, State::Waiting { .. }))
        };
        let condition = |kind: &str, holds: bool| json!({ "type": kind, "status": if holds { "True" } else { "False" }, "lastTransitionTime": now });
        let initialized = self.mounted && !waits(init);
        let images: BTreeMap<_, _> = spec
            .init_containers
            .iter()
            .flatten()
            .chain(&spec.containers)
            .map(|container| (&*container.name, container.image.as_deref()))
            .collect();
        let containers = |states: &[(String, State)], ready: bool| -> Vec<Value> {
            states.iter().map(|(name, state)| state.describe(name, images[&**name], ready, now)).collect()
        };
        let begun =
            pod.status.as_ref().and_then(|status| status.start_time.as_ref()).map_or(now, |time| time.0);
        json!({
            "metadata": { "uid": pod.uid() },
            "status": {
                "phase": if waits(init) || waits(main) { "Pending" } else { "Running" },
                "startTime": begun,
                "hostIP": "127.0.0.1",
                "podIP": self.mounted.then_some("10.244.0.1"),
                "conditions": [
                    condition("PodReadyToStartContainers", self.mounted),
                    condition("Initialized", initialized),
                    condition("ContainersReady", self.ready),
                    condition("Ready", self.ready),
                ],
                "initContainerStatuses": containers(init, true),
                "containerStatuses": containers(main, self.ready),
            },
        })
    }
}

impl State {
    fn describe(&self, name: &str, image: Option<&str>, ready: bool, now: Timestamp) -> Value {
        let runs = matches!(self, Self::Running { .. });
        let is_done = matches!(self, Self::Done { .. });
        let ended = |since: &Timestamp, code: u8, reason: &str| json!({ "terminated": { "exitCode": code, "reason": reason, "startedAt": since, "finishedAt": now } });
        let (state, last) = match self {
            Self::Waiting { reason, message } => {
                (json!({ "waiting": { "reason": reason, "message": message } }), json!({}))
            }
            Self::Running { since } => (json!({ "running": { "startedAt": since } }), json!({})),
            Self::Done { since } => (ended(since, 0, "Completed"), json!({})),
            Self::Crashing { since } => {
                let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff", "message": "back-off restarting failed container" } });
                (waiting, ended(since, 1, "Error"))
            }
        };
        json!({
            "name": name,
            "image": image,
            "imageID": "",
            "ready": (runs && ready) || is_done,
            "started": runs,
            "restartCount": i32::from(matches!(self, Self::Crashing { .. })),
            "state": state,
            "lastState": last,
        })
    }
}
