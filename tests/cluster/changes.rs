//! What counts as a change, and whom it concerns.

use crate::stage::{ROLLED, Stage, VALUE, reader, recreate, set_data};
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};
use serde_json::json;

/// One of each way to consume a Secret that a container doesn't notice a change of.
fn consumers() -> Vec<Workload> {
    let password = || Via::env("db", "password");
    vec![
        Workload::deployment("by-env").consumes(password()),
        Workload::stateful_set("stateful").consumes(password()),
        Workload::daemon_set("daemon").consumes(password()),
        Workload::deployment("by-env-from").consumes(Via::env_from("db")),
        Workload::deployment("by-sub-path").consumes(Via::sub_path("db", "password")),
        Workload::deployment("by-volume").consumes(Via::volume("db")),
        Workload::stateful_set("by-items").consumes(Via::items("db", &["password"])),
        Workload::deployment("by-projected").consumes(Via::projected("db")),
        Workload::daemon_set("by-init").consumes(Via::init_env("db", "password")),
    ]
}

#[tokio::test]
async fn a_changed_secret_rolls_every_kind_of_consumer_once() {
    let stage = Stage::set("kinds").await;
    let consumers = consumers();
    stage.run(&consumers.iter().collect::<Vec<_>>()).await;
    let _operator = stage.operator().await;
    stage.rotate("two").await;
    for consumer in &consumers {
        stage.wait_values(consumer, VALUE, "two").await;
        stage.wait_outcomes("RolloutCompleted", consumer, 1).await;
    }
    stage.witness().await;
    for consumer in &consumers {
        assert_eq!(stage.ns.revisions(consumer).await, 2, "{}", consumer.name);
        assert_eq!(stage.outcomes("RolloutStarted", consumer).await, 1, "{}", consumer.name);
    }
}

#[tokio::test]
async fn a_label_edit_rolls_nothing() {
    let stage = Stage::set("label").await;
    let consumers = consumers();
    stage.run(&consumers.iter().collect::<Vec<_>>()).await;
    let _operator = stage.operator().await;
    stage.ns.merge_secret("db", &json!({ "metadata": { "labels": { "a": "b" } } }), "test").await.unwrap();
    stage.witness().await;
    for consumer in &consumers {
        assert_eq!(stage.ns.revisions(consumer).await, 1, "{}", consumer.name);
    }
}

#[tokio::test]
async fn a_changed_key_rolls_only_those_that_read_it() {
    let stage = Stage::set("key").await;
    stage.ns.set_secret("db", &[("user", "me")]).await;
    let readers = ["env", "volume"].map(|name| Workload::deployment(&format!("user-by-{name}")));
    let [env, volume] = readers;
    let readers =
        [env.consumes(Via::env("db", "user")), volume.consumes(Via::items("db", &["user", "password"]))];
    let others = [reader("password-1"), reader("password-2"), Workload::deployment("none")];
    stage.run(&readers.iter().chain(&others).collect::<Vec<_>>()).await;
    let _operator = stage.operator().await;
    stage.ns.set_secret("db", &[("user", "you")]).await;
    for reader in &readers {
        stage.wait_values(reader, "db/user", "you").await;
        assert_eq!(stage.ns.revisions(reader).await, 2);
    }
    stage.witness().await;
    for other in &others {
        assert_eq!(stage.ns.revisions(other).await, 1, "{}", other.name);
    }
}

/// Case 14.
#[tokio::test]
async fn rewriting_the_same_data_rolls_nothing() {
    let stage = Stage::set("equal").await;
    let data = [("password", "one"), ("user", "me")];
    set_data(&stage.ns, "db", &data).await;
    let whole = &Workload::deployment("whole").consumes(Via::env_from("db"));
    let web = &reader("web");
    stage.run(&[whole, web]).await;
    let _operator = stage.operator().await;
    for turn in 0..20 {
        let note = json!({ "metadata": { "annotations": { "turn": turn.to_string() } } });
        stage.ns.merge_secret("db", &note, "test").await.unwrap();
        set_data(&stage.ns, "db", &[data[1], data[0]]).await;
        recreate(&stage.ns, "db", &data).await;
        recreate(&stage.ns, "db", &[data[1], data[0]]).await;
    }
    stage.witness().await;
    for workload in [whole, web] {
        assert_eq!(stage.ns.revisions(workload).await, 1, "{}", workload.name);
    }
}

/// Case 13, its half without a restart.
#[tokio::test]
async fn a_secret_that_is_made_again_rolls_if_and_only_if_the_data_differs() {
    let stage = Stage::set("again").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    let _operator = stage.operator().await;
    let before = stage.trace(web).await;
    recreate(&stage.ns, "db", &[("password", "one"), ("other", "x")]).await;
    stage.witness().await;
    assert_eq!(stage.trace(web).await, before);
    stage.ns.delete_secret("db").await;
    stage.witness().await;
    assert_eq!(stage.trace(web).await, before, "new pods would not start");
    stage.ns.set_secret("db", &[("password", "two")]).await;
    stage.wait_rolled_once(web, &before, "two").await;
}

/// Case 25.
#[tokio::test]
async fn no_two_different_data_look_alike() {
    type Data = &'static [(&'static str, &'static str)];
    const CHANGES: [(&str, Data, Data); 3] = [
        ("joined", &[("a", "1;b=2")], &[("a", "1"), ("b", "2")]),
        ("shifted", &[("ab", "c")], &[("a", "bc")]),
        ("emptied", &[("a", ""), ("b", "x")], &[("b", "x")]),
    ];
    let stage = Stage::set("alike").await;
    let consumers =
        CHANGES.map(|(name, before, _)| (Workload::deployment(name).consumes(Via::env_from(name)), before));
    for (consumer, before) in &consumers {
        stage.ns.set_secret(&consumer.name, before).await;
    }
    stage.run(&consumers.each_ref().map(|(consumer, _)| consumer)).await;
    let _operator = stage.operator().await;
    for (name, _, after) in CHANGES {
        set_data(&stage.ns, name, after).await;
    }
    for (consumer, _) in &consumers {
        stage.wait_outcomes("RolloutCompleted", consumer, 1).await;
        assert_eq!(stage.ns.revisions(consumer).await, 2, "{}", consumer.name);
    }
}

/// Case 30.
#[tokio::test]
async fn a_change_with_an_older_time_than_the_value_rolls() {
    let stage = Stage::set("forced").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    let operator = stage.operator().await;
    for value in ["two", "three"] {
        let before = stage.trace(web).await;
        stage.ns.apply_secret("db", &json!({ "stringData": { "password": value } }), "another").await;
        stage.wait_rolled_once(web, &before, value).await;
    }
    operator.kill9();
    for value in ["four", "five"] {
        stage.ns.apply_secret("db", &json!({ "stringData": { "password": value } }), "another").await;
    }
    let before = stage.trace(web).await;
    let _operator = stage.operator().await;
    stage.wait_rolled_once(web, &before, "five").await;
}

#[tokio::test]
async fn an_optional_key_that_appears_or_goes_is_a_change() {
    let stage = Stage::set("optional").await;
    let web = &Workload::deployment("web").consumes(Via::optional_env("db", "extra"));
    stage.run(&[web]).await;
    let _operator = stage.operator().await;
    let before = stage.trace(web).await;
    stage.ns.set_secret("db", &[("extra", "there")]).await;
    stage.wait_values(web, "db/extra", "there").await;
    assert_eq!(stage.ns.revisions(web).await, before.revisions + 1);
    stage.ns.remove_key("db", "extra").await;
    eventually(ROLLED, || async {
        let revisions = stage.ns.revisions(web).await;
        (revisions == before.revisions + 2).then_some(()).ok_or(format!("{revisions} revisions"))
    })
    .await;
    stage.ns.wait_rolled_out_within(ROLLED, web).await;
    assert_eq!(stage.ns.values_in_pods(web, "db/extra").await, [""; 0]);
}
