//! Secrets and keys that go, come and come back.

use crate::stage::{ROLLED, Stage, Trace, VALUE, create, kubectl, reader, recreate, set_data, wait_held};
use crate::support::operator::Operator;
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};
use k8s_openapi::api::core::v1::{Pod, Secret};
use serde_json::json;

/// Something that its pods require goes: held, said so once, and nothing rolls until it is back and differs.
async fn held_until_it_is_back(stage: &Stage, operator: &Operator, web: &Workload, turn: usize, value: &str) {
    let before = stage.trace(web).await;
    stage.wait_outcomes("RolloutHeld", web, turn).await;
    wait_held(operator, "missing", 1.0).await;
    stage.witness().await;
    assert_eq!(stage.trace(web).await, before, "new pods would not start");
    let told = stage.ns.events_with("RolloutHeld").await.pop().unwrap();
    assert_eq!(told.type_.as_deref(), Some("Warning"));
    stage.rotate(value).await;
    stage.wait_rolled_once(web, &before, value).await;
    wait_held(operator, "missing", 0.0).await;
    stage.witness().await;
    stage.wait_outcomes("RolloutHeld", web, turn).await;
}

/// Case 23.
#[tokio::test]
async fn a_required_key_or_secret_that_goes_holds_the_rollout_until_it_is_back() {
    let stage = Stage::set("goes").await;
    stage.ns.set_secret("db", &[("user", "me")]).await;
    let web = &reader("web");
    stage.run(&[web]).await;
    let operator = stage.operator().await;
    stage.ns.remove_key("db", "password").await;
    held_until_it_is_back(&stage, &operator, web, 1, "two").await;
    stage.ns.delete_secret("db").await;
    held_until_it_is_back(&stage, &operator, web, 2, "three").await;
}

/// Case 23, and it comes back as it was.
#[tokio::test]
async fn a_required_key_that_goes_and_comes_back_as_it_was_rolls_nothing() {
    let stage = Stage::set("unchanged").await;
    stage.ns.set_secret("db", &[("user", "me")]).await;
    let web = &reader("web");
    stage.run(&[web]).await;
    let operator = stage.operator().await;
    let before = stage.trace(web).await;
    stage.ns.remove_key("db", "password").await;
    stage.wait_outcomes("RolloutHeld", web, 1).await;
    stage.rotate("one").await;
    wait_held(&operator, "missing", 0.0).await;
    stage.ns.delete_secret("db").await;
    stage.wait_outcomes("RolloutHeld", web, 2).await;
    stage.rotate("one").await;
    wait_held(&operator, "missing", 0.0).await;
    stage.witness().await;
    assert_eq!(stage.trace(web).await, before);
}

/// What a container of the workload's pods waits for, by the kubelet's account.
async fn wait_waiting(stage: &Stage, workload: &Workload) {
    let waits = |pod: &Pod| {
        let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let states = containers.filter_map(|container| container.state.as_ref()?.waiting.as_ref());
        states.filter_map(|waiting| waiting.reason.as_deref()).any(|why| why == "CreateContainerConfigError")
    };
    eventually(ROLLED, || async {
        let pods = stage.ns.pods(workload).await;
        pods.iter().any(waits).then_some(()).ok_or_else(|| format!("no pod of {} waits", workload.name))
    })
    .await;
}

/// Case 15.
#[tokio::test]
async fn pods_that_wait_for_their_key_are_left_to_wait() {
    let stage = Stage::set("waits").await;
    set_data(&stage.ns, "db", &[("user", "me")]).await;
    let narrow = &reader("narrow").consumes(Via::optional_env("db", "extra"));
    let wide = &reader("wide").consumes(Via::optional_env("db", "extra")).consumes(Via::volume("db"));
    for workload in [narrow, wide] {
        stage.ns.create_workload(workload).await;
    }
    let _operator = stage.operator().await;
    for workload in [narrow, wide] {
        wait_waiting(&stage, workload).await;
    }
    stage.ns.set_secret("db", &[("user", "you")]).await;
    stage.witness().await;
    for workload in [narrow, wide] {
        assert_eq!(stage.ns.revisions(workload).await, 1, "{} waits", workload.name);
    }
    stage.rotate("one").await;
    for workload in [narrow, wide] {
        stage.wait_values(workload, VALUE, "one").await;
    }
    stage.witness().await;
    assert_eq!(stage.ns.revisions(narrow).await, 1, "a required key that appears is no change");
    // The whole mount may hold what was there before: a kubelet refreshes it once in a while.
    let before = [stage.trace(narrow).await, stage.trace(wide).await];
    stage.ns.set_secret("db", &[("extra", "x")]).await;
    for (workload, before) in [narrow, wide].into_iter().zip(&before) {
        stage.wait_values(workload, "db/extra", "x").await;
        assert_eq!(stage.ns.revisions(workload).await, before.revisions + 1, "{}", workload.name);
    }
    stage.ns.set_secret("db", &[("unrelated", "y")]).await;
    stage.wait_values(wide, "db/unrelated", "y").await;
    stage.witness().await;
    assert_eq!(stage.ns.revisions(wide).await, before[1].revisions + 2);
    assert_eq!(stage.ns.revisions(narrow).await, before[0].revisions + 1, "it doesn't read that key");
}

/// How a Secret is made anew.
#[derive(Clone, Copy, Debug)]
enum Anew {
    Recreated,
    Immutable,
    Replaced,
}

async fn make_anew(stage: &Stage, how: Anew, password: &str) {
    let data = json!({ "password": password });
    match how {
        Anew::Recreated => recreate(&stage.ns, "db", &[("password", password)]).await,
        Anew::Immutable => {
            stage.ns.delete_secret("db").await;
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "db" }, "immutable": true,
                "stringData": data,
            });
            create(&stage.ns, &secret).await;
        }
        Anew::Replaced => {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "db" }, "stringData": data,
            });
            kubectl(&stage.ns, stage.cluster, &["replace", "--force", "-f", "-"], &secret.to_string());
        }
    }
}

/// Case 13: immutable, replaced by force, and each with a restart in between.
#[tokio::test]
async fn a_secret_that_is_made_anew_in_any_way_rolls_if_and_only_if_the_data_differs() {
    let stage = Stage::set("anew").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    let mut operator = stage.operator().await;
    let mut value = String::from("one");
    for how in [Anew::Immutable, Anew::Replaced, Anew::Recreated] {
        for away in [false, true] {
            let before: Trace = stage.trace(web).await;
            // A Secret's version from after their births is in the ledger: the pods that the last turn made are older
            // than the time in which nobody watches. Others might hold what stood in between.
            stage.witness().await;
            for differs in [false, true] {
                if differs {
                    value = format!("{how:?}-{away}");
                }
                if away {
                    operator.kill9();
                }
                make_anew(&stage, how, &value).await;
                if away {
                    operator = stage.operator().await;
                }
                if differs {
                    stage.wait_rolled_once(web, &before, &value).await;
                } else {
                    stage.witness().await;
                    assert_eq!(stage.trace(web).await, before, "{how:?}, away: {away}");
                }
            }
        }
    }
}

/// Case 13: deleted, then a restart, then made again.
#[tokio::test]
async fn a_restart_between_deletion_and_creation_changes_nothing_of_that() {
    let stage = Stage::set("between").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    stage.wait_aged(web).await;
    let mut operator = stage.operator().await;
    let before = stage.trace(web).await;
    for (value, rolls) in [("one", false), ("two", true)] {
        operator.kill9();
        stage.ns.delete_secret("db").await;
        operator = stage.operator().await;
        stage.witness().await;
        assert_eq!(stage.trace(web).await, before, "new pods would not start");
        operator.kill9();
        stage.rotate(value).await;
        operator = stage.operator().await;
        if rolls {
            stage.wait_rolled_once(web, &before, value).await;
        } else {
            stage.witness().await;
            assert_eq!(stage.trace(web).await, before);
        }
    }
}

/// Case 35.
#[tokio::test]
async fn a_service_accounts_token_holds_nothing() {
    let stage = Stage::set("token").await;
    let token = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": { "name": "token", "annotations": { "kubernetes.io/service-account.name": "default" } },
    });
    create(&stage.ns, &token).await;
    let secrets = stage.ns.api::<Secret>();
    eventually(ROLLED, || async {
        let secret = secrets.get("token").await.map_err(|error| error.to_string())?;
        let filled = secret.data.is_some_and(|data| data.contains_key("token"));
        filled.then_some(()).ok_or_else(|| "nobody fills the token in".to_owned())
    })
    .await;
    let web = &reader("web").consumes(Via::env("token", "token")).consumes(Via::volume("token"));
    stage.run(&[web]).await;
    let operator = stage.operator().await;
    let before = stage.trace(web).await;
    stage.rotate("two").await;
    stage.wait_rolled_once(web, &before, "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    // The token is gone, and its controller makes no other: what the Secret still says of `db` waits for it.
    assert_eq!(stage.outcomes("RolloutHeld", web).await, 0);
    wait_held(&operator, "missing", 0.0).await;
}
