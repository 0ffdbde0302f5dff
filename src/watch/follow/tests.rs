use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::*;
use crate::{
    catalog::ReadOptions,
    cluster::fake::{Fake, Reply, lines, object, open, page, status, text},
    facts::Kind,
    ledger::{DigestKey, KEY_BYTES},
    record::captured::Captured,
    watch::{outlet::Said, secret::Secrets, workload::Workloads},
};

fn secret(name: &str, version: u64) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "demo", "uid": name, "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-12-01T00:00:00Z",
        },
        "data": {"password": "aHVudGVyMg=="},
    })
}

fn event(kind: &str, object: &Value) -> String {
    json!({"type": kind, "object": object}).to_string()
}

fn bookmark(version: u64, ends_list: bool) -> String {
    let mut object = json!({"metadata": {"resourceVersion": version.to_string()}});
    if ends_list {
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    event("BOOKMARK", &object)
}

fn target() -> Target {
    Target {
        kind: "Secret".to_owned(),
        place: Place::Path("/api/v1/secrets".to_owned()),
        watch_path: None,
        fields: Some("type!=x".to_owned()),
        page: 50,
        optional: false,
        may_be_absent: None,
        seed: 3,
    }
}

fn show<T, Id>(said: &Watched<T, Id>, name: impl Fn(&T) -> String, id: impl Fn(&Id) -> String) -> String {
    match said {
        Watched::Broken(InventoryFault::Forbidden(_)) => "forbidden".to_owned(),
        Watched::Broken(InventoryFault::UnknownKind) => "unknown kind".to_owned(),
        Watched::Broken(InventoryFault::Unavailable(words)) => format!("unavailable: {words}"),
        Watched::Relist => "relist".to_owned(),
        Watched::Apply(item) => format!("+{}", name(item)),
        Watched::Delete(at, version) => format!("-{}@{version}", id(at)),
        Watched::Complete(version) => format!("complete@{version}"),
        Watched::Progress(version) => format!("progress@{version}"),
    }
}

/// A backoff that tests can wait for.
fn quick() -> Box<dyn Backoff> {
    struct Quick;
    impl Iterator for Quick {
        type Item = Duration;

        fn next(&mut self) -> Option<Duration> {
            Some(Duration::from_millis(5))
        }
    }
    impl Backoff for Quick {
        fn reset(&mut self) {}
    }
    Box::new(Quick)
}

/// Follows Secrets until so many words were said.
async fn said(api: Api, target: Target, count: usize) -> Vec<String> {
    let key = DigestKey::new([1; KEY_BYTES]);
    let (to, mut from) = mpsc::channel(100);
    let (_round, rounds) = watch::channel(0);
    let reader = Secrets { key, ignored: vec!["kube-system".into()] };
    let task =
        tokio::spawn(follow_with(api, target, reader, Outlet::new(0, rounds, to), quick(), Duration::ZERO));
    let mut words = Vec::new();
    while words.len() < count {
        let next = timeout(Duration::from_secs(20), from.recv()).await;
        let Ok(Some(Said { words: said, .. })) = next else { panic!("nothing after {words:?}") };
        words.push(show(
            &said,
            |item| format!("{}@{}", item.id.name, item.version),
            |id| id.name.to_string(),
        ));
    }
    task.abort();
    words
}

async fn follow_secrets(replies: Vec<Reply>, count: usize) -> (Vec<String>, Vec<String>) {
    let (server, api) = Fake::start(replies);
    let words = said(api, target(), count).await;
    (words, server.uris())
}

#[tokio::test]
async fn a_streamed_list_goes_on_as_a_watch_and_resumes_unbroken() {
    let first = lines(&[
        event("ADDED", &secret("a", 4)),
        bookmark(9, true),
        event("MODIFIED", &secret("a", 10)),
        bookmark(12, false),
    ]);
    let second = open(&[event("DELETED", &secret("a", 13))]);
    let (words, seen) = follow_secrets(vec![first, second], 6).await;
    assert_eq!(words, ["relist", "+a@4", "complete@9", "+a@10", "progress@12", "-a@13"]);
    assert!(seen[0].contains("sendInitialEvents=true") && seen[0].contains("resourceVersion=&"), "{seen:?}");
    assert!(seen[0].contains("allowWatchBookmarks=true") && seen[0].contains("fieldSelector=type%21%3Dx"));
    assert!(seen[1].contains("resourceVersion=12&"), "{seen:?}");
}

#[tokio::test]
async fn an_older_server_is_listed_by_pages() {
    let replies = vec![
        status(422, "sendInitialEvents is forbidden for watch"),
        page(&[secret("a", 4)], 0, "more"),
        page(&[secret("b", 5)], 9, ""),
        open(&[event("ADDED", &secret("c", 10))]),
    ];
    let (words, seen) = follow_secrets(replies, 5).await;
    assert_eq!(words, ["relist", "+a@4", "+b@5", "complete@9", "+c@10"]);
    assert!(!seen[1].contains("resourceVersion") && seen[1].contains("limit=50"), "{seen:?}");
    assert!(seen[2].contains("continue=more"), "{seen:?}");
}

#[tokio::test]
async fn an_expired_version_makes_a_fresh_list() {
    let expired = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    let replies = vec![
        lines(&[bookmark(9, true)]),
        lines(&[event("ERROR", &expired)]),
        lines(&[bookmark(20, true)]),
        status(410, "too old"),
        open(&[bookmark(30, true)]),
    ];
    let (words, _) = follow_secrets(replies, 6).await;
    assert_eq!(words, ["relist", "complete@9", "relist", "complete@20", "relist", "complete@30"]);
}

#[tokio::test]
async fn missing_rights_are_said_once_and_recover() {
    let forbidden = || status(403, r#"secrets is forbidden: User "x" cannot list resource "secrets""#);
    let replies = vec![forbidden(), forbidden(), open(&[bookmark(9, true)])];
    let (words, seen) = follow_secrets(replies, 3).await;
    assert_eq!(words, ["forbidden", "relist", "complete@9"]);
    assert_eq!(seen.len(), 3);
}

#[tokio::test]
async fn where_rights_may_be_missing_it_counts_as_empty() {
    let forbidden = status(403, r#"namespaces "a" is forbidden: User "x" cannot list resource"#);
    let (_, api) = Fake::start(vec![forbidden]);
    let words = said(api, Target { optional: true, ..target() }, 2).await;
    assert_eq!(words, ["relist", "complete@0"]);
}

/// Of a kind that the cluster may be without.
fn absentable() -> Target {
    Target { may_be_absent: Some("/apis/g/v1".to_owned()), ..target() }
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_empty_until_it_comes() {
    let replies = vec![status(404, "not found"), status(404, "not found"), open(&[bookmark(9, true)])];
    let (fake, api) = Fake::start(replies);
    let words = said(api, absentable(), 4).await;
    assert_eq!(words, ["relist", "complete@0", "relist", "complete@9"]);
    assert_eq!(fake.count(), 3);
}

#[tokio::test]
async fn a_kind_that_is_removed_is_empty_again() {
    let replies = vec![
        lines(&[event("ADDED", &secret("a", 8)), bookmark(9, true)]),
        status(404, "the server could not find the requested resource"),
    ];
    let (_, api) = Fake::start(replies);
    let words = said(api, absentable(), 5).await;
    assert_eq!(words, ["relist", "+a@8", "complete@9", "relist", "complete@9"]);
}

#[tokio::test]
async fn without_rights_discovery_tells_whether_the_kind_is_served() {
    let forbidden = || status(403, r#"secrets is forbidden: User "x" cannot list resource "secrets""#);
    let resources = json!({"resources": [{"name": "secrets", "kind": "Secret"}]}).to_string();
    let (fake, api) = Fake::start(vec![forbidden(), text(200, &resources)]);
    assert_eq!(said(api, absentable(), 1).await, ["forbidden"]);
    assert_eq!(fake.uris()[1], "/apis/g/v1");

    let (_, api) = Fake::start(vec![forbidden(), status(404, "not found")]);
    assert_eq!(said(api, absentable(), 2).await, ["relist", "complete@0"]);
}

#[tokio::test]
async fn what_counts_as_empty_is_said_again_when_a_fresh_list_is_asked_for() {
    let (fake, api) = Fake::start(vec![status(404, "not found")]);
    let key = DigestKey::new([1; KEY_BYTES]);
    let (to, mut from) = mpsc::channel(100);
    let (round, rounds) = watch::channel(0);
    let reader = Secrets { key, ignored: Vec::new() };
    tokio::spawn(follow_with(api, absentable(), reader, Outlet::new(0, rounds, to), quick(), Duration::ZERO));
    for asked in 0..3 {
        round.send_replace(asked);
        for expected in ["relist", "complete@0"] {
            let Said { round, words, .. } = from.recv().await.unwrap();
            let words = show(&words, |facts| facts.id.name.to_string(), |id| id.name.to_string());
            assert_eq!((round, words.as_str()), (asked, expected));
        }
    }
    assert!(from.try_recv().is_err());
    assert!(fake.count() >= 3);
}

#[tokio::test]
async fn a_version_that_goes_back_is_passed_on_and_ends_the_watch() {
    let replies = vec![lines(&[bookmark(90, true), bookmark(12, false)]), open(&[bookmark(12, true)])];
    let (words, _) = follow_secrets(replies, 5).await;
    assert_eq!(words, ["relist", "complete@90", "progress@12", "relist", "complete@12"]);
}

#[tokio::test]
async fn ignored_namespaces_are_dropped() {
    let mut ignored = secret("b", 10);
    ignored["metadata"]["namespace"] = "kube-system".into();
    let replies = vec![open(&[
        event("ADDED", &ignored),
        bookmark(9, true),
        event("DELETED", &ignored),
        bookmark(11, false),
    ])];
    let (words, _) = follow_secrets(replies, 3).await;
    assert_eq!(words, ["relist", "complete@9", "progress@11"]);
}

#[tokio::test]
async fn a_resumption_at_a_busy_server_breaks_nothing() {
    let replies = vec![
        lines(&[bookmark(9, true)]),
        status(429, "later"),
        status(429, "later"),
        open(&[event("ADDED", &secret("a", 10))]),
    ];
    let (words, seen) = follow_secrets(replies, 3).await;
    assert_eq!(words, ["relist", "complete@9", "+a@10"]);
    assert!(seen[3].contains("resourceVersion=9&"), "{seen:?}");
}

#[tokio::test]
async fn after_a_server_that_was_down_the_list_is_fresh_for_the_store_may_be_another() {
    let replies = vec![
        lines(&[bookmark(9, true)]),
        status(503, "etcd is being restored"),
        status(429, "later"),
        lines(&[event("ADDED", &secret("a", 12))]),
        lines(&[event("ADDED", &secret("a", 7)), bookmark(12, true)]),
        open(&[event("ADDED", &secret("b", 13))]),
    ];
    let (words, seen) = follow_secrets(replies, 6).await;
    assert_eq!(words, ["relist", "complete@9", "relist", "+a@7", "complete@12", "+b@13"]);
    assert!(seen[4].contains("sendInitialEvents=true"), "{seen:?}");
}

#[tokio::test]
async fn one_object_that_cannot_be_read_is_left_out() {
    let mut bad = secret("bad", 5);
    bad["data"]["password"] = "%hunter2%".into();
    let mut later = bad.clone();
    later["metadata"]["resourceVersion"] = "10".into();
    let log = Captured::default();
    let guard = tracing::subscriber::set_default(log.subscriber(tracing::Level::TRACE));
    let replies = vec![open(&[
        event("ADDED", &bad),
        event("ADDED", &secret("good", 6)),
        bookmark(9, true),
        event("MODIFIED", &later),
        bookmark(11, false),
    ])];
    let (words, _) = follow_secrets(replies, 4).await;
    drop(guard);
    assert_eq!(words, ["relist", "+good@6", "complete@9", "progress@11"]);
    let log = log.text();
    assert_eq!(log.matches("can't be read").count(), 1, "{log}");
    assert!(log.contains("demo") && log.contains("bad") && !log.contains("hunter2"), "{log}");
}

/// What a server may say instead of a list: each holds the value as it is and in base64.
fn garbled() -> Vec<Reply> {
    let whole = event("ADDED", &secret("hunter2", 4));
    let cut = &whole[..whole.len() - 9];
    vec![
        lines(&[cut.to_owned(), bookmark(9, true)]),
        lines(&[whole.replace("\"data\":{", "\"data\":[hunter2,")]),
        text(200, "{\"hunter2 aHVudGVyMg=="),
        text(200, "hunter2 aHVudGVyMg==\n"),
        text(500, "<html>hunter2 aHVudGVyMg==</html>"),
        status(422, "is forbidden"),
        text(
            200,
            "{\"metadata\":{\"resourceVersion\":\"4\"},\"items\":[{\"data\":{\"a\":\"aHVudGVyMg==\",\"hunter2",
        ),
        page(&[json!({"metadata": 4, "data": "hunter2"})], 4, ""),
        open(&[bookmark(20, true)]),
    ]
}

#[tokio::test]
async fn no_value_of_a_garbled_answer_is_ever_logged() {
    let log = Captured::default();
    let guard = tracing::subscriber::set_default(log.subscriber(tracing::Level::TRACE));
    let (server, api) = Fake::start(garbled());
    let (to, mut from) = mpsc::channel(100);
    let (_round, rounds) = watch::channel(0);
    let reader = Secrets { key: DigestKey::new([1; KEY_BYTES]), ignored: vec![] };
    let task =
        tokio::spawn(follow_with(api, target(), reader, Outlet::new(0, rounds, to), quick(), Duration::ZERO));
    let mut words = Vec::new();
    while server.count() < 7 {
        tokio::select! {
            Some(Said { words: said, .. }) = from.recv() => {
                words.push(show(&said, |_| String::new(), |_| String::new()));
            }
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
    task.abort();
    drop(guard);
    let log = log.text();
    assert!(words.iter().any(|word| word == "unavailable: undecodable answer"), "{words:?}");
    assert!(log.contains("Inventory is not known") && log.contains("undecodable answer"), "{log}");
    for text in [log, words.join(" ")] {
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    }
}

/// The positive control: kube's own list of the same answer does log the value, and the captured log shows it
/// unless the caps are on.
#[tokio::test]
async fn the_clients_own_list_would_log_it_but_for_the_caps() {
    use k8s_openapi::api::core::v1::Secret;
    for capped in [false, true] {
        let log = Captured::default();
        let guard = if capped {
            tracing::subscriber::set_default(log.subscriber(tracing::Level::TRACE))
        } else {
            tracing::subscriber::set_default(log.uncapped())
        };
        let garbled = text(200, "{\"items\":[{\"data\":{\"a\":\"aHVudGVyMg==\",\"hunter2");
        let (_, client) = Fake::client(vec![garbled]);
        let listed = kube::Api::<Secret>::all(client).list(&kube::api::ListParams::default()).await;
        drop(guard);
        assert!(listed.is_err());
        assert_eq!(log.text().contains("hunter2"), !capped, "{}", log.text());
    }
}

#[tokio::test]
async fn a_kind_that_is_not_known_is_waited_for() {
    let (server, api) = Fake::start(vec![text(404, "404 page not found"), open(&[bookmark(9, true)])]);
    let (to, mut from) = mpsc::channel(100);
    let (_round, rounds) = watch::channel(0);
    let reader = Workloads {
        kind: Kind::Deployment,
        ignored: vec![],
        options: ReadOptions { roll_volumes: true },
        knative: false,
    };
    tokio::spawn(follow_with(api, target(), reader, Outlet::new(0, rounds, to), quick(), Duration::ZERO));
    let mut words = Vec::new();
    for _ in 0..3 {
        let Said { words: said, .. } = from.recv().await.unwrap();
        words.push(show(&said, |_| String::new(), |_| String::new()));
    }
    assert_eq!(words, ["unknown kind", "relist", "complete@9"]);
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn a_custom_kind_is_looked_up_at_each_fresh_list() {
    let kind = Kind::Custom(std::sync::Arc::new(crate::facts::CustomKind {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "App".to_owned(),
        template: vec!["spec".to_owned(), "template".to_owned()],
    }));
    let discovered = |resources: Value| object(200, &json!({"resources": resources}));
    let app = |spec: Value| json!({"metadata": {"name": "a", "namespace": "demo", "uid": "u", "resourceVersion": "8"}, "spec": spec});
    let template = json!({"template": {"spec": {"containers": [{"name": "app"}]}}});
    let (server, api) = Fake::start(vec![
        discovered(json!([{"name": "others", "kind": "Other"}])),
        discovered(json!([{"name": "apps/status", "kind": "App"}, {"name": "apps", "kind": "App"}])),
        lines(&[event("ADDED", &app(template)), bookmark(9, true), event("MODIFIED", &app(json!({})))]),
        status(404, "404 page not found"),
        status(404, "404 page not found"),
    ]);
    let (to, mut from) = mpsc::channel(100);
    let (_round, rounds) = watch::channel(0);
    let options = ReadOptions { roll_volumes: true };
    let reader = Workloads { kind: kind.clone(), ignored: vec![], options, knative: false };
    let target =
        Target { place: Place::Workloads(kind.clone(), Some("demo".into())), fields: None, ..target() };
    tokio::spawn(follow_with(
        api.clone(),
        target,
        reader,
        Outlet::new(0, rounds, to),
        quick(),
        Duration::ZERO,
    ));
    let mut words = Vec::new();
    for _ in 0..6 {
        let Said { words: said, .. } = from.recv().await.unwrap();
        words.push(show(&said, |item| item.id.name.to_string(), |id| id.name.to_string()));
    }
    assert_eq!(words, ["unknown kind", "relist", "+a", "complete@9", "-a@8", "unknown kind"]);
    let uris = server.uris();
    assert!(uris[..2].iter().all(|uri| uri == "/apis/example.com/v1"), "{uris:?}");
    assert!(uris[2].starts_with("/apis/example.com/v1/namespaces/demo/apps?"), "{uris:?}");
}

#[tokio::test]
async fn a_new_round_makes_a_fresh_list() {
    let (_, api) = Fake::start(vec![open(&[bookmark(9, true)]), open(&[bookmark(10, true)])]);
    let (to, mut from) = mpsc::channel(100);
    let (round, rounds) = watch::channel(0);
    let reader = Secrets { key: DigestKey::new([1; KEY_BYTES]), ignored: vec![] };
    tokio::spawn(follow_with(api, target(), reader, Outlet::new(0, rounds, to), quick(), Duration::ZERO));
    for (asked, version) in [(0, 9), (1, 10)] {
        round.send_replace(asked);
        let relist = from.recv().await.unwrap();
        assert!(matches!(relist.words, Watched::Relist) && relist.round == asked);
        assert!(matches!(from.recv().await.unwrap().words, Watched::Complete(Version(v)) if v == version));
    }
}

#[test]
fn silence_is_between_five_and_ten_minutes_and_differs() {
    let of = |seed| Target { seed, ..target() }.silence();
    let all: Vec<_> = (0..100).map(of).collect();
    assert!(all.iter().all(|silence| (300..600).contains(&silence.as_secs())));
    assert!(all.iter().any(|silence| *silence != all[0]));
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_resumes_and_is_listed_afresh_in_the_end() {
    let replies = vec![open(&[bookmark(9, true)]), open(&[]), open(&[])];
    let start = Instant::now();
    let (server, api) = Fake::start(replies);
    let key = DigestKey::new([1; KEY_BYTES]);
    let (to, mut from) = mpsc::channel(100);
    let (_round, rounds) = watch::channel(0);
    tokio::spawn(follow(api, target(), Secrets { key, ignored: vec![] }, Outlet::new(0, rounds, to)));
    let mut relists = 0;
    while relists < 2 {
        relists += usize::from(matches!(from.recv().await.unwrap().words, Watched::Relist));
    }
    let silent = start.elapsed();
    assert!(silent >= target().silence() && silent < target().silence() + IDLE, "{silent:?}");
    let resumed = server.uris().iter().filter(|uri| uri.contains("resourceVersion=9&")).count();
    assert!((1..=3).contains(&resumed), "{:?}", server.uris());
}

#[tokio::test(start_paused = true)]
async fn a_resumption_that_fails_for_a_minute_loses_the_inventory() {
    let (_, api) = Fake::start(vec![lines(&[bookmark(9, true)]), status(500, "down")]);
    let key = DigestKey::new([1; KEY_BYTES]);
    let (to, mut from) = mpsc::channel(100);
    let (_round, rounds) = watch::channel(0);
    tokio::spawn(follow(api, target(), Secrets { key, ignored: vec![] }, Outlet::new(0, rounds, to)));
    let start = Instant::now();
    loop {
        if let Watched::Broken(fault) = from.recv().await.unwrap().words {
            assert_eq!(fault, InventoryFault::Unavailable("HTTP 500: down".to_owned()));
            break;
        }
    }
    assert!(start.elapsed() >= PATIENCE && start.elapsed() < 2 * PATIENCE, "{:?}", start.elapsed());
}
