//! A Secret is rotated, and the processes print the new value.

use super::prelude::*;

pub fn tell(stage: &Stage, node: &Node) -> Result<()> {
    stage.chapter("The password is rotated");
    let before = shop::look(node, "shop")?;
    shop::rotate(stage, node, "shop", "spring")?;
    show(stage, &shop::prints(node, "shop", "spring")?);
    stage.fact("every process prints the new value");
    shop::settled(node, "shop")?;
    let after = shop::look(node, "shop")?;
    for (name, now) in &after {
        let then = before.get(name).map_or("-", |then| &then.revision);
        stage.output(&format!("{name:<20} {then:<18} → {}", now.revision));
    }
    check(shop::each_once(&before, &after), "each consumer has exactly one new revision")?;
    stage.fact("each consumer has exactly one new revision");
    events(stage, node, after.len())?;
    metrics(stage, node, after.len())
}

fn events(stage: &Stage, node: &Node, consumers: usize) -> Result<()> {
    until(PATIENCE, || {
        let completed = uptake::events(node, "shop", "RolloutCompleted")?.len();
        if completed == consumers {
            Ok(())
        } else {
            Err(format!("{completed} Events RolloutCompleted").into())
        }
    })?;
    stage.act("kubectl events -n shop | grep Rollout");
    let events = node.kubectl(&["events", "-n", "shop", "--no-headers"])?;
    stage.output(&events.lines().filter(|line| line.contains("Rollout")).collect::<Vec<_>>().join("\n"));
    Ok(())
}

fn metrics(stage: &Stage, node: &Node, consumers: usize) -> Result<()> {
    let leader = uptake::leader(node)?;
    let counted = uptake::metrics(node, &leader.pod, "uptake_rollouts_total")?;
    for (series, value) in &counted {
        stage.output(&format!("{series} {value}"));
    }
    let completed =
        counted.iter().filter(|(series, _)| series.contains("outcome=\"completed\"")).map(|(_, value)| value);
    check(completed.sum::<usize>() == consumers, "the metrics count as many completed rollouts")?;
    stage.fact("Events and metrics say so");
    Ok(())
}
