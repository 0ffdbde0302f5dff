//! Where things lie on the API server.

use crate::facts::Kind;

/// A namespace's objects of a resource of the core group, or those of all namespaces.
#[must_use]
pub fn core(namespace: Option<&str>, plural: &str) -> String {
    match namespace {
        Some(namespace) => format!("/api/v1/namespaces/{namespace}/{plural}"),
        None => format!("/api/v1/{plural}"),
    }
}

/// The watch of one namespace. It is the only one that the API server counts as a request within that namespace, so that a
/// Role there is enough.
#[must_use]
pub fn watched_namespace(name: &str) -> String {
    format!("/api/v1/watch/namespaces/{name}")
}

/// A group's version.
#[must_use]
pub fn group(group: &str, version: &str) -> String {
    format!("/apis/{group}/{version}")
}

/// A namespace's objects of a resource of that group's version, or those of all namespaces.
#[must_use]
pub fn custom(group_version: &str, namespace: Option<&str>, plural: &str) -> String {
    match namespace {
        Some(namespace) => format!("{group_version}/namespaces/{namespace}/{plural}"),
        None => format!("{group_version}/{plural}"),
    }
}

/// The root of a kind's group and version.
#[must_use]
pub fn version_of(kind: &Kind) -> String {
    match kind.group() {
        "" => format!("/api/{}", kind.version()),
        name => group(name, kind.version()),
    }
}

/// A namespace's workloads of a kind with that plural, or those of all namespaces.
#[must_use]
pub fn workloads(kind: &Kind, plural: &str, namespace: Option<&str>) -> String {
    custom(&version_of(kind), namespace, plural)
}

/// A namespace's Events.
#[must_use]
pub fn events(namespace: &str) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events")
}

/// A path with its query.
#[must_use]
pub fn with(path: &str, query: &[(&str, &str)]) -> String {
    let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    format!("{path}?{query}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::facts::CustomKind;

    #[test]
    fn paths_are_those_of_the_api() {
        assert_eq!(core(None, "secrets"), "/api/v1/secrets");
        let store = group("secrets-store.csi.x-k8s.io", "v1");
        assert_eq!(custom(&store, None, "x"), "/apis/secrets-store.csi.x-k8s.io/v1/x");
        assert_eq!(custom(&store, Some("a"), "x"), "/apis/secrets-store.csi.x-k8s.io/v1/namespaces/a/x");
        assert_eq!(core(Some("a"), "pods"), "/api/v1/namespaces/a/pods");
        let deployments = workloads(&Kind::Deployment, "deployments", Some("a"));
        assert_eq!(deployments, "/apis/apps/v1/namespaces/a/deployments");
        let custom = Kind::Custom(Arc::new(CustomKind {
            group: "argoproj.io".into(),
            version: "v1alpha1".into(),
            kind: "Rollout".into(),
            template: vec!["spec".into(), "template".into()],
        }));
        assert_eq!(workloads(&custom, "rollouts", None), "/apis/argoproj.io/v1alpha1/rollouts");
    }

    #[test]
    fn selectors_are_escaped() {
        let path = with("/api/v1/secrets", &[("fieldSelector", "type!=helm.sh/release.v1,type!=x")]);
        assert_eq!(path, "/api/v1/secrets?fieldSelector=type%21%3Dhelm.sh%2Frelease.v1%2Ctype%21%3Dx");
    }
}
