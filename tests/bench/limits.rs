//! What a change costs at least: the same requests without anybody who thinks.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams},
};
use serde_json::json;

use crate::{
    field::{FAN, Field, Place},
    figures::Durations,
};

async fn stamp(field: &Field<'_>, place: &Place, text: &str) {
    let api: Api<Deployment> = Api::namespaced(field.client.clone(), &place.namespace);
    let annotations = json!({ "bare": text });
    let patch = json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } });
    api.patch(&place.name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("a patch");
}

/// Patches all who share a Secret, so many at a time.
pub async fn patch_loop(field: &Field<'_>, workers: usize) -> Duration {
    let began = Instant::now();
    let text = format!("{workers}");
    stream::iter(0..field.size.fanout)
        .for_each_concurrent(workers, async |n| {
            let place = Place { namespace: FAN.into(), name: format!("fan-{n}") };
            stamp(field, &place, &text).await;
        })
        .await;
    began.elapsed()
}

/// One watch event and one patch: from the change to the template's change.
pub async fn reactor(field: &Field<'_>, changes: usize) -> Durations {
    // The last one: the scenarios begin with the first.
    let place = field.place(field.size.namespaces * field.size.per_namespace - 1);
    let api: Api<Secret> = Api::namespaced(field.client.clone(), &place.namespace);
    let list = api.list(&ListParams::default()).await.expect("a list");
    let version = list.metadata.resource_version.unwrap_or_default();
    let mut events = api.watch(&WatchParams::default(), &version).await.expect("a watch").boxed();
    let react = async {
        while let Ok(Some(event)) = events.try_next().await {
            if let WatchEvent::Modified(secret) = event {
                stamp(field, &place, &secret.metadata.resource_version.unwrap_or_default()).await;
            }
        }
    };
    let measure = async {
        let mut measured = Durations::default();
        for _ in 0..changes {
            let began = Instant::now();
            field.change(&place).await;
            let seen = field.changed_after(&place, began, Duration::from_secs(10)).await;
            measured.add(seen.expect("the bare reactor reacts") - began);
        }
        measured
    };
    tokio::select! {
        () = react => panic!("the watch ended"),
        measured = measure => measured,
    }
}
