//! Which Secrets a pod can't start without, and what it starts with. Written apart from the operator's own rules on
//! purpose: the two must not share a mistake.

use k8s_openapi::api::core::v1::{Container, PodSpec, Secret};
use std::collections::{BTreeMap, BTreeSet};

/// What is there now: a Secret that doesn't exist has no entry.
pub type Secrets = BTreeMap<String, Secret>;

/// Values by `secret/key`.
pub type Values = BTreeMap<String, String>;

/// One use of a Secret.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    pub secret: String,
    /// None: all keys.
    pub key: Option<String>,
    /// The pod starts without it as well.
    pub optional: bool,
}

impl Need {
    fn new(secret: &str, key: Option<&str>, optional: Option<bool>) -> Self {
        Self { secret: secret.into(), key: key.map(Into::into), optional: optional.unwrap_or_default() }
    }

    /// Why a container that has this need can't start, in a kubelet's words.
    pub fn unmet(&self, namespace: &str, secrets: &Secrets) -> Option<String> {
        if self.optional {
            return None;
        }
        let Some(secret) = secrets.get(&self.secret) else {
            return Some(format!("secret \"{}\" not found", self.secret));
        };
        let key = self.key.as_ref()?;
        let has_key = secret.data.as_ref().is_some_and(|data| data.contains_key(key));
        (!has_key).then(|| format!("couldn't find key {key} in Secret {namespace}/{}", self.secret))
    }

    fn values<'a>(&'a self, secrets: &'a Secrets) -> impl Iterator<Item = (String, String)> + 'a {
        let data = secrets.get(&self.secret).and_then(|secret| secret.data.as_ref()).into_iter().flatten();
        data.filter(|(key, _)| self.key.as_ref().is_none_or(|wanted| *key == wanted)).map(|(key, value)| {
            let value = String::from_utf8_lossy(&value.0).into_owned();
            (format!("{}/{key}", self.secret), value)
        })
    }
}

/// Before any container: what must be mounted.
pub fn of_volumes(spec: &PodSpec) -> Vec<Need> {
    let mut needs = Vec::new();
    for volume in spec.volumes.iter().flatten() {
        if let Some(source) = &volume.secret {
            let name = source.secret_name.as_deref().unwrap_or_default();
            add_items(&mut needs, name, source.items.as_deref(), source.optional);
        }
        let sources = volume.projected.as_ref().and_then(|projected| projected.sources.as_ref());
        for source in sources.into_iter().flatten().filter_map(|source| source.secret.as_ref()) {
            add_items(&mut needs, &source.name, source.items.as_deref(), source.optional);
        }
    }
    needs
}

fn add_items(
    needs: &mut Vec<Need>,
    secret: &str,
    items: Option<&[k8s_openapi::api::core::v1::KeyToPath]>,
    optional: Option<bool>,
) {
    match items {
        Some(items) if !items.is_empty() => {
            needs.extend(items.iter().map(|item| Need::new(secret, Some(&item.key), optional)));
        }
        _ => needs.push(Need::new(secret, None, optional)),
    }
}

/// At the start of one container: its environment.
pub fn of_container(container: &Container) -> Vec<Need> {
    let sources = container.env_from.iter().flatten().filter_map(|source| source.secret_ref.as_ref());
    let whole = sources.map(|secret| Need::new(&secret.name, None, secret.optional));
    let variables = container.env.iter().flatten();
    let keys = variables.filter_map(|variable| variable.value_from.as_ref()?.secret_key_ref.as_ref());
    whole.chain(keys.map(|key| Need::new(&key.name, Some(&key.key), key.optional))).collect()
}

/// Every use in a pod.
pub fn of_pod(spec: &PodSpec) -> Vec<Need> {
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    of_volumes(spec).into_iter().chain(containers.flat_map(of_container)).collect()
}

pub fn names(needs: &[Need]) -> BTreeSet<&str> {
    needs.iter().map(|need| need.secret.as_str()).collect()
}

/// What the needs amount to now.
pub fn values(needs: &[Need], secrets: &Secrets) -> Values {
    needs.iter().flat_map(|need| need.values(secrets)).collect()
}
