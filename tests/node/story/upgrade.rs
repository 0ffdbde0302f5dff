//! Uptake itself is upgraded, with another setting.

use crate::{Result, node::Node, shop, stage::Stage, uptake, wait::check};

pub fn tell(stage: &Stage, node: &Node) -> Result<()> {
    stage.chapter("Uptake is upgraded, with --canary from now on");
    let before = shop::look(node, "shop")?;
    let old = uptake::leader(node)?;
    uptake::helm(
        stage,
        node,
        &["upgrade", "uptake", "charts/uptake", "--set", "config.canary=true", "--wait"],
    )?;
    let new = uptake::leader(node)?;
    check(new.pod != old.pod, "another replica leads")?;
    stage.output(&format!("leader: {} → {}", old.pod, new.pod));
    check(shop::look(node, "shop")? == before, "upgrading Uptake rolls nothing")?;
    stage.fact("its own pods are new; no consumer was rolled, none of their pods is another");
    Ok(())
}
