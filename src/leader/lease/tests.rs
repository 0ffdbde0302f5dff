use super::*;
use crate::cluster::fake::{Fake, Reply, object, open, status};
use tokio::task::JoinHandle;

/// A Lease of that holder at that version.
fn lease(holder: &str, version: u64) -> Reply {
    object(
        200,
        &json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "uptake", "resourceVersion": version.to_string(), "annotations": {"a": "b"}},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": 15,
                "renewTime": format!("2026-12-01T00:00:00.{version:06}Z"),
                "leaseTransitions": 3,
                "strategy": "kept",
            },
        }),
    )
}

/// The head of an answer comes, and then nothing more.
fn silence() -> Reply {
    open(&[])
}

fn absent() -> Reply {
    status(404, "not found")
}

struct Run {
    fake: Fake,
    term: Term,
    release: CancellationToken,
    task: JoinHandle<Result<(), Lost>>,
    start: Instant,
}

impl Run {
    fn start(replies: Vec<Reply>) -> Self {
        let (fake, api) = Fake::start(replies);
        let (lease, term) = Lease::new(api, "own".to_owned(), "me".to_owned(), Timing::default());
        let release = CancellationToken::new();
        let task = tokio::spawn(lease.run(release.clone()));
        Self { fake, term, release, task, start: Instant::now() }
    }

    async fn at(&self, seconds: f64) {
        sleep_until(self.start + Duration::from_secs_f64(seconds)).await;
    }

    /// Method, the version that is replaced, and the holder, of each request.
    fn requests(&self) -> Vec<(String, String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let seen = self.fake.seen();
        seen.iter()
            .map(|seen| {
                let (meta, spec) = (&seen.body["metadata"], &seen.body["spec"]);
                (seen.method.clone(), text(&meta["resourceVersion"]), text(&spec["holderIdentity"]))
            })
            .collect()
    }

    fn assert_requests(&self, expected: &[(&str, &str, &str)]) {
        let requests = self.requests();
        let requests: Vec<_> = requests.iter().map(|(m, v, h)| (&**m, &**v, &**h)).collect();
        assert_eq!(requests, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_makes_the_lease_and_renews_it() {
    let run = Run::start(vec![absent(), lease("me", 1), lease("me", 2)]);
    run.term.begun().await;
    assert!(run.term.is_current());
    run.at(5.5).await;
    run.assert_requests(&[("GET", "", ""), ("POST", "", "me"), ("PUT", "1", "me")]);
    let seen = run.fake.seen();
    assert_eq!(seen[0].uri, "/apis/coordination.k8s.io/v1/namespaces/own/leases/uptake");
    assert_eq!(seen[1].uri, "/apis/coordination.k8s.io/v1/namespaces/own/leases");
    assert_eq!(seen[1].body["spec"]["leaseTransitions"], 0);
    assert_eq!(seen[1].body["spec"]["leaseDurationSeconds"], 15);
    assert_eq!(seen[2].body["spec"]["leaseTransitions"], 3, "a renewal is no transition");
    assert_eq!(seen[2].body["spec"]["strategy"], "kept", "what others wrote is kept");
    assert_eq!(seen[2].body["metadata"]["annotations"]["a"], "b");
}

#[tokio::test(start_paused = true)]
async fn of_two_candidates_the_second_gets_a_conflict_and_waits() {
    let run = Run::start(vec![absent(), status(409, "already exists"), lease("other", 1)]);
    run.at(15.9).await;
    assert!(!run.term.is_current());
    assert!(run.requests()[2..].iter().all(|(method, ..)| method == "GET"), "{:?}", run.requests());
    run.at(16.5).await;
    let requests = run.requests();
    assert_eq!(*requests.last().unwrap(), ("PUT".to_owned(), "1".to_owned(), "me".to_owned()));
    assert_eq!(run.fake.seen().last().unwrap().body["spec"]["leaseTransitions"], 4);
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_the_next_look() {
    let run = Run::start(vec![lease("other", 1), lease("other", 1), lease("", 2), lease("me", 3)]);
    run.at(2.1).await;
    assert!(run.term.is_current());
    run.assert_requests(&[("GET", "", ""), ("GET", "", ""), ("GET", "", ""), ("PUT", "2", "me")]);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_is_lost_is_repeated_over_what_it_did() {
    let run =
        Run::start(vec![absent(), lease("me", 1), silence(), lease("me", 2), lease("me", 3), lease("me", 4)]);
    for quarter in 1..80 {
        run.at(f64::from(quarter) / 4.0).await;
        assert!(run.term.is_current(), "after {quarter} quarters");
    }
    let requests = run.requests();
    let requests: Vec<_> = requests[..5].iter().map(|(m, v, _)| (&**m, &**v)).collect();
    assert_eq!(requests, [("GET", ""), ("POST", ""), ("PUT", "1"), ("GET", ""), ("PUT", "2")]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_hears_nothing_ends_when_its_claim_does() {
    for deaf in [silence, || status(500, "no"), || status(403, "no"), || status(429, "no")] {
        let run = Run::start(vec![absent(), lease("me", 1), deaf()]);
        run.at(14.9).await;
        assert!(run.term.is_current() && !run.task.is_finished());
        run.at(15.1).await;
        assert!(!run.term.is_current());
        assert_eq!(run.task.await.unwrap(), Err(Lost::Expired("own".to_owned())));
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_finds_another_one_ends_at_once() {
    let run = Run::start(vec![absent(), lease("me", 1), status(409, "changed"), lease("other", 2)]);
    run.at(5.1).await;
    assert!(!run.term.is_current());
    assert_eq!(run.task.await.unwrap(), Err(Lost::Taken("own".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_is_made_again() {
    let run = Run::start(vec![absent(), lease("me", 1), absent(), absent(), lease("me", 3)]);
    run.at(5.5).await;
    assert!(run.term.is_current());
    let methods: Vec<String> = run.requests().into_iter().map(|(method, ..)| method).collect();
    assert_eq!(methods, ["GET", "POST", "PUT", "GET", "POST"]);
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_given_back_by_its_version() {
    let run = Run::start(vec![absent(), lease("me", 1), lease("", 2)]);
    run.at(1.0).await;
    run.release.cancel();
    assert_eq!(run.task.await.unwrap(), Ok(()));
    assert!(!run.term.is_current());
    let last = run.fake.seen().pop().unwrap();
    assert_eq!((last.method.as_str(), &last.body["spec"]["holderIdentity"]), ("PUT", &json!("")));
    assert_eq!(last.body["metadata"]["resourceVersion"], "1");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_given_back_also_when_a_renewal_was_under_way_and_never_if_it_is_anothers() {
    for (holder, writes) in [("me", 4), ("other", 3)] {
        let replies =
            vec![absent(), lease("me", 1), silence(), status(409, "changed"), lease(holder, 2), lease("", 3)];
        let run = Run::start(replies);
        run.at(6.0).await;
        run.release.cancel();
        assert_eq!(run.task.await.unwrap(), Ok(()));
        let count = run.fake.seen().iter().filter(|seen| seen.method != "GET").count();
        assert_eq!(count, writes, "{holder}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_gives_nothing_back() {
    let mut run = Run::start(vec![lease("other", 1)]);
    run.at(1.0).await;
    run.release.cancel();
    assert_eq!((&mut run.task).await.unwrap(), Ok(()));
    assert!(run.requests().iter().all(|(method, ..)| method == "GET"));
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_said_at_once() {
    let run = Run::start(vec![status(403, r#"leases "uptake" is forbidden: User "x" cannot get resource"#)]);
    let lost = run.task.await.unwrap().unwrap_err().to_string();
    assert!(lost.contains("Lease own/uptake") && lost.contains("cannot get"), "{lost}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_to_write_is_said_at_once_though_the_lease_can_be_read() {
    let run = Run::start(vec![absent(), status(403, "leases is forbidden")]);
    let lost = run.task.await.unwrap().unwrap_err();
    assert!(matches!(&lost, Lost::Unusable(_, words) if words.contains("forbidden")), "{lost}");
}
