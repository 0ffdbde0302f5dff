//! A wrong value breaks the first consumer, and the breaker holds the others.

use super::{prelude::*, watched::Prometheus};

pub fn tell(stage: &Stage, node: &Node, prometheus: &Prometheus<'_>) -> Result<()> {
    stage.chapter("A wrong password: its first consumer doesn't become ready");
    node.apply(include_str!("../trial.yaml"))?;
    shop::settled(node, "trial")?;
    shop::prints(node, "trial", "right")?;
    let before = shop::look(node, "trial")?;
    shop::rotate(stage, node, "trial", "wrong")?;
    until(PATIENCE, || {
        let open = uptake::events(node, "trial", "BreakerOpen")?;
        let said = open.first().map(|event| shop::text(event, "/note"));
        said.ok_or_else(|| "no Event BreakerOpen".into())
    })
    .map(|said| stage.output(&format!("BreakerOpen  {said}")))?;
    let first = only_one_is_rolled(node, &before)?;
    stage.output(&processes(node)?);
    stage
        .fact(&format!("{first} is broken, but serves: its old pod lives; the breaker holds the two others"));
    prometheus.fires(stage, "UptakeBreakerOpen")?;
    prometheus.fires(stage, "UptakeStalePods")?;
    check(only_one_is_rolled(node, &before)? == first, "the breaker still holds")?;

    stage.chapter("The password is corrected");
    shop::rotate(stage, node, "trial", "corrected")?;
    shop::prints(node, "trial", "corrected")?;
    shop::settled(node, "trial")?;
    stage.output(&processes(node)?);
    for (name, now) in shop::look(node, "trial")? {
        let rollouts = now.revisions - before.get(&name).map_or(0, |then| then.revisions);
        let expected = if name == first { 2 } else { 1 };
        check(rollouts == expected, format!("{name} has {rollouts} new revisions, not {expected}"))?;
    }
    stage.fact("all three run with it; the two that were held never saw the wrong one");
    prometheus.clears(stage, "UptakeBreakerOpen")?;
    prometheus.clears(stage, "UptakeStalePods")
}

/// Its new process holds the wrong value and isn't ready; the others' processes are those of before.
fn only_one_is_rolled(node: &Node, before: &shop::Consumers) -> Result<String> {
    let now = shop::look(node, "trial")?;
    let rolled = shop::rolled(before, &now);
    let [first] = rolled.as_slice() else {
        return Err(format!("one consumer is rolled, not {rolled:?}").into());
    };
    let lines = shop::printed(node, "trial")?;
    let new: Vec<&String> = now[first].pods.iter().filter(|pod| !before[first].pods.contains(pod)).collect();
    let [new] = new.as_slice() else {
        return Err(format!("one new pod of {first}, not {new:?}").into());
    };
    check(lines[*new].contains("env=wrong"), format!("{new} got the wrong value: {lines:?}"))?;
    let pod = node.json(&["get", "pod", new, "-n", "trial"])?;
    let ready = pod.pointer("/status/containerStatuses/0/ready").and_then(Value::as_bool);
    check(ready == Some(false), format!("{new} isn't ready"))?;
    let old = lines.iter().filter(|(pod, line)| pod != new && line.contains("env=right"));
    check(old.count() == before.len(), format!("the others print the right value: {lines:?}"))?;
    Ok(first.clone())
}

fn processes(node: &Node) -> Result<String> {
    let lines = shop::printed(node, "trial")?;
    Ok(lines.iter().map(|(pod, line)| format!("{pod:<28} {line}")).collect::<Vec<_>>().join("\n"))
}
