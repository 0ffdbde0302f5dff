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

/// The plural by which URLs name the kind. If the API server doesn't know the kind yet (its CRD comes later) the plural
/// that such CRDs have by convention.
///
/// # Errors
/// The API server can't be asked.
pub async fn plural(api: &Api, group: &str, version: &str, kind: &str) -> Result<String, Fault> {
    let known = match api.json::<Resources>(api::get(&format!("/apis/{group}/{version}")), READ_LIMIT).await {
        Err(Fault::NotFound) => Vec::new(),
        known => known?.resources,
    };
    // Subresources carry their parent's kind and a slash in the name.
    let found = known.into_iter().find(|resource| resource.kind == kind && !resource.name.contains('/'));
    Ok(found.map_or_else(
        || ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)).plural,
        |resource| resource.name,
    ))
}
