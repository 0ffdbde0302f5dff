//! Consumers of one Secret whose processes print what they hold.

use super::prelude::*;

pub fn tell(stage: &Stage, node: &Node) -> Result<()> {
    stage.chapter("Consumers of one Secret: each process prints what it holds");
    stage.act("kubectl apply -f tests/node/shop.yaml");
    node.apply(include_str!("../shop.yaml"))?;
    shop::settled(node, "shop")?;
    show(stage, &shop::prints(node, "shop", "winter")?);
    Ok(())
}
