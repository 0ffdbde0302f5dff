//! A real node: kubelet, containerd and runc run the consumers of Secrets, Helm brings Uptake, and what counts is what the
//! processes print.
//!
//! It fails if any of what it says didn't happen, and leaves no process, mount, cgroup or link behind, however it ends.

mod measure;
mod node;
mod recording;
mod shop;
mod stage;
mod story;
mod teardown;
mod traces;
mod uptake;
mod vault;
mod wait;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use node::Node;
use stage::Stage;

/// What can go wrong; its text is all that anybody needs of it.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// Of all that the story does.
pub type Result<T> = std::result::Result<T, Error>;

/// Usage: e2e PROGRAMS IMAGES UPTAKE: the folders that `make e2e` fills, and the program that is in the image.
fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(programs), Some(images), Some(uptake)) = (arguments.next(), arguments.next(), arguments.next())
    else {
        eprintln!("e2e PROGRAMS IMAGES UPTAKE: run it with make e2e");
        return ExitCode::from(2);
    };
    match run(&programs, &images, &uptake) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\ne2e failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(programs: &Path, images: &Path, uptake: &Path) -> Result<()> {
    let (stage, tries) = (Stage::new(), tries()?);
    let only = std::env::var("ONLY").unwrap_or_default();
    if only == "teardown" {
        return teardown::tell(&stage);
    }
    let node = Node::start(programs, images, uptake)?;
    if only == "held" {
        return teardown::hold(node);
    }
    match story::tell(&stage, &node, tries) {
        Ok(()) => {
            keep_up(&node);
            node.down()?;
            stage.chapter("The end");
            stage.fact("the node is down; no process, namespace, mount, cgroup or link of it is left");
            match std::env::var_os("RECORD").filter(|path| !path.is_empty()) {
                Some(path) => recording::write(&stage.told(), Path::new(&path)),
                None => Ok(()),
            }
        }
        Err(error) => Err(node.fail(&error)),
    }
}

/// How many tries a measurement gets.
fn tries() -> Result<usize> {
    match std::env::var("MEASURE") {
        Ok(count) if !count.is_empty() => {
            Ok(count.parse().map_err(|error| format!("MEASURE={count}: {error}"))?)
        }
        _ => Ok(20),
    }
}

/// With KEEP=1 the node goes on until Ctrl-C or the end of the input.
fn keep_up(node: &Node) {
    if std::env::var("KEEP").is_ok_and(|keep| keep == "1") {
        println!("\nThe node goes on until Enter. To play with it:");
        println!("  export KUBECONFIG={}", node.folder.join("admin.conf").display());
        println!(
            "  nsenter -t $(cat {}) -n {}",
            node.folder.join("pid").display(),
            node.programs.join("kubectl").display()
        );
        let _ = std::io::stdin().read_line(&mut String::new());
    }
}
