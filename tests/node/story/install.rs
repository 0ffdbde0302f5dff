//! Uptake comes into the cluster, as a user brings it.

use super::prelude::*;

pub fn tell(stage: &Stage, node: &Node) -> Result<()> {
    stage.chapter("Uptake is installed with Helm: two replicas");
    let before = shop::all(node)?;
    uptake::helm(stage, node, &["install", "uptake", "charts/uptake", "--create-namespace", "--wait"])?;
    let leader = uptake::leader(node)?;
    for replica in until(PATIENCE, || two_ready(node))? {
        let leads = uptake::metric(node, &replica.pod, "uptake_leader ")?;
        stage.output(&format!("{}  uptake_leader {leads}", replica.pod));
        check(leads == usize::from(replica.pod == leader.pod), "the replica that holds the Lease leads")?;
    }
    stage.fact("both are ready, one leads");
    check(shop::all(node)? == before, "installing rolls nothing")?;
    stage.fact("nothing was rolled");
    Ok(())
}

fn two_ready(node: &Node) -> Result<Vec<uptake::Replica>> {
    let replicas = uptake::replicas(node)?;
    let ready = replicas.len() == 2 && replicas.iter().all(|replica| replica.ready);
    if ready { Ok(replicas) } else { Err(format!("replicas: {replicas:?}").into()) }
}
