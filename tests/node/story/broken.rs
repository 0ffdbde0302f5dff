//! A wrong value breaks the first consumer, and the breaker holds the others.

use crate::{
    Result,
    node::Node,
    shop,
    stage::Stage,
    story::watched::Prometheus,
    uptake,
    wait::{PATIENCE, check, until},
};

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
    let broken = shop::rolled(&before, &shop::look(node, "trial")?);
    check(broken.len() == 1, format!("one consumer is rolled, not {broken:?}"))?;
    stage.output(&processes(node)?);
    stage.fact(&format!(
        "{} is broken, but serves: its old pod lives; the breaker holds the two others",
        broken.join("")
    ));
    prometheus.fires(stage, "UptakeBreakerOpen")?;
    prometheus.fires(stage, "UptakeStalePods")?;

    stage.chapter("The password is corrected");
    shop::rotate(stage, node, "trial", "corrected")?;
    shop::prints(node, "trial", "corrected")?;
    shop::settled(node, "trial")?;
    stage.output(&processes(node)?);
    let rolled = shop::rolled(&before, &shop::look(node, "trial")?);
    check(rolled.len() == 3, "all three are rolled")?;
    stage.fact("all three run with it");
    prometheus.clears(stage, "UptakeBreakerOpen")?;
    prometheus.clears(stage, "UptakeStalePods")
}

fn processes(node: &Node) -> Result<String> {
    let lines = shop::printed(node, "trial")?;
    Ok(lines.iter().map(|(pod, line)| format!("{pod:<28} {line}")).collect::<Vec<_>>().join("\n"))
}
