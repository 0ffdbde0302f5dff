//! The story, chapter by chapter. Each says what happens and checks it.

use std::collections::BTreeMap;

use crate::{
    shop::{self, NAMESPACE, SECRET, Shop},
    stage::{PATIENCE, Stage, until},
    support::{
        Result,
        operator::{Operator, Sample},
    },
};

const ALL: usize = 9;

pub async fn tell(stage: &Stage<'_>) -> Result<Operator> {
    println!(
        "control plane up in {:.1} s: etcd, kube-apiserver, controller manager, scheduler, two nodes",
        stage.cluster.booted_in.as_secs_f32()
    );
    consumers(stage)?;
    let operator = install(stage).await?;
    rotation(stage, &operator).await?;
    label_edit(stage, &operator).await?;
    by_hand(stage, &operator).await?;
    one_key(stage, &operator).await?;
    let operator = while_down(stage, operator).await?;
    println!();
    stage.fact("all of this happened, and nothing else did");
    Ok(operator)
}

fn consumers(stage: &Stage<'_>) -> Result<()> {
    stage.chapter("Nine consumers of one Secret");
    stage.kubectl(&["create", "namespace", NAMESPACE])?;
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo/shop.yaml");
    stage.act("kubectl apply -f tests/demo/shop.yaml");
    stage.kubectl(&["apply", "-f", manifest])?;
    shop::settled(stage)?;
    println!("    {:<22} CONSUMES OF Secret {SECRET}", "CONSUMER");
    let rows = shop::consumers(stage)?;
    for (name, how) in &rows {
        println!("    {name:<22} {how}");
    }
    check(rows.len() == ALL, "nine consumers are found")?;
    Ok(())
}

async fn install(stage: &Stage<'_>) -> Result<Operator> {
    stage.chapter("Uptake comes into the cluster");
    let before = shop::look(stage)?;
    let mut audit = stage.cluster.audit_from_now();
    stage.act("uptake controller");
    let operator = stage.start_operator();
    operator.wait_ready(PATIENCE).await;
    // The ledger's first writes are the last thing that a start does.
    audit.wait(PATIENCE, |entry| entry.is_by(&stage.install.user) && entry.is_write()).await;
    let after = shop::look(stage)?;
    check(shop::rolled(&before, &after).is_empty(), "installing rolls nothing")?;
    stage.fact("ready, and nothing was rolled");
    let foreign = audit
        .read_of(&stage.install.user)
        .into_iter()
        .filter(|entry| entry.is_write() && entry.namespace != stage.install.own_namespace);
    check(foreign.count() == 0, "installing writes to its own namespace only")?;
    stage.fact("the audit log: it wrote to its own namespace only");
    Ok(operator)
}

async fn rotation(stage: &Stage<'_>, operator: &Operator) -> Result<()> {
    stage.chapter("The password is rotated");
    let before = shop::look(stage)?;
    let counted = counters(operator).await?;
    set(stage, "password", "spring")?;
    let after = wait_rolled(stage, &before, ALL, "spring").await?;
    shop::show(&before, &after);
    check(once(&before, &after), "each consumer has exactly one new revision")?;
    stage.fact("all nine have exactly one new revision, and every process holds the new password");
    until(|| events_of(stage, "RolloutCompleted").and_then(|n| at_least(n, ALL))).await?;
    println!();
    let events = stage.shown(&["events", "-n", NAMESPACE, "--types=Normal,Warning"])?;
    for line in events.lines().filter(|line| line.contains("REASON") || line.contains("Rollout")) {
        println!("    {}", cut(line, 150));
    }
    println!();
    stage.act(&format!("curl http://{}/metrics   (what moved)", operator.address()));
    let moved = moved(&counted, &counters(operator).await?);
    for (series, (from, to)) in &moved {
        println!("    {series:<74} {from} → {to}");
    }
    check(moved.keys().any(|series| series.starts_with("uptake_rollouts_total")), "rollouts are counted")?;
    Ok(())
}

async fn label_edit(stage: &Stage<'_>, operator: &Operator) -> Result<()> {
    stage.chapter("A label of the Secret is edited");
    let before = shop::look(stage)?;
    let events = events(stage)?;
    let unchanged = || operator.metric("uptake_secret_changes_total", &[("effect", "unchanged")]);
    let counted = unchanged().await;
    stage.shown(&["label", "secret", SECRET, "-n", NAMESPACE, "team=checkout"])?;
    wait_metric(unchanged, counted).await?;
    let after = shop::look(stage)?;
    check(
        shop::rolled(&before, &after).is_empty() && self::events(stage)? == events,
        "a label edit does nothing",
    )?;
    stage.fact("nothing rolled and no Event: counted as unchanged, and in the log:");
    let log = operator.log();
    let line = log.lines().rev().find(|line| line.contains("unchanged")).ok_or("the log says so")?;
    println!("    {}", cut(&plain(line), 150));
    Ok(())
}

async fn by_hand(stage: &Stage<'_>, operator: &Operator) -> Result<()> {
    stage.chapter("A person rotates the SMTP key and restarts its two readers by hand");
    let before = shop::look(stage)?;
    let nothing = || operator.metric("uptake_secret_changes_total", &[("effect", "nothing_to_do")]);
    let counted = nothing().await;
    set(stage, "smtp", "courier")?;
    stage.shown(&["rollout", "restart", "deployment", "worker", "mailer", "-n", NAMESPACE])?;
    wait_metric(nothing, counted).await?;
    let after = shop::look(stage)?;
    let rolled = shop::rolled(&before, &after);
    check(
        rolled == ["Deployment/mailer", "Deployment/worker"] && once(&before, &after),
        "only the person's own restarts",
    )?;
    stage.fact("their pods are younger than the change: no second restart, and the Secret says so:");
    until(|| events_of(stage, "NothingToDo").and_then(|n| at_least(n, 1))).await?;
    show_event(stage, "NothingToDo")
}

async fn one_key(stage: &Stage<'_>, _operator: &Operator) -> Result<()> {
    stage.chapter("The SMTP key is rotated again; only two read it");
    let before = shop::look(stage)?;
    set(stage, "smtp", "pigeon")?;
    let after = until(|| {
        let now = shop::look(stage)?;
        if shop::rolled(&before, &now).len() >= 2 {
            Ok(now)
        } else {
            Err("the readers have no new revision".into())
        }
    })
    .await?;
    shop::settled(stage)?;
    let rolled = shop::rolled(&before, &after);
    check(rolled == ["Deployment/mailer", "Deployment/worker"], "two of nine roll")?;
    stage.fact(&format!("of nine, two rolled: {}", rolled.join(" and ")));
    Ok(())
}

async fn while_down(stage: &Stage<'_>, operator: Operator) -> Result<Operator> {
    stage.chapter("Uptake is stopped, the password is rotated, Uptake is started");
    operator.sigterm();
    let status = operator.wait_exit(PATIENCE).await;
    check(status.success(), "SIGTERM ends it with 0")?;
    stage.fact("stopped by SIGTERM, exit 0");
    let before = shop::look(stage)?;
    set(stage, "password", "summer")?;
    let operator = stage.start_operator();
    stage.act("uptake controller");
    let after = wait_rolled(stage, &before, ALL, "summer").await?;
    shop::show(&before, &after);
    check(once(&before, &after), "each consumer has exactly one new revision")?;
    stage.fact("the change made meanwhile was found: all nine rolled once");
    Ok(operator)
}

fn set(stage: &Stage<'_>, key: &str, value: &str) -> Result<()> {
    let patch = serde_json::json!({ "stringData": { key: value } }).to_string();
    stage.shown(&["patch", "secret", SECRET, "-n", NAMESPACE, "-p", &patch]).map(drop)
}

/// Waits until so many have a new revision and all processes hold that password.
async fn wait_rolled(stage: &Stage<'_>, before: &Shop, count: usize, password: &str) -> Result<Shop> {
    until(|| {
        let now = shop::look(stage)?;
        let rolled = shop::rolled(before, &now).len();
        let holding = now.values().all(|consumer| {
            !consumer.passwords.is_empty() && consumer.passwords.iter().all(|held| held == password)
        });
        if rolled == count && holding { Ok(()) } else { Err(format!("{rolled} of {count} rolled").into()) }
    })
    .await?;
    shop::settled(stage)?;
    shop::look(stage)
}

/// Whether nobody has more than one revision more than before.
fn once(before: &Shop, after: &Shop) -> bool {
    after.iter().all(|(name, now)| before.get(name).is_some_and(|then| now.revisions <= then.revisions + 1))
}

fn check(holds: bool, claim: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(format!("this doesn't hold: {claim}").into()) }
}

fn at_least(found: usize, wanted: usize) -> Result<()> {
    if found >= wanted { Ok(()) } else { Err(format!("{found} of {wanted} Events").into()) }
}

/// Names of all Events of Uptake in the shop.
fn events(stage: &Stage<'_>) -> Result<Vec<String>> {
    let list = stage.json(&["get", "events.events.k8s.io", "-n", NAMESPACE])?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let own = items
        .iter()
        .filter(|event| event["reportingController"].as_str().is_some_and(|who| who.contains("uptake")));
    Ok(own.map(|event| event["metadata"]["name"].to_string()).collect())
}

fn events_of(stage: &Stage<'_>, reason: &str) -> Result<usize> {
    let list = stage.json(&["get", "events.events.k8s.io", "-n", NAMESPACE])?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    Ok(items.iter().filter(|event| event["reason"] == reason).count())
}

fn show_event(stage: &Stage<'_>, reason: &str) -> Result<()> {
    let events = stage.shown(&["events", "-n", NAMESPACE, "--for", &format!("secret/{SECRET}")])?;
    for line in events.lines().filter(|line| line.contains("REASON") || line.contains(reason)) {
        println!("    {}", cut(line, 150));
    }
    Ok(())
}

/// The counters of a metrics page, by their series.
async fn counters(operator: &Operator) -> Result<BTreeMap<String, f64>> {
    let samples = operator.metrics().await?;
    let counts = samples.into_iter().filter(|sample| {
        let name = &sample.name;
        name.ends_with("_total") && !name.contains("requests") || name.ends_with("_count")
    });
    Ok(counts.map(|sample| (series(&sample), sample.value)).collect())
}

fn series(sample: &Sample) -> String {
    let labels: Vec<String> =
        sample.labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    format!("{}{{{}}}", sample.name, labels.join(","))
}

fn moved(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> BTreeMap<String, (f64, f64)> {
    let from = |series: &String| before.get(series).copied().unwrap_or(0.0);
    let differing = after.iter().filter(|(series, to)| (from(series) - **to).abs() > f64::EPSILON);
    differing.map(|(series, to)| (series.clone(), (from(series), *to))).collect()
}

async fn wait_metric<F: Future<Output = f64>>(read: impl Fn() -> F, above: f64) -> Result<()> {
    let waited = crate::support::wait::try_eventually(PATIENCE, || async {
        let now = read().await;
        if now > above { Ok(()) } else { Err(format!("the counter is at {now}")) }
    });
    waited.await.map_err(Into::into)
}

fn cut(line: &str, width: usize) -> String {
    line.chars().take(width).collect()
}

/// Without colours.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        text.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text
}
