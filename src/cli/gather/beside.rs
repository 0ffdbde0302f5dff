//! What stands beside the consumers: ServiceAccounts, and what the Secrets Store CSI driver has.

use serde_json::Value;

use super::list;
use crate::{
    catalog::{
        beside::{Beside, ProviderClassFacts, ServiceAccountFacts},
        mounted::MountFacts,
    },
    cli::Session,
    cluster::{self, path},
    engine::Fault,
    watch::start::SECRETS_STORE,
};

/// Objects, or why they can't be listed.
pub type Listed<T> = Result<Vec<T>, Fault>;

/// SecretProviderClasses and ServiceAccounts.
pub async fn beside(session: &Session) -> (Listed<ProviderClassFacts>, Listed<ServiceAccountFacts>) {
    let namespace = session.namespace.as_deref();
    let accounts = path::core(namespace, "serviceaccounts");
    futures::join!(
        of_driver::<ProviderClassFacts>(session, "secretproviderclasses"),
        objects::<ServiceAccountFacts>(session, &accounts)
    )
}

/// What the CSI driver mounted into which pods.
pub async fn mounts(session: &Session) -> Listed<MountFacts> {
    of_driver(session, "secretproviderclasspodstatuses").await
}

async fn of_driver<T: Beside>(session: &Session, plural: &str) -> Listed<T> {
    let path = path::custom(&path::group(SECRETS_STORE, "v1"), session.namespace.as_deref(), plural);
    match objects(session, &path).await {
        // Where the driver isn't installed there are none; who has no rights is told so of any kind.
        Err(Fault::NotFound) => Ok(Vec::new()),
        Err(Fault::Forbidden(_)) if !has_driver(session).await => Ok(Vec::new()),
        listed => listed,
    }
}

async fn has_driver(session: &Session) -> bool {
    let group = path::group(SECRETS_STORE, "v1");
    cluster::serves(&session.api, &group, "SecretProviderClass").await.unwrap_or(true)
}

async fn objects<T: Beside>(session: &Session, path: &str) -> Listed<T> {
    let read = |listed: &mut Vec<T>, object: &Value| {
        listed.push(T::read(object).ok()?);
        Some(())
    };
    Ok(list(session, path, &[], false, read).await?.0)
}
