//! Rollouts followed to their end, many of them kept in check.

mod breaker;
mod crowd;
pub mod custom;
mod fights;
mod killed;
mod onlooker;
mod storms;
mod strategies;
mod stuck;

use crate::stage::{StageIn, wait_metric};
use crate::support::operator::Operator;
use crate::support::wait::eventually;
use crate::support::workload::Workload;
use k8s_openapi::api::events::v1::Event;
use kube::api::PostParams;
use serde_json::Value;
use std::time::Duration;

/// What waits for the minute without progress after which a rollout counts as stuck, on a busy machine.
const STUCK: Duration = Duration::from_secs(180);

/// Makes a workload, as somebody.
async fn create_by(stage: &StageIn<'_>, manager: &str, workload: &Workload) {
    let object = serde_json::from_value(workload.manifest().clone()).unwrap();
    let parameters = PostParams { field_manager: Some(manager.into()), ..PostParams::default() };
    stage.ns.workloads(workload.kind).create(&parameters, &object).await.unwrap();
}

fn note(event: &Event) -> &str {
    event.note.as_deref().unwrap_or_default()
}

/// Until a workload was told of with that reason, in these words.
async fn wait_told(stage: &StageIn<'_>, reason: &str, workload: &Workload, words: &str) {
    let event = stage.ns.wait_event(STUCK, reason, &workload.name).await;
    assert!(note(&event).contains(words), "{}", note(&event));
}

/// A field of a workload, by JSON pointer.
async fn field(stage: &StageIn<'_>, workload: &Workload, pointer: &str) -> Value {
    stage.ns.get(workload).await.pointer(pointer).cloned().unwrap_or_default()
}

/// The stamp on a workload's template; null if there is none.
async fn stamp(stage: &StageIn<'_>, workload: &Workload) -> Value {
    field(stage, workload, "/spec/template/metadata/annotations/uptake.dev~1secret-version").await
}

/// Until its template is stamped.
async fn wait_stamped(stage: &StageIn<'_>, workload: &Workload) {
    eventually(STUCK, || async {
        let stamped = stamp(stage, workload).await.is_string();
        stamped.then_some(()).ok_or_else(|| format!("{} isn't stamped", workload.name))
    })
    .await;
}

/// Until the operator's metric says so many pods of a workload hold an old value.
async fn wait_stale(operator: &Operator, stage: &StageIn<'_>, workload: &Workload, pods: f64) {
    let labels = [("namespace", &*stage.ns.name), ("kind", workload.kind.name()), ("name", &*workload.name)];
    wait_metric(operator, "uptake_stale_pods", &labels, pods).await;
}
