//! What users may do.

use super::{Cluster, User};
use crate::support::objects::SOON;
use crate::support::wait::eventually;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

impl Cluster {
    /// Gives rights in the whole cluster, in the place of those given so before: a role's rules. They are in force
    /// when this returns; rights taken away may last a moment longer.
    pub async fn grant(&self, user: &User, rights: Value) {
        let client = self.admin_client().await;
        let roles = Api::all(client.clone());
        bind::<ClusterRole, ClusterRoleBinding>(roles, Api::all(client.clone()), user, &rights).await;
        wait_in_force(client, None, user, &rights).await;
    }

    /// Gives rights in one namespace.
    pub async fn grant_in(&self, namespace: &str, user: &User, rights: Value) {
        let client = self.admin_client().await;
        let roles = Api::namespaced(client.clone(), namespace);
        bind::<Role, RoleBinding>(roles, Api::namespaced(client.clone(), namespace), user, &rights).await;
        wait_in_force(client, Some(namespace), user, &rights).await;
    }
}

async fn bind<R, B>(roles: Api<R>, bindings: Api<B>, user: &User, rights: &Value)
where
    R: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug,
    B: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug,
{
    let name = format!("test-{}", user.name.replace(':', "-"));
    let role = json!({
        "apiVersion": R::api_version(&()), "kind": R::kind(&()), "metadata": { "name": name }, "rules": rights,
    });
    let binding = json!({
        "apiVersion": B::api_version(&()), "kind": B::kind(&()), "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": R::kind(&()), "name": name },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user.name }],
    });
    let parameters = PatchParams::apply("test").force();
    roles.patch(&name, &parameters, &Patch::Apply(role)).await.expect("a role can be applied");
    bindings.patch(&name, &parameters, &Patch::Apply(binding)).await.expect("a binding can be applied");
}

/// The API server's authorizer learns of roles by a watch of its own: asked until it knows one right of each rule.
async fn wait_in_force(client: Client, namespace: Option<&str>, user: &User, rights: &Value) {
    let reviews: &Api<SubjectAccessReview> = &Api::all(client);
    let rules = rights.as_array().expect("a list of rules");
    for rule in rules.iter().filter(|rule| rule["resources"].is_array()) {
        let resource = rule["resources"][0].as_str().unwrap_or_default();
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let asked = json!({
            "namespace": namespace,
            "group": rule["apiGroups"][0],
            "resource": resource,
            "subresource": subresource,
            "name": rule["resourceNames"][0],
            "verb": rule["verbs"][0],
        });
        let review = json!({ "metadata": {}, "spec": { "user": user.name, "resourceAttributes": asked } });
        let review: &SubjectAccessReview = &serde_json::from_value(review).expect("rules of resources");
        eventually(SOON, || async move {
            let answer =
                reviews.create(&PostParams::default(), review).await.map_err(|error| error.to_string())?;
            let allowed = answer.status.is_some_and(|status| status.allowed);
            allowed.then_some(()).ok_or(format!("{} may not yet: {rule}", user.name))
        })
        .await;
    }
}
