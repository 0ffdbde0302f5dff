//! Pods that print what they got and end.

use std::fmt::Write as _;

use super::{NAMESPACE, late::Sample, now};
use crate::{
    Result,
    node::Node,
    wait::{PATIENCE, until},
};

/// The namespace, the Secret, and a pod that keeps it in the kubelet's cache, as a running consumer does.
pub fn stage() -> String {
    format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}}}}}\n---\n\
         {{apiVersion: v1, kind: Secret, metadata: {{name: db, namespace: {NAMESPACE}}}, stringData: {{PASSWORD: \"0\"}}}}\n---\n{}",
        pod("holder", "Always", false)
    )
}

/// Sets the value.
pub fn set(node: &Node, value: usize) -> Result<()> {
    let patch = format!("{{\"stringData\":{{\"PASSWORD\":\"{value}\"}}}}");
    node.kubectl(&["patch", "secret", "db", "-n", NAMESPACE, "-p", &patch]).map(drop)
}

fn pod(name: &str, restart: &str, once: bool) -> String {
    let arguments = if once { "[once]" } else { "[]" };
    let group = if once { "try" } else { "holder" };
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {NAMESPACE}, labels: {{group: {group}}}}}
spec:
  restartPolicy: {restart}
  terminationGracePeriodSeconds: 0
  containers:
    - name: show
      image: local/show:1
      imagePullPolicy: Never
      args: {arguments}
      env: [{{name: PASSWORD, valueFrom: {{secretKeyRef: {{name: db, key: PASSWORD}}}}}}]
      volumeMounts: [{{name: db, mountPath: /secret}}, {{name: db, mountPath: /etc/password, subPath: PASSWORD}}]
  volumes: [{{name: db, secret: {{secretName: db}}}}]
"
    )
}

/// So many starts of new pods, some at a time.
pub fn new_ones(node: &Node, at_a_time: usize, tries: usize) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    while samples.len() < tries {
        let count = at_a_time.min(tries - samples.len());
        let asked = now();
        node.apply(&some(count, "Never"))?;
        let lines = until(PATIENCE, || {
            let lines = logs(node)?;
            if lines.len() >= count {
                Ok(lines)
            } else {
                Err(format!("{} of {count} started", lines.len()).into())
            }
        })?;
        samples.extend(lines.iter().filter_map(|line| Sample::read(line, Some(asked))));
        remove(node)?;
    }
    Ok(samples)
}

/// So many starts of containers that end at once and are started again, some at a time.
pub fn restarted(node: &Node, at_a_time: usize, tries: usize) -> Result<Vec<Sample>> {
    node.apply(&some(at_a_time, "Always"))?;
    until(PATIENCE, || all_restarted(node, at_a_time))?;
    let mut samples: Vec<Sample> = Vec::new();
    until(PATIENCE * 5, || {
        for sample in logs(node)?.iter().filter_map(|line| Sample::read(line, None)) {
            if !samples.iter().any(|known| known.started == sample.started) {
                samples.push(sample);
            }
        }
        if samples.len() >= tries {
            Ok(())
        } else {
            Err(format!("{} of {tries} restarts", samples.len()).into())
        }
    })?;
    samples.truncate(tries);
    remove(node)?;
    Ok(samples)
}

/// From now on no start is a pod's first.
fn all_restarted(node: &Node, count: usize) -> Result<()> {
    let counts = "{.items[*].status.containerStatuses[0].restartCount}";
    let said = node.kubectl(&[
        "get",
        "pods",
        "-n",
        NAMESPACE,
        "-l",
        "group=try",
        "-o",
        &format!("jsonpath={counts}"),
    ])?;
    let restarted = said.split_whitespace().filter(|count| *count != "0").count();
    if restarted == count {
        Ok(())
    } else {
        Err(format!("{restarted} of {count} pods have restarted").into())
    }
}

fn some(count: usize, restart: &str) -> String {
    (0..count).fold(String::new(), |mut all, index| {
        let _ = writeln!(all, "{}---", pod(&format!("try-{index}"), restart, true));
        all
    })
}

/// What their containers printed; none while one of them hasn't a log yet.
fn logs(node: &Node) -> Result<Vec<String>> {
    let said =
        node.kubectl(&["logs", "-n", NAMESPACE, "-l", "group=try", "--tail=1", "--max-log-requests=50"])?;
    Ok(said.lines().filter(|line| line.starts_with("at=")).map(str::to_owned).collect())
}

fn remove(node: &Node) -> Result<()> {
    node.kubectl(&["delete", "pods", "-n", NAMESPACE, "-l", "group=try", "--now", "--wait"]).map(drop)
}
