//! A deploy's gate asks in the containers.

use super::prelude::*;

pub fn with_a_shell(stage: &Stage, node: &Node) -> Result<()> {
    stage.chapter(
        "A deploy asks whether it may go on: the processes have the names, where there is a shell to ask",
    );
    let (passed, said) = gate(stage, node, "shop", &[])?;
    stage.output(&said);
    check(passed && said.contains("PASSWORD"), "the gate passes, by what the containers answered")?;
    stage.fact("the gate passes: every key is there, no pod is stale, each process has the name");
    Ok(())
}

pub fn without(stage: &Stage, node: &Node) -> Result<()> {
    let (passed, said) = gate(stage, node, "trial", &["--no-restart"])?;
    stage.output(&said);
    check(
        !passed && said.contains("unknown"),
        "a container that can't be asked is unknown, and doesn't pass",
    )?;
    let (passed, _) = gate(stage, node, "trial", &["--no-restart", "--allow-unknown"])?;
    check(passed, "--allow-unknown lets it pass")?;
    stage.fact("without a shell in the image it can't be told, which passes with --allow-unknown only");
    Ok(())
}

fn gate(stage: &Stage, node: &Node, namespace: &str, more: &[&str]) -> Result<(bool, String)> {
    let secret = format!("secret/{namespace}-db");
    let mut arguments = vec!["gate", &secret, "-n", namespace, "--exec"];
    arguments.extend(more);
    stage.act(&format!("kubectl uptake {}", arguments.join(" ")));
    let output = node.program(&node.uptake).args(&arguments).output()?;
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Ok((output.status.success(), said.concat()))
}
