//! A kubelet that hangs and comes back.

use std::time::Instant;

use super::prelude::*;

pub fn tell(stage: &Stage, node: &Node) -> Result<()> {
    stage.chapter("The kubelet hangs, the password is rotated, the kubelet is back");
    uptake::leader(node)?;
    let before = shop::look(node, "shop")?;
    node.signal("kubelet", "STOP")?;
    stage.act("kill -STOP of the kubelet");
    let frozen = Instant::now();
    let told = while_frozen(stage, node, &before);
    node.signal("kubelet", "CONT")?;
    told?;
    stage.act(&format!("kill -CONT of the kubelet, after {} s", frozen.elapsed().as_secs()));
    until(PATIENCE, || is_ready(node, "True"))?;
    shop::prints(node, "shop", "autumn")?;
    shop::settled(node, "shop")?;
    check(
        shop::each_once(&before, &shop::look(node, "shop")?),
        "each consumer has exactly one new revision",
    )?;
    stage.fact("every process prints the new value, and each consumer has exactly one new revision");
    Ok(())
}

fn while_frozen(stage: &Stage, node: &Node, before: &shop::Consumers) -> Result<()> {
    shop::rotate(stage, node, "shop", "autumn")?;
    let rolled = shop::wait_rolled(node, "shop", before, 1)?;
    until(PATIENCE, || is_ready(node, "Unknown"))?;
    stage.output(&format!("node: NotReady; stamped: {}", rolled.join(", ")));
    let secret = node.json(&["get", "secret", "shop-db", "-n", "shop"])?;
    let version = format!("shop-db@{} ", shop::text(&secret, "/metadata/resourceVersion"));
    let completed = uptake::events(node, "shop", "RolloutCompleted")?;
    check(
        !completed.iter().any(|event| shop::text(event, "/note").contains(&version)),
        "no rollout is called completed whose pods no kubelet has started",
    )?;
    stage.fact("a stamp was accepted, no pod has started, and nothing is called completed");
    Ok(())
}

fn is_ready(node: &Node, wanted: &str) -> Result<()> {
    let object = node.json(&["get", "node", "node"])?;
    let conditions =
        object.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    let status = ready.map(|ready| shop::text(ready, "/status")).unwrap_or_default();
    if status == wanted { Ok(()) } else { Err(format!("the node's Ready is {status}").into()) }
}
