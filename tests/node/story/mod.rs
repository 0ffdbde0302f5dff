//! The story, chapter by chapter. Each says what happens and checks it.

use crate::{Result, node::Node, stage::Stage};

mod consumers;

pub fn tell(stage: &Stage, node: &Node) -> Result<()> {
    stage.chapter("A real node");
    stage.output(&node.kubectl(&["get", "nodes", "-o", "wide"])?);
    stage.fact(&format!("Ready {:.1} s after its start", node.booted_in.as_secs_f32()));
    consumers::tell(stage, node)
}
