//! `release`: says that a Secret's version is right though it broke a consumer.

use serde_json::{Value, json};

use super::{
    CliError, Exit, Session,
    args::ReleaseArgs,
    gather::{self, Wanted},
    output,
    scene::{Scene, versions},
    target::Target,
};
use crate::{
    catalog::{policy::annotation, read::MANAGER},
    cluster::{self, READ_LIMIT, WRITE_LIMIT, path},
    engine::Fault,
    facts::{Name, Raw, SecretId, Version},
};

/// Runs it.
///
/// # Errors
/// There is no such Secret, or the rights are missing.
pub async fn run(args: &ReleaseArgs) -> Result<Exit, CliError> {
    let Target::Secret(secret) = &args.target else {
        return Err(CliError::usage(format!("a Secret is released: secret/NAME, not {}", args.target)));
    };
    let session = Session::open(&args.cluster).await?;
    let namespace = session.one_namespace()?;
    let id = SecretId::new(namespace, secret.clone());
    let stands = stands(&session, &id).await?;
    let wanted = Wanted { secret: Some(secret.clone()) };
    let scene = gather::scene(&session, &wanted).await.ok();
    let broken = scene.as_ref().and_then(|scene| broken(scene, secret));
    // Without the ledger, the version that stands is the one that it was delivered with, unless it was edited since.
    let version =
        broken.or_else(|| scene.as_ref().and_then(|scene| recorded(scene, secret))).unwrap_or(stands);
    annotate(&session, &id, version).await?;
    let what = if broken.is_some() {
        "the breaker is closed for"
    } else {
        "no breaker is known to be open; released"
    };
    output::write(&format!("secret/{secret}: {what} version {version}\n"));
    Ok(Exit::Done)
}

async fn stands(session: &Session, id: &SecretId) -> Result<Version, CliError> {
    let path = place(id);
    let object: Value = match session.api.json(cluster::get_object_metadata(&path), READ_LIMIT).await {
        Err(Fault::NotFound) => return Err(CliError::failed(format!("Secret {id} doesn't exist"))),
        object => object.map_err(|fault| CliError::of_fault(&format!("read Secret {id}"), &fault))?,
    };
    Raw(&object).version().map_err(|error| CliError::unknown(format!("Secret {id}: {error}")))
}

fn place(id: &SecretId) -> String {
    format!("{}/{}", path::core(Some(&id.namespace), "secrets"), id.name)
}

/// The version that holds a consumer because it broke another.
fn broken(scene: &Scene, secret: &Name) -> Option<Version> {
    scene.consumers.iter().filter(|consumer| consumer.names(secret)).find_map(|consumer| {
        let consumption = scene.consumption(consumer, &|reference| reference.secret == *secret);
        scene.breaker(consumer, &consumption).map(|(_, version)| version)
    })
}

/// The version at which the ledger saw the value change.
fn recorded(scene: &Scene, secret: &Name) -> Option<Version> {
    scene.ledger.as_ref()?;
    let consumers = scene.consumers.iter().filter(|consumer| consumer.names(secret));
    let of = consumers.filter_map(|consumer| {
        let consumption = scene.consumption(consumer, &|reference| reference.secret == *secret);
        versions(&consumption).get(secret).copied()
    });
    of.max()
}

async fn annotate(session: &Session, id: &SecretId, version: Version) -> Result<(), CliError> {
    let patch = json!({"metadata": {"annotations": {annotation::RELEASE: version.to_string()}}});
    let path = path::with(&place(id), &[("fieldManager", MANAGER)]);
    let request = cluster::patch(&path, &patch);
    let done = session.api.bytes(request, WRITE_LIMIT).await;
    done.map(drop).map_err(|fault| CliError::of_fault(&format!("annotate Secret {id}"), &fault))
}
