//! What has pods and can't be rolled by a template: Jobs, `CronJobs`, ReplicaSets of nobody.

use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::{APPS, list};
use crate::{
    catalog::ReadOptions,
    cli::{
        Session,
        scene::{Consumer, Fate},
    },
    cluster::{self, Between, READ_LIMIT, path},
    decide::{Owners, read as decide_read},
    engine::Fault,
    facts::{Kind, Raw},
};

/// ReplicaSets without a Deployment that are read at a time.
const READS_IN_FLIGHT: usize = 8;

/// Consumers, and who owns what may stand between a pod and its consumer.
pub(super) type Jobs = (Vec<Consumer>, Owners);

/// `CronJobs` and Jobs.
pub(super) async fn batch(
    session: &Session,
    read: &ReadOptions,
) -> (Result<Vec<Consumer>, Fault>, Result<Jobs, Fault>) {
    let path = |plural: &str| path::custom("/apis/batch/v1", session.namespace.as_deref(), plural);
    let (cron_path, job_path) = (path("cronjobs"), path("jobs"));
    let cron = |listed: &mut Vec<Consumer>, object: &Value| {
        let suspended = object.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or(false);
        let template = object.pointer("/spec/jobTemplate/spec/template")?;
        listed.push(Consumer::standing("CronJob", object, template, Fate::NextRun { suspended }, read).ok()?);
        Some(())
    };
    let job = |listed: &mut Jobs, object: &Value| {
        let (uid, owner) = decide_read::owner(object).ok()?;
        let of_cron_job = owner.as_ref().is_some_and(|owner| *owner.kind == *"CronJob");
        listed.1.insert(uid, owner);
        if !of_cron_job {
            let template = object.pointer("/spec/template")?;
            let fate = if has_ended(object) { Fate::JobEnded } else { Fate::JobGoesOn };
            listed.0.push(Consumer::standing("Job", object, template, fate, read).ok()?);
        }
        Some(())
    };
    let (crons, jobs) = futures::join!(
        list(session, &cron_path, &[], false, cron),
        list(session, &job_path, &[], false, job)
    );
    (crons.map(|(crons, _)| crons), jobs.map(|(jobs, _)| jobs))
}

fn has_ended(job: &Value) -> bool {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        let is = |field: &str, words: &[&str]| {
            condition.get(field).and_then(Value::as_str).is_some_and(|word| words.contains(&word))
        };
        is("type", &["Complete", "Failed"]) && is("status", &["True"])
    })
}

/// ReplicaSets: their owners, and those that have none.
pub(super) async fn replica_sets(session: &Session, options: &ReadOptions) -> Result<Jobs, Fault> {
    let path = path::custom(APPS, session.namespace.as_deref(), "replicasets");
    let read = |listed: &mut (Owners, Vec<String>), object: &Value| {
        let (uid, owner) = decide_read::owner(object).ok()?;
        if owner.is_none() {
            let raw = Raw(object);
            listed.1.push(format!(
                "{}/{}",
                path::custom(APPS, Some(&raw.namespace().ok()?), "replicasets"),
                raw.name().ok()?
            ));
        }
        listed.0.insert(uid, owner);
        Some(())
    };
    let ((owners, bare), _) = list(session, &path, &[], true, read).await?;
    // Of those that no Deployment owns the template is wanted too; there are few.
    let read = |path: String| async move { session.api.json::<Value>(cluster::get(&path), READ_LIMIT).await };
    let objects: Vec<_> = stream::iter(bare).map(read).buffered(READS_IN_FLIGHT).collect().await;
    let mut sets = Vec::new();
    for object in objects {
        let object = match object {
            Err(Fault::NotFound) => continue,
            object => object?,
        };
        let template = object.pointer("/spec/template").unwrap_or(&Value::Null);
        let set = Consumer::standing("ReplicaSet", &object, template, Fate::ReplicaSetStays, options);
        sets.push(set.map_err(|_| cluster::undecodable())?);
    }
    Ok((sets, owners))
}

/// Of the other kinds that may stand between a pod and its consumer: their owners; and the kinds that can't be listed.
pub(super) async fn others_between(
    session: &Session,
    kinds: &[Kind],
) -> Vec<(&'static str, Result<Owners, Fault>)> {
    let others = cluster::between(kinds).into_iter().filter(|between| between.plural != "replicasets");
    let listed = |between: Between| async move {
        (between.kind, owners(session, &between, session.namespace.as_deref()).await)
    };
    stream::iter(others).map(listed).buffered(READS_IN_FLIGHT).collect().await
}

/// Who owns the objects of a kind that may stand between.
pub(super) async fn owners(
    session: &Session,
    between: &Between,
    namespace: Option<&str>,
) -> Result<Owners, Fault> {
    let path = path::custom(&between.group_version, namespace, between.plural);
    let read = |listed: &mut Owners, object: &Value| {
        let (uid, owner) = decide_read::owner(object).ok()?;
        listed.insert(uid, owner);
        Some(())
    };
    match list(session, &path, &[], true, read).await {
        // Its kind isn't there: then nothing of it stands between anything.
        Err(Fault::NotFound) => Ok(Owners::new()),
        listed => Ok(listed?.0),
    }
}
