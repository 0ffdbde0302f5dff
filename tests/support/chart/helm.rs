//! helm, as built for the tests.

use super::folder;
use crate::support::Result;
use crate::support::cluster::tool;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program, with a home of its own: nobody's settings, nobody's cluster.
#[derive(Clone)]
pub struct Helm {
    program: PathBuf,
    home: PathBuf,
    kubeconfig: Option<PathBuf>,
}

/// One rendered object.
#[derive(Clone, Debug)]
pub struct Document {
    /// The template's file name.
    pub template: String,
    pub text: String,
    pub object: Value,
}

impl Helm {
    /// Builds it when first asked for, which takes minutes.
    pub fn find() -> Result<Self> {
        let program = tool("helm")?;
        let home = program.parent().and_then(Path::parent).ok_or("a program lies in a folder")?.join("helm");
        Ok(Self { program, home, kubeconfig: None })
    }

    /// As somebody on a cluster.
    pub fn on(mut self, kubeconfig: PathBuf) -> Self {
        self.kubeconfig = Some(kubeconfig);
        self
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).env_remove("KUBECONFIG");
        for (name, folder) in
            [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")]
        {
            command.env(name, self.home.join(folder));
        }
        if let Some(kubeconfig) = &self.kubeconfig {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        command
    }

    /// What it prints; what it says if it fails.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        output(self.command(arguments).output()?, arguments)
    }

    /// The chart, rendered as a release `uptake`.
    pub fn template(&self, namespace: &str, more: &[&str]) -> Result<Vec<Document>> {
        let chart = folder().display().to_string();
        // Without a cluster helm knows no Kubernetes but its own.
        let mut arguments =
            vec!["template", "uptake", &chart, "--namespace", namespace, "--kube-version", "1.34.0"];
        arguments.extend_from_slice(more);
        documents(&self.run(&arguments)?)
    }
}

pub fn output(output: std::process::Output, of: &[&str]) -> Result<String> {
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    let (out, words) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{} failed: {words}{out}", of.join(" ")).into())
}

fn documents(text: &str) -> Result<Vec<Document>> {
    let parts = text.split("---\n").filter_map(|part| part.strip_prefix("# Source: uptake/templates/"));
    let mut documents = Vec::new();
    for part in parts {
        let (template, text) = part.split_once('\n').unwrap_or((part, ""));
        let object: Value = serde_saphyr::from_str(text).map_err(|error| format!("{template}: {error}"))?;
        if !object.is_null() {
            documents.push(Document { template: template.into(), text: text.into(), object });
        }
    }
    Ok(documents)
}
