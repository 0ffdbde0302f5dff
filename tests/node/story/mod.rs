//! The story, chapter by chapter. Each says what happens and checks it.

use crate::{Result, measure, node::Node, stage::Stage};

mod asked;
mod broken;
mod consumers;
mod frozen;
mod install;
mod killed;
mod mounted;
mod prelude;
mod rotation;
mod uninstall;
mod upgrade;
mod watched;

pub fn tell(stage: &Stage, node: &Node, tries: usize) -> Result<()> {
    stage.chapter("A real node");
    stage.output(&node.kubectl(&["get", "nodes", "-o", "wide"])?);
    stage.fact(&format!("Ready {:.1} s after its start", node.booted_in.as_secs_f32()));
    if std::env::var("ONLY").is_ok_and(|part| part == "measure") {
        return measure::tell(stage, node, tries);
    }
    consumers::tell(stage, node)?;
    let vault = mounted::begin(stage, node)?;
    install::tell(stage, node)?;
    rotation::tell(stage, node)?;
    asked::with_a_shell(stage, node)?;
    mounted::tell(stage, node, &vault)?;
    upgrade::tell(stage, node)?;
    let prometheus = watched::Prometheus::start(stage, node)?;
    broken::tell(stage, node, &prometheus)?;
    asked::without(stage, node)?;
    killed::tell(stage, node)?;
    frozen::tell(stage, node)?;
    uninstall::tell(stage, node)?;
    if tries > 0 { measure::tell(stage, node, tries) } else { Ok(()) }
}
