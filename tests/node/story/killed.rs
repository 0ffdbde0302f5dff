//! The leader is killed in the middle of a rotation.

use super::prelude::*;

pub fn tell(stage: &Stage, node: &Node) -> Result<()> {
    stage.chapter("The leader is killed in the middle of a rotation");
    let leader = uptake::leader(node)?;
    let before = shop::look(node, "shop")?;
    // The one that goes first can't complete while the kubelet does nothing: the middle lasts as long as it takes to look.
    node.signal("kubelet", "STOP")?;
    shop::rotate(stage, node, "shop", "summer")?;
    let first = shop::wait_rolled(node, "shop", &before, 1)?;
    stage.act(&format!("kill -9 of the process in {}", leader.pod));
    node.kill_container(&leader.container)?;
    let now = shop::rolled(&before, &shop::look(node, "shop")?);
    check(
        now.len() == 1 && now == first,
        format!("it was killed after the first was rolled: {first:?} {now:?}"),
    )?;
    stage.output(&format!("rolled by then: {}", first.join(", ")));
    node.signal("kubelet", "CONT")?;
    shop::prints(node, "shop", "summer")?;
    shop::settled(node, "shop")?;
    let after = shop::look(node, "shop")?;
    check(shop::each_once(&before, &after), "each consumer has exactly one new revision")?;
    stage.fact("every process prints the new value, and each consumer has exactly one new revision");
    let now = until(PATIENCE, || {
        let replicas = uptake::replicas(node)?;
        let killed = replicas.iter().find(|replica| replica.pod == leader.pod);
        killed.filter(|killed| killed.restarts > 0).cloned().ok_or_else(|| format!("{replicas:?}").into())
    })?;
    stage.output(&format!(
        "restarts of {}: {}; the leader is {}",
        now.pod,
        now.restarts,
        uptake::leader(node)?.pod
    ));
    Ok(())
}
