//! What a verb is about, as `KIND/NAME`.

use std::{fmt, str::FromStr};

use crate::facts::{Name, is_dns_subdomain};

/// `secret/NAME` or `KIND/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A Secret.
    Secret(Name),
    /// A SecretProviderClass.
    ProviderClass(Name),
    /// Something that has pods.
    Consumer(ConsumerTarget),
}

/// `KIND/NAME`, as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerTarget {
    /// The kind, in lower case.
    kind: String,
    /// The name.
    pub name: Name,
}

/// Short names and plurals, as kubectl takes them.
const ALIASES: [(&str, &[&str]); 9] = [
    ("secret", &["secrets"]),
    ("secretproviderclass", &["secretproviderclasses", "spc"]),
    ("deployment", &["deployments", "deploy"]),
    ("statefulset", &["statefulsets", "sts"]),
    ("daemonset", &["daemonsets", "ds"]),
    ("replicaset", &["replicasets", "rs"]),
    ("cronjob", &["cronjobs", "cj"]),
    ("job", &["jobs"]),
    ("pod", &["pods", "po"]),
];

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let &[kind, name] = parts.as_slice() else {
            return Err("write KIND/NAME, for example secret/db or deployment/web".to_owned());
        };
        if !is_dns_subdomain(name) {
            return Err(format!("{name:?} can't be a name"));
        }
        let kind = singular(kind)?;
        Ok(match kind.as_str() {
            "secret" => Self::Secret(name.into()),
            "secretproviderclass" => Self::ProviderClass(name.into()),
            _ => Self::Consumer(ConsumerTarget { kind, name: name.into() }),
        })
    }
}

impl FromStr for ConsumerTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse()? {
            Target::Consumer(consumer) => Ok(consumer),
            Target::Secret(_) | Target::ProviderClass(_) => {
                Err("a workload is wanted here, for example deployment/web".to_owned())
            }
        }
    }
}

fn singular(kind: &str) -> Result<String, String> {
    // `deployment.apps` is kubectl's own output.
    let kind = kind.split('.').next().unwrap_or(kind).to_lowercase();
    if kind.is_empty() || !kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(format!("{kind:?} can't be a kind"));
    }
    let known = ALIASES.iter().find(|(_, aliases)| aliases.contains(&kind.as_str()));
    Ok(known.map_or(kind, |(singular, _)| (*singular).to_owned()))
}

impl ConsumerTarget {
    /// The kind, in lower case.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Whether an object of that kind and name is meant.
    #[must_use]
    pub fn is(&self, kind: &str, name: &str) -> bool {
        *self.name == *name && self.is_kind(kind)
    }

    /// Whether the kind is one that every cluster has.
    #[must_use]
    pub fn is_known_kind(&self) -> bool {
        ALIASES.iter().any(|(kind, _)| *kind == self.kind)
    }

    /// Whether that kind is meant.
    #[must_use]
    pub fn is_kind(&self, kind: &str) -> bool {
        let kind = kind.to_lowercase();
        self.kind == kind || self.kind == format!("{kind}s")
    }
}

impl fmt::Display for ConsumerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(name) => write!(f, "secret/{name}"),
            Self::ProviderClass(name) => write!(f, "secretproviderclass/{name}"),
            Self::Consumer(consumer) => consumer.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("secret/db", "secret/db")]
    #[case("secrets/db", "secret/db")]
    #[case("Deployment/web", "deployment/web")]
    #[case("deploy/web", "deployment/web")]
    #[case("deployment.apps/web", "deployment/web")]
    #[case("spc/vault", "secretproviderclass/vault")]
    #[case("rollout/web", "rollout/web")]
    fn a_target_is_written_as_for_kubectl(#[case] text: &str, #[case] target: &str) {
        assert_eq!(text.parse::<Target>().unwrap().to_string(), target);
    }

    #[rstest]
    #[case("db")]
    #[case("/db")]
    #[case("secret/")]
    #[case("secret/a/b")]
    #[case("secret/A")]
    #[case("se cret/a")]
    fn other_texts_are_no_targets(#[case] text: &str) {
        text.parse::<Target>().unwrap_err();
    }

    #[test]
    fn a_custom_kind_may_be_written_in_the_plural() {
        let target: ConsumerTarget = "rollouts/web".parse().unwrap();
        assert!(target.is("Rollout", "web") && !target.is("Rollout", "other") && !target.is("Roll", "web"));
    }
}
