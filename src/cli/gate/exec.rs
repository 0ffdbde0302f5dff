//! Asks in containers which environment names their processes have. Names only: no value is read.
//!
//! Not asked yet in this version: every container is unknown.

use super::verdict::{Answer, Check, Expected};
use crate::{
    cli::{
        Session,
        scene::{Consumer, Scene},
    },
    facts::Namespace,
};

/// Asks in each live pod of each consumer.
#[allow(clippy::unused_async)]
pub async fn ask(
    _session: &Session,
    _namespace: &Namespace,
    scene: &Scene,
    consumers: &[&Consumer],
    _expected: &Expected,
) -> Vec<Check> {
    let pods = consumers.iter().flat_map(|consumer| scene.live_pods(consumer));
    pods.map(|pod| Check {
        name: format!("the processes of pod {} have the expected names", pod.name),
        answer: Answer::Unknown,
        detail: "containers can't be asked".to_owned(),
        rolls: None,
    })
    .collect()
}
