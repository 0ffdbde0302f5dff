//! Uptake's own namespace: its name, and its identity.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::{Api, api, fault, path};
use crate::{
    engine::Fault,
    facts::{Namespace, Uid},
};

const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// How long the API server may be unreachable at the start. Longer, and whoever starts the process by hand
/// thinks that it hangs; a cluster starts it again anyway.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);

/// Why the own namespace isn't known.
#[derive(Debug, thiserror::Error)]
pub enum OwnNamespaceError {
    /// Nothing says which it is.
    #[error("which namespace is Uptake's own? Give --own-namespace (there is no service account to tell)")]
    Unnamed,
    /// It can't be read.
    #[error("failed to read Uptake's own namespace {name:?}: {cause}")]
    Unreadable {
        /// Its name.
        name: Namespace,
        /// Why.
        cause: String,
    },
}

/// The name: as given, or the service account's.
///
/// # Errors
/// Neither is there.
pub fn name(given: Option<&Namespace>) -> Result<Namespace, OwnNamespaceError> {
    if let Some(name) = given {
        return Ok(name.clone());
    }
    let name = std::fs::read_to_string(SERVICE_ACCOUNT).map_err(|_| OwnNamespaceError::Unnamed)?;
    match name.trim() {
        "" => Err(OwnNamespaceError::Unnamed),
        name => Ok(name.into()),
    }
}

/// The identity. It is the first request of all, so an API server that can't be reached shows here.
///
/// # Errors
/// There is no such namespace, no right to read it, or no API server within ten seconds.
pub async fn uid(api: &Api, name: &Namespace) -> Result<Uid, OwnNamespaceError> {
    let since = Instant::now();
    loop {
        let left = PATIENCE.saturating_sub(since.elapsed());
        let cause = match read(api, name, left).await {
            Ok(uid) => return Ok(uid),
            // Only what passes by itself is worth a wait.
            Err(Fault::Unknown(_) | Fault::Throttled) if left > PAUSE => {
                sleep(PAUSE).await;
                continue;
            }
            Err(fault) => fault::words(&fault),
        };
        return Err(OwnNamespaceError::Unreadable { name: name.clone(), cause });
    }
}

async fn read(api: &Api, name: &Namespace, limit: Duration) -> Result<Uid, Fault> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        uid: String,
    }
    let request = api::get(&format!("{}/{name}", path::core(None, "namespaces")));
    let object: Object = api.json(request, limit).await?;
    Ok(Uid::parse(&object.metadata.uid))
}
