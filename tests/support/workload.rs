//! Workloads that consume Secrets, written as a user would write them.

use serde_json::{Value, json};

/// How a container comes by a Secret.
#[derive(Clone, Debug)]
pub enum Via {
    Env {
        secret: String,
        key: String,
        optional: bool,
    },
    EnvFrom {
        secret: String,
        optional: bool,
    },
    Volume {
        secret: String,
        optional: bool,
    },
    /// Some keys of a volume.
    Items {
        secret: String,
        keys: Vec<String>,
    },
    SubPath {
        secret: String,
        key: String,
    },
    Projected {
        secret: String,
        optional: bool,
    },
    /// As `Env`, of an init container.
    InitEnv {
        secret: String,
        key: String,
    },
}

impl Via {
    pub fn env(secret: &str, key: &str) -> Self {
        Self::Env { secret: secret.into(), key: key.into(), optional: false }
    }

    pub fn optional_env(secret: &str, key: &str) -> Self {
        Self::Env { secret: secret.into(), key: key.into(), optional: true }
    }

    pub fn env_from(secret: &str) -> Self {
        Self::EnvFrom { secret: secret.into(), optional: false }
    }

    pub fn volume(secret: &str) -> Self {
        Self::Volume { secret: secret.into(), optional: false }
    }

    pub fn items(secret: &str, keys: &[&str]) -> Self {
        Self::Items { secret: secret.into(), keys: keys.iter().map(ToString::to_string).collect() }
    }

    pub fn sub_path(secret: &str, key: &str) -> Self {
        Self::SubPath { secret: secret.into(), key: key.into() }
    }

    pub fn projected(secret: &str) -> Self {
        Self::Projected { secret: secret.into(), optional: false }
    }

    pub fn init_env(secret: &str, key: &str) -> Self {
        Self::InitEnv { secret: secret.into(), key: key.into() }
    }
}

/// The kinds that roll by their template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Deployment,
    StatefulSet,
    DaemonSet,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
        }
    }

    /// As in a request's path and in the audit log.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Deployment => "deployments",
            Self::StatefulSet => "statefulsets",
            Self::DaemonSet => "daemonsets",
        }
    }
}

/// A manifest under construction.
#[derive(Clone, Debug)]
pub struct Workload {
    pub kind: Kind,
    pub name: String,
    manifest: Value,
}

impl Workload {
    pub fn deployment(name: &str) -> Self {
        Self::new(Kind::Deployment, name).replicas(1)
    }

    /// All pods at once, so that a rollout takes as long as its slowest pod.
    pub fn stateful_set(name: &str) -> Self {
        Self::new(Kind::StatefulSet, name).replicas(1).set("/spec/serviceName", json!(name))
    }

    pub fn daemon_set(name: &str) -> Self {
        Self::new(Kind::DaemonSet, name)
    }

    fn new(kind: Kind, name: &str) -> Self {
        let manifest = json!({
            "apiVersion": "apps/v1",
            "kind": kind.name(),
            "metadata": { "name": name },
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": {
                        "terminationGracePeriodSeconds": 0,
                        "containers": [{ "name": "app", "image": "app:1" }],
                    },
                },
            },
        });
        Self { kind, name: name.into(), manifest }
    }

    pub fn replicas(self, replicas: u32) -> Self {
        self.set("/spec/replicas", json!(replicas))
    }

    pub fn annotation(self, name: &str, value: &str) -> Self {
        self.set_member("/metadata/annotations", name, json!(value))
    }

    pub fn label(self, name: &str, value: &str) -> Self {
        self.set_member("/metadata/labels", name, json!(value))
    }

    /// On the pod template; `test.uptake.dev/…` ones choose how pods behave, see the node agent.
    pub fn template_annotation(self, name: &str, value: &str) -> Self {
        self.set_member("/spec/template/metadata/annotations", name, json!(value))
    }

    /// No node will do.
    pub fn unschedulable(self) -> Self {
        self.set("/spec/template/spec/nodeSelector", json!({ "kubernetes.io/hostname": "nowhere" }))
    }

    /// Makes `app`, the container, consume a Secret.
    pub fn consumes(mut self, via: Via) -> Self {
        const CONTAINER: &str = "/spec/template/spec/containers/0";
        let number =
            self.list("/spec/template/spec/volumes").len() + self.list(&format!("{CONTAINER}/env")).len();
        let variable = |secret: &str, key: &str, optional: bool| {
            let from = json!({ "name": secret, "key": key, "optional": optional });
            json!({ "name": format!("VALUE_{number}"), "valueFrom": { "secretKeyRef": from } })
        };
        match via {
            Via::Env { secret, key, optional } => {
                self.push(&format!("{CONTAINER}/env"), variable(&secret, &key, optional));
            }
            Via::EnvFrom { secret, optional } => {
                let source = json!({ "secretRef": { "name": secret, "optional": optional } });
                self.push(&format!("{CONTAINER}/envFrom"), source);
            }
            Via::InitEnv { secret, key } => {
                let env = [variable(&secret, &key, false)];
                let init = json!({ "name": format!("init-{number}"), "image": "app:1", "env": env });
                self.push("/spec/template/spec/initContainers", init);
            }
            Via::Volume { secret, optional } => {
                self.mount(number, json!({ "secret": { "secretName": secret, "optional": optional } }), None);
            }
            Via::Items { secret, keys } => {
                let items: Vec<_> = keys.iter().map(|key| json!({ "key": key, "path": key })).collect();
                self.mount(number, json!({ "secret": { "secretName": secret, "items": items } }), None);
            }
            Via::SubPath { secret, key } => {
                self.mount(number, json!({ "secret": { "secretName": secret } }), Some(&key));
            }
            Via::Projected { secret, optional } => {
                let sources = json!([{ "secret": { "name": secret, "optional": optional } }]);
                self.mount(number, json!({ "projected": { "sources": sources } }), None);
            }
        }
        self
    }

    fn mount(&mut self, number: usize, mut volume: Value, sub_path: Option<&str>) {
        let name = format!("volume-{number}");
        volume["name"] = json!(name);
        let mut mount = json!({ "name": name, "mountPath": format!("/{name}") });
        if let Some(path) = sub_path {
            mount["subPath"] = json!(path);
        }
        self.push("/spec/template/spec/volumes", volume);
        self.push("/spec/template/spec/containers/0/volumeMounts", mount);
    }

    /// Sets any field, by JSON pointer; missing objects on the way are made.
    pub fn set(mut self, pointer: &str, value: Value) -> Self {
        *self.at(pointer) = value;
        self
    }

    /// Sets one member of an object whose name may hold a `/`.
    fn set_member(mut self, pointer: &str, name: &str, value: Value) -> Self {
        self.at(pointer)[name] = value;
        self
    }

    fn push(&mut self, pointer: &str, value: Value) {
        let list = self.at(pointer);
        if list.is_null() {
            *list = json!([]);
        }
        list.as_array_mut().expect("a list").push(value);
    }

    fn list(&mut self, pointer: &str) -> &[Value] {
        self.manifest.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn at(&mut self, pointer: &str) -> &mut Value {
        pointer.split('/').skip(1).fold(&mut self.manifest, |value, step| match step.parse::<usize>() {
            Ok(index) if value.is_array() => &mut value[index],
            _ => &mut value[step],
        })
    }

    pub fn manifest(&self) -> &Value {
        &self.manifest
    }
}
