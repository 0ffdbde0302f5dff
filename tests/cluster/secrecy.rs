//! No Secret's value stands anywhere but in its Secret: not in a log at any level, an Event, a metric or the ledger.

use crate::stage::{ROLLED, Stage, VALUE, create, reader};
use crate::support::http;
use crate::support::operator::Operator;
use crate::support::proxy::{Asked, Fault, Proxy, list_of, watch_of};
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;

/// What is looked for: two values. JSON can't hold the second as it is; a Namespace may have the first as its name.
const FIRST: &str = "hunter2-first-plaintext";
const SECOND: &str = "second \"quoted\"\\\n\u{1}é-value";

/// Every way that a value is likely to be written in.
fn forms(value: &str) -> Vec<String> {
    let base64 = BASE64_STANDARD.encode(value);
    let json = serde_json::to_string(value).unwrap();
    let twice = serde_json::to_string(&json).unwrap();
    let inner = |text: &str, quotes: usize| text[quotes..text.len() - quotes].to_owned();
    let hex = value.bytes().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    vec![
        value.to_owned(),
        base64.trim_end_matches('=').to_owned(),
        // The encoding of the encoding, as a value within a ledger object would be.
        BASE64_STANDARD.encode(&base64).trim_end_matches('=').to_owned(),
        inner(&json, 1),
        inner(&twice, 3),
        format!("{value:?}").trim_matches('"').to_owned(),
        format!("{:?}", value.as_bytes()).trim_matches(['[', ']']).to_owned(),
        form_urlencoded::byte_serialize(value.as_bytes()).collect(),
        hex,
        // Its beginning: a message may be cut.
        value.chars().take(12).collect(),
        base64.chars().take(14).collect(),
    ]
}

/// The form in which one of the values stands in a text.
fn leak(text: &str) -> Option<String> {
    [FIRST, SECOND].iter().flat_map(|value| forms(value)).find(|form| text.contains(form.as_str()))
}

/// Everything that an installation shows or keeps: its log, metrics, Events and ledger.
async fn said(stage: &Stage, operator: &Operator) -> Vec<(&'static str, String)> {
    let mut said = vec![("log", operator.log())];
    if operator.exited().is_none() {
        for page in ["/metrics", "/readyz", "/healthz"] {
            // Not before it listens.
            if let Ok((_, text)) = http::get(operator.address(), page).await {
                said.push((page, text));
            }
        }
    }
    said.push(("Events", json!(stage.ns.events().await).to_string()));
    said.push(("ledger", ledger(stage).await));
    for workload in ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ControllerRevision", "Pod"] {
        let api_version = if workload == "Pod" { "v1" } else { "apps/v1" };
        let list = stage.ns.dynamic(api_version, workload).list(&ListParams::default()).await.unwrap();
        said.push((workload, json!(list.items).to_string()));
    }
    said
}

/// All Secrets of Uptake's own namespace, decoded and as they are.
async fn ledger(stage: &Stage) -> String {
    let secrets: Api<Secret> = Api::namespaced(stage.ns.client.clone(), &stage.install.own_namespace);
    let secrets = secrets.list(&ListParams::default()).await.unwrap().items;
    assert!(secrets.len() > 1, "a key, a ledger");
    let values = secrets.iter().flat_map(|secret| secret.data.iter().flatten());
    let decoded: String =
        values.map(|(_, value)| String::from_utf8_lossy(&value.0).into_owned() + "\n").collect();
    decoded + &json!(secrets).to_string()
}

/// Where a value is said, and in which form.
async fn leaks(stage: &Stage, operator: &Operator) -> Vec<(&'static str, String)> {
    let said = said(stage, operator).await;
    said.into_iter().filter_map(|(place, text)| Some((place, leak(&text)?))).collect()
}

async fn assert_silent(stage: &Stage, operator: &Operator) {
    assert!(!operator.log().is_empty(), "it says nothing at all");
    assert_eq!(leaks(stage, operator).await, []);
}

/// At the most talkative level, behind a proxy, with consumers of every sort.
async fn talkative(prefix: &str) -> (Stage, Proxy, Workload) {
    let mut stage = Stage::set(prefix).await;
    let proxy = Proxy::start(stage.cluster).await;
    stage.install = stage.install.via(&proxy).log_level("trace");
    stage.rotate(FIRST).await;
    let web = reader("web").consumes(Via::volume("db"));
    stage.run(&[&web]).await;
    (stage, proxy, web)
}

async fn plant_event(stage: &Stage, note: &str) {
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "generateName": "planted-" },
        "eventTime": "2026-12-01T00:00:00.000000Z", "reportingController": "a/b", "reportingInstance": "c",
        "action": "Plant", "reason": "Planted", "type": "Normal", "note": note,
        "regarding": { "kind": "Secret", "namespace": stage.ns.name, "name": "db" },
    });
    create(&stage.ns, &event).await;
}

async fn plant_ledger(stage: &Stage, value: &str) {
    let secrets: Api<Secret> = Api::namespaced(stage.ns.client.clone(), &stage.install.own_namespace);
    let planted = json!({ "metadata": { "name": "planted" }, "stringData": { "ledger": format!("{{\"a\":{value:?}}}") } });
    secrets.create(&PostParams::default(), &serde_json::from_value(planted).unwrap()).await.unwrap();
}

/// The positive control: a value that is logged on purpose, or planted in an Event or the ledger, is found by what
/// finds none elsewhere.
#[tokio::test]
async fn what_is_looked_for_would_be_found() {
    let mut stage = Stage::set("control").await;
    let operator = stage.operator().await;
    assert_silent(&stage, &operator).await;
    operator.kill9();
    // The names of watched namespaces are logged at the start.
    stage.install.namespaces.push(FIRST.into());
    plant_event(&stage, &format!("it was {}", BASE64_STANDARD.encode(SECOND))).await;
    plant_ledger(&stage, SECOND).await;
    let operator = Operator::start(stage.cluster, &stage.install);
    eventually(ROLLED, || async {
        let places: Vec<_> = leaks(&stage, &operator).await.into_iter().map(|(place, _)| place).collect();
        let all = ["log", "Events", "ledger"].iter().all(|place| places.contains(place));
        all.then_some(()).ok_or(format!("found in {places:?} only"))
    })
    .await;
}

#[test]
fn a_value_is_found_however_it_is_written() {
    for value in [FIRST, SECOND] {
        let written = [
            value.to_owned(),
            format!("{value:?}"),
            json!({ "data": value }).to_string(),
            json!(json!({ "data": value }).to_string()).to_string(),
            BASE64_STANDARD.encode(value),
            format!("{:?}", value.as_bytes()),
            value.chars().take(14).collect(),
        ];
        for written in written {
            assert!(leak(&format!("a line with {written} in it")).is_some(), "{written}");
        }
    }
    assert_eq!(leak("nothing of the kind, second to none, hunter"), None);
}

#[tokio::test]
async fn startup_rotations_and_a_stop_say_no_value() {
    let (stage, _proxy, web) = talkative("ordinary").await;
    let operator = stage.operator().await;
    assert_silent(&stage, &operator).await;
    for value in [SECOND, FIRST] {
        stage.rotate(value).await;
        stage.wait_values(&web, VALUE, value).await;
    }
    stage.wait_outcomes("RolloutCompleted", &web, 2).await;
    assert_silent(&stage, &operator).await;
    operator.sigterm();
    operator.wait_exit(ROLLED).await;
    assert_silent(&stage, &operator).await;
}

#[tokio::test]
async fn failed_and_held_rollouts_say_no_value() {
    let (stage, _proxy, web) = talkative("failing").await;
    stage.ns.set_secret("db", &[("fine", "yes")]).await;
    let crashing = &reader("crashing")
        .consumes(Via::env("db", "fine"))
        .set("/spec/progressDeadlineSeconds", json!(2))
        .template_annotation("test.uptake.dev/crash-unless", "db/fine=yes");
    stage.run(&[crashing]).await;
    let operator = stage.operator().await;
    stage.ns.set_secret("db", &[("password", SECOND), ("fine", "no")]).await;
    stage.wait_outcomes("RolloutFailed", crashing, 1).await;
    stage.wait_values(&web, VALUE, SECOND).await;
    stage.ns.remove_key("db", "password").await;
    stage.ns.wait_event(ROLLED, "RolloutHeld", "web").await;
    stage.ns.delete_secret("db").await;
    stage.witness().await;
    assert_silent(&stage, &operator).await;
}

/// In the place of a Secret's data, what a decoder would quote: a value of the wrong type, an encoding that isn't
/// one, a duplicate, a cut.
fn garbled(body: &[u8], change: fn(&str) -> String) -> Vec<u8> {
    change(&String::from_utf8_lossy(body)).into_bytes()
}

/// Of a whole answer's body.
type Rewrite = fn(&[u8]) -> Vec<u8>;

fn wrong_type(body: &[u8]) -> Vec<u8> {
    garbled(body, |text| text.replace("\"data\":{\"password\":", "\"data\":"))
}

fn wrong_encoding(body: &[u8]) -> Vec<u8> {
    garbled(body, |text| text.replace("\"password\":\"", "\"password\":\"%"))
}

fn number_for_text(body: &[u8]) -> Vec<u8> {
    garbled(body, |text| text.replace("\"data\":{", "\"data\":{\"number\":7,"))
}

fn bad_name(body: &[u8]) -> Vec<u8> {
    garbled(body, |text| text.replace("\"resourceVersion\":\"", "\"resourceVersion\":\"x"))
}

fn plain_value(body: &[u8]) -> Vec<u8> {
    garbled(body, |text| text.replace(&BASE64_STANDARD.encode(FIRST), FIRST))
}

/// A proxy's error page that quotes what it didn't understand.
fn data_as_message(_: &[u8]) -> Vec<u8> {
    format!("<html>{FIRST}</html>").into_bytes()
}

/// Paged lists: a server that streams none.
fn streamed(asked: &Asked) -> bool {
    asked.query.contains("sendInitialEvents")
}

/// Each garbling in turn, then the operator recovers and works.
async fn survives(prefix: &str, paged: bool, faults: Vec<Fault>) {
    let (stage, proxy, web) = talkative(prefix).await;
    if paged {
        proxy.on(streamed, Fault::Answer { status: 422, retry_after: None });
    }
    for fault in faults {
        let garbled = if paged {
            proxy.on(list_of_watched_secrets, fault).times(2)
        } else {
            proxy.on(watch_of("secrets"), fault).times(2)
        };
        let operator = Operator::start(stage.cluster, &stage.install);
        eventually(ROLLED, || async { (garbled.hits() > 0).then_some(()).ok_or_else(|| operator.log()) })
            .await;
        operator.wait_ready(ROLLED).await;
        assert_silent(&stage, &operator).await;
        operator.kill9();
        garbled.remove();
    }
    let before = stage.trace(&web).await;
    let operator = stage.operator().await;
    stage.rotate(SECOND).await;
    stage.wait_rolled_once(&web, &before, SECOND).await;
    assert_silent(&stage, &operator).await;
}

/// Not the ledger's.
fn list_of_watched_secrets(asked: &Asked) -> bool {
    list_of("secrets")(asked) && !asked.query.contains("labelSelector")
}

/// Case 39.
#[tokio::test]
async fn a_garbled_list_of_secrets_says_no_value() {
    let rewrites: [Rewrite; 6] =
        [wrong_type, wrong_encoding, number_for_text, bad_name, plain_value, data_as_message];
    let faults = rewrites.map(Fault::Rewrite).into_iter();
    let cuts = [100, 400, 700]
        .into_iter()
        .flat_map(|at| [Fault::CutAfter(at), Fault::EndAfter(at), Fault::Corrupt(at)]);
    survives("garbled", true, faults.chain(cuts).collect()).await;
}

/// Case 39: a watch that begins with the list.
#[tokio::test]
async fn a_garbled_watch_of_secrets_says_no_value() {
    let cuts = [100, 300, 500, 700].into_iter();
    let cuts = cuts.flat_map(|at| [Fault::CutAfter(at), Fault::EndAfter(at), Fault::Corrupt(at)]);
    survives("streamed", false, cuts.collect()).await;
}

/// Case 39: in the midst of a watch.
#[tokio::test]
async fn a_garbled_event_of_a_secret_says_no_value() {
    let (stage, proxy, web) = talkative("event").await;
    let operator = stage.operator().await;
    for (at, value) in [(40, SECOND), (150, FIRST), (260, SECOND)] {
        let garbled = proxy.on(watch_of("secrets"), Fault::Corrupt(at)).times(1);
        proxy.cut_open_answers();
        eventually(ROLLED, || async { (garbled.hits() > 0).then_some(()).ok_or("the watch still stands") })
            .await;
        stage.rotate(value).await;
        stage.wait_values(&web, VALUE, value).await;
    }
    assert_silent(&stage, &operator).await;
}
