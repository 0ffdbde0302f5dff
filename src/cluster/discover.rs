//! The resource name of a kind.

use kube::core::{ApiResource, GroupVersionKind};
use serde::Deserialize;

use super::{
    Api,
    api::{self, READ_LIMIT},
};
use crate::engine::Fault;

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
}

/// Whether the API server serves a kind of a group's version (`/apis/GROUP/VERSION`). Anybody who is authenticated may
/// ask (ClusterRole `system:discovery`).
///
/// # Errors
/// The API server can't be asked.
pub async fn serves(api: &Api, group_version: &str, kind: &str) -> Result<bool, Fault> {
    Ok(resources(api, group_version).await?.iter().any(|resource| resource.kind == kind))
}

async fn resources(api: &Api, group_version: &str) -> Result<Vec<Resource>, Fault> {
    match api.json::<Resources>(api::get(group_version), READ_LIMIT).await {
        Err(Fault::NotFound) => Ok(Vec::new()),
        known => Ok(known?.resources),
    }
}

/// The plural by which URLs name the kind. If the API server doesn't know the kind yet (its CRD comes later) the plural
/// that such CRDs have by convention.
///
/// # Errors
/// The API server can't be asked.
pub async fn plural(api: &Api, group: &str, version: &str, kind: &str) -> Result<String, Fault> {
    let known = resources(api, &format!("/apis/{group}/{version}")).await?;
    // Subresources carry their parent's kind and a slash in the name.
    let found = known.into_iter().find(|resource| resource.kind == kind && !resource.name.contains('/'));
    Ok(found.map_or_else(
        || ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)).plural,
        |resource| resource.name,
    ))
}
