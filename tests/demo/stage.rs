//! What the story stands on: kubectl, the operator, and a way to say what happens.

use std::{
    io::{IsTerminal as _, Write as _},
    process::{Command, Stdio},
    time::Duration,
};

use crate::support::{
    Result,
    cluster::Cluster,
    operator::{Install, Operator},
    wait::try_eventually,
};

/// For what takes a rollout or two, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

pub struct Stage<'a> {
    pub cluster: &'a Cluster,
    pub install: Install,
    colour: bool,
}

impl<'a> Stage<'a> {
    pub async fn new(cluster: &'a Cluster) -> Result<Self> {
        let mut install = Install::for_cluster(cluster).await;
        install.settle = Duration::from_secs(2);
        install.log_level = "info".into();
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Ok(Self { cluster, install, colour })
    }

    /// A chapter of the story.
    pub fn chapter(&self, title: &str) {
        println!();
        self.paint("1;36", &format!("── {title} "));
        println!("{}", "─".repeat(96_usize.saturating_sub(title.chars().count())));
    }

    /// Something that is so, and was checked.
    pub fn fact(&self, text: &str) {
        self.paint("1;32", "  ✔ ");
        println!("{text}");
    }

    /// Something that is done.
    pub fn act(&self, text: &str) {
        self.paint("2", "  $ ");
        println!("{text}");
    }

    fn paint(&self, style: &str, text: &str) {
        if self.colour {
            print!("\x1b[{style}m{text}\x1b[0m");
        } else {
            print!("{text}");
        }
        let _ = std::io::stdout().flush();
    }

    pub fn start_operator(&self) -> Operator {
        Operator::start(self.cluster, &self.install)
    }

    /// kubectl's output.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.cluster.kubectl(&self.cluster.admin());
        output(command.args(arguments))
    }

    /// kubectl, shown.
    pub fn shown(&self, arguments: &[&str]) -> Result<String> {
        self.act(&format!("kubectl {}", arguments.join(" ")));
        self.kubectl(arguments)
    }

    pub fn json(&self, arguments: &[&str]) -> Result<serde_json::Value> {
        let mut all = arguments.to_vec();
        all.extend(["-o", "json"]);
        Ok(serde_json::from_str(&self.kubectl(&all)?)?)
    }
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into())
}

/// Waits until it is so.
pub async fn until<T>(mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let seen = try_eventually(PATIENCE, || {
        let seen = look().map_err(|error| error.to_string());
        async { seen }
    });
    seen.await.map_err(Into::into)
}
