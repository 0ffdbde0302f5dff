//! Uptake itself is upgraded, with another setting.

use super::prelude::*;

pub fn tell(stage: &Stage, node: &Node) -> Result<()> {
    stage.chapter("Uptake is upgraded, with --canary from now on");
    let before = shop::all(node)?;
    let old = uptake::leader(node)?;
    uptake::helm(
        stage,
        node,
        &["upgrade", "uptake", "charts/uptake", "--set", "config.canary=true", "--wait"],
    )?;
    let new = uptake::leader(node)?;
    check(new.pod != old.pod, "another replica leads")?;
    stage.output(&format!("leader: {} → {}", old.pod, new.pod));
    check(shop::all(node)? == before, "upgrading Uptake rolls nothing")?;
    stage.fact("its own pods are new; no consumer was rolled, none of their pods is another");
    Ok(())
}
