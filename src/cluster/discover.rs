//! The resource names of kinds.

use serde::Deserialize;

use super::{
    Api,
    api::{self, READ_LIMIT},
    path,
};
use crate::{
    engine::Fault,
    facts::{Kind, WorkloadId},
};

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
/// ask (the role `system:discovery`).
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

/// The path of a namespace's workloads of a kind, or of those of all namespaces. A custom kind's plural is asked for,
/// and remembered until it is [`look_up`] anew.
///
/// # Errors
/// `NotFound` if the API server doesn't serve the kind; or it can't be asked.
pub async fn collection(api: &Api, kind: &Kind, namespace: Option<&str>) -> Result<String, Fault> {
    let plural = match kind.plural() {
        Some(plural) => plural.to_owned(),
        None => match api.plurals().get(kind) {
            Some(plural) => plural,
            None => look_up(api, kind).await?,
        },
    };
    Ok(path::workloads(kind, &plural, namespace))
}

/// The path of a workload.
///
/// # Errors
/// As [`collection`].
pub async fn workload(api: &Api, id: &WorkloadId) -> Result<String, Fault> {
    Ok(format!("{}/{}", collection(api, &id.kind, Some(&id.namespace)).await?, id.name))
}

/// Asks the API server for a kind's plural: its CRD may have come, gone or been replaced.
///
/// # Errors
/// `NotFound` if the API server doesn't serve the kind; or it can't be asked.
pub async fn look_up(api: &Api, kind: &Kind) -> Result<String, Fault> {
    if let Some(plural) = kind.plural() {
        return Ok(plural.to_owned());
    }
    let known = resources(api, &path::version_of(kind)).await?;
    // Subresources carry their parent's kind and a slash in the name.
    let found =
        known.into_iter().find(|resource| resource.kind == kind.as_str() && !resource.name.contains('/'));
    let plural = found.map(|resource| resource.name);
    api.plurals().set(kind, plural.clone());
    plural.ok_or(Fault::NotFound)
}
