use crate::{
    catalog::Selector,
    cluster::fake::{Fake, Reply, object, page, status},
    facts::Time,
    ledger::KEY_BYTES,
    record::{ObjectRef, Reason},
};
use serde_json::json;

use super::*;

fn performer(replies: Vec<Reply>) -> (Fake, Performer) {
    let (fake, api) = Fake::start(replies);
    let config = PerformerConfig {
        own_namespace: "uptake".into(),
        namespaces: vec![],
        instance: "uptake-0".to_owned(),
        digest_key: DigestKey::new([1; KEY_BYTES]),
        between: crate::cluster::between(&Kind::BUILTIN),
        read: ReadOptions { roll_volumes: true },
    };
    (fake, Performer::new(api, config))
}

fn pod(name: &str, uid: u32) -> Value {
    json!({"metadata": {
        "name": name, "namespace": "demo", "uid": format!("00000000-0000-0000-0000-{uid:012x}"),
        "resourceVersion": "4", "creationTimestamp": "2026-12-01T00:00:00Z",
    }})
}

fn deployment(version: u64) -> Value {
    let mut object = pod("web", 7);
    object["metadata"]["resourceVersion"] = version.to_string().into();
    object["spec"] = json!({"template": {"spec": {"containers": [{"name": "web", "image": "web"}]}}});
    object
}

fn web() -> WorkloadId {
    WorkloadId::new(Kind::Deployment, "demo", "web")
}

fn stamp() -> Call {
    Call::Stamp { id: web(), uid: Uid(7), over: Version(41), stamp: "db@5".to_owned() }
}

#[tokio::test]
async fn pods_are_listed_by_consistent_pages() {
    let (fake, performer) = performer(vec![page(&[pod("a", 1)], 9, "more"), page(&[pod("b", 2)], 9, "")]);
    let Answer::Pods(Ok(pods)) = performer.perform(Call::ListPods("demo".into(), Selection::All)).await
    else {
        panic!()
    };
    assert_eq!(pods.iter().map(|pod| &*pod.name).collect::<Vec<_>>(), ["a", "b"]);
    let pods = "/api/v1/namespaces/demo/pods?limit=500";
    assert_eq!(fake.uris(), [pods.to_owned(), format!("{pods}&continue=more")]);
}

#[tokio::test]
async fn pods_and_what_controls_them_are_listed_by_their_labels() {
    let (fake, performer) = performer(vec![page(&[pod("a", 1)], 9, ""), page(&[], 9, "")]);
    let only = Selection::of([&Selector::new([("app", "web")])]);
    assert!(matches!(
        performer.perform(Call::ListPods("demo".into(), only.clone())).await,
        Answer::Pods(Ok(_))
    ));
    assert!(matches!(
        performer.perform(Call::ListReplicaSets("demo".into(), only)).await,
        Answer::Owners(Ok(_))
    ));
    let labels = "labelSelector=app+in+%28web%29&limit=500";
    assert_eq!(
        fake.uris(),
        [
            format!("/api/v1/namespaces/demo/pods?{labels}"),
            format!("/apis/apps/v1/namespaces/demo/replicasets?{labels}"),
        ]
    );
}

#[tokio::test]
async fn a_list_that_expires_between_pages_is_started_again_once() {
    let (fake, performer) = performer(vec![
        page(&[pod("a", 1)], 9, "more"),
        status(410, "expired"),
        page(&[pod("b", 2)], 12, ""),
    ]);
    let Answer::Pods(Ok(pods)) = performer.perform(Call::ListPods("demo".into(), Selection::All)).await
    else {
        panic!()
    };
    assert_eq!(pods.len(), 1, "what the first list named isn't kept");
    assert_eq!(fake.count(), 3);

    let (fake, performer) = self::performer(vec![status(410, "expired")]);
    let answer = performer.perform(Call::ListPods("demo".into(), Selection::All)).await;
    assert!(matches!(answer, Answer::Pods(Err(Fault::Expired))));
    assert_eq!(fake.count(), 2);
}

#[tokio::test]
async fn a_pod_that_cannot_be_read_is_no_proof() {
    let (_, performer) = performer(vec![page(&[json!({"metadata": {"name": "hunter2"}})], 9, "")]);
    let answer = performer.perform(Call::ListPods("demo".into(), Selection::All)).await;
    assert!(matches!(answer, Answer::Pods(Err(Fault::Unknown(words))) if words == "undecodable answer"));
}

#[tokio::test]
async fn an_exact_list_asks_for_metadata_at_that_version_and_sorts() {
    let (fake, performer) = performer(vec![page(&[pod("b", 2)], 9, "more"), page(&[pod("a", 1)], 9, "")]);
    let answer = performer.perform(Call::ListPodsAt("demo".into(), Version(9))).await;
    assert!(matches!(answer, Answer::PodUids(Ok(uids)) if uids == [Uid(1), Uid(2)]));
    let seen = fake.seen();
    assert!(seen[0].uri.ends_with("limit=500&resourceVersion=9&resourceVersionMatch=Exact"), "{seen:?}");
    assert!(seen[1].uri.ends_with("limit=500&continue=more"), "a continued list has no version of its own");
    assert!(seen[0].headers["accept"].to_str().unwrap().contains("as=PartialObjectMetadataList"));
}

#[tokio::test]
async fn an_empty_list_of_metadata_has_null_for_items() {
    let empty = json!({"metadata": {"resourceVersion": "9"}, "items": null});
    let (_, performer) = performer(vec![object(200, &empty)]);
    let answer = performer.perform(Call::ListPodsAt("demo".into(), Version(9))).await;
    assert!(matches!(answer, Answer::PodUids(Ok(uids)) if uids.is_empty()));
}

#[tokio::test]
async fn an_exact_list_that_has_expired_is_not_tried_again() {
    let (fake, performer) = performer(vec![status(410, "expired")]);
    let answer = performer.perform(Call::ListPodsAt("demo".into(), Version(9))).await;
    assert!(matches!(answer, Answer::PodUids(Err(Fault::Expired))));
    assert_eq!(fake.count(), 1);
}

#[tokio::test]
async fn a_stamp_is_one_merge_patch_over_the_inspected_version() {
    let (fake, performer) = performer(vec![object(200, &deployment(42))]);
    let answer = performer.perform(stamp()).await;
    assert!(matches!(answer, Answer::Workload(Ok(workload)) if workload.version == Version(42)));
    let seen = &fake.seen()[0];
    assert_eq!(
        (seen.method.as_str(), &*seen.uri),
        ("PATCH", "/apis/apps/v1/namespaces/demo/deployments/web?fieldManager=uptake")
    );
    assert_eq!(seen.headers["content-type"], "application/merge-patch+json");
    assert_eq!(seen.body["metadata"]["resourceVersion"], "41");
}

#[tokio::test]
async fn a_failed_stamp_is_sent_once_and_told() {
    for (code, fault) in [
        (409, Fault::Conflict),
        (429, Fault::Throttled),
        (422, Fault::Refused("no".into())),
        (503, Fault::Unknown("HTTP 503: no".into())),
    ] {
        let (fake, performer) = performer(vec![status(code, "no")]);
        let answer = performer.perform(stamp()).await;
        assert!(matches!(answer, Answer::Workload(Err(told)) if told == fault), "{code}");
        assert_eq!(fake.count(), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_without_an_answer_ends_as_unknown() {
    let silent: Reply = Box::new(|| {
        let body =
            axum::body::Body::from_stream(futures::stream::pending::<Result<String, std::io::Error>>());
        axum::response::IntoResponse::into_response(body)
    });
    let (_, performer) = performer(vec![silent]);
    let answer = performer.perform(stamp()).await;
    assert!(
        matches!(answer, Answer::Workload(Err(Fault::Unknown(words))) if words == "no answer within 10s")
    );
}

#[tokio::test]
async fn a_ledger_object_is_created_or_replaced_at_its_version() {
    let written = json!({"metadata": {"name": "x", "resourceVersion": "8"}});
    let (fake, performer) = performer(vec![object(201, &written)]);
    for over in [None, Some(Version(5))] {
        let call = Call::WriteLedger { name: "uptake-ledger-x-0".into(), over, body: b"{}".to_vec() };
        assert!(matches!(performer.perform(call).await, Answer::Written(Ok(Version(8)))));
    }
    let [create, replace] = &fake.seen()[..] else { panic!() };
    assert_eq!((&*create.method, &*create.uri), ("POST", "/api/v1/namespaces/uptake/secrets"));
    assert_eq!(
        (&*replace.method, &*replace.uri),
        ("PUT", "/api/v1/namespaces/uptake/secrets/uptake-ledger-x-0")
    );
    assert_eq!(create.body["metadata"].get("resourceVersion"), None);
    assert_eq!(replace.body["metadata"]["resourceVersion"], "5");
    assert_eq!(replace.body["type"], "uptake.dev/ledger");
}

#[tokio::test]
async fn an_event_that_exists_already_is_done() {
    let note = EventNote {
        name: "web.1".to_owned(),
        regarding: ObjectRef::workload(&web(), Uid(7)),
        related: None,
        reason: Reason::RolloutStarted,
        note: "x".to_owned(),
        at: Time(0),
        secret: None,
    };
    let (fake, performer) = performer(vec![status(409, "already exists")]);
    assert!(matches!(performer.perform(Call::Note(Box::new(note))).await, Answer::Done(Ok(()))));
    assert_eq!(fake.uris(), ["/apis/events.k8s.io/v1/namespaces/demo/events"]);
}

#[tokio::test]
async fn a_secret_that_is_not_there_is_none() {
    let (_, performer) = performer(vec![status(404, "not found")]);
    let answer = performer.perform(Call::GetSecret(SecretId::new("demo", "db"))).await;
    assert!(matches!(answer, Answer::Secret(Ok(None))));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_outside_the_term() {
    use crate::leader::{Claim, Term};
    use tokio::{sync::watch, time::Instant};

    let (fake, performer) = performer(vec![object(200, &deployment(42))]);
    let (claims, term) = watch::channel(None);
    let performer = performer.in_term(Term::of(term));
    let note = EventNote {
        name: "web.1".to_owned(),
        regarding: ObjectRef::workload(&web(), Uid(7)),
        related: None,
        reason: Reason::RolloutStarted,
        note: String::new(),
        at: Time(0),
        secret: None,
    };
    let writes = || {
        [
            stamp(),
            Call::WriteLedger { name: "x".to_owned(), over: None, body: vec![] },
            Call::DeleteLedger { name: "x".to_owned(), over: Version(1) },
            Call::Note(Box::new(note.clone())),
        ]
    };
    for claim in [None, Some(Claim { expiry: Instant::now() })] {
        claims.send_replace(claim);
        for call in writes() {
            let answer = performer.perform(call).await;
            assert!(format!("{answer:?}").contains("Unknown"), "{answer:?}");
        }
    }
    assert_eq!(fake.count(), 0);
    performer.perform(Call::GetWorkload(web())).await;
    assert_eq!(fake.count(), 1, "reading is free");
    claims.send_replace(Some(Claim { expiry: Instant::now() + std::time::Duration::from_secs(1) }));
    assert!(matches!(performer.perform(stamp()).await, Answer::Workload(Ok(_))));
}
