//! However it ends, nothing of a node stays: each way in which its owner can end is tried on a node that runs.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{
    Result,
    node::{Node, first, said},
    stage::Stage,
    traces::Traces,
    wait::check,
};

/// What the owner of a node is asked to do, or suffers.
const ENDS: [(&str, End); 5] = [
    ("the story fails", End::Fails),
    ("kill -INT", End::Signal("INT")),
    ("kill -TERM", End::Signal("TERM")),
    ("kill -KILL", End::Signal("KILL")),
    ("kill -KILL of it and of the node's script; the next node removes what is left", End::AllKilled),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Fails,
    Signal(&'static str),
    AllKilled,
}

/// Tries all of them; the arguments are those of this program.
pub fn tell(stage: &Stage) -> Result<()> {
    stage.chapter("However it ends, nothing of a node stays");
    let mut earlier: Option<Traces> = None;
    for (name, end) in ENDS {
        let mut owner = Owner::start()?;
        stage.act(name);
        owner.end(end)?;
        if end == End::AllKilled {
            owner.traces.wait_dead()?;
            stage.fact("no process, namespace, mount or link is left");
            earlier = Some(owner.traces);
        } else {
            owner.traces.wait_gone()?;
            fs::remove_dir_all(&owner.folder).or_else(|error| {
                // It is there after a failure only.
                if owner.folder.exists() { Err(error) } else { Ok(()) }
            })?;
            stage.fact("no process, namespace, mount, cgroup or link is left");
        }
    }
    let mut last = Owner::start()?;
    earlier.ok_or("nobody was killed")?.wait_gone()?;
    stage.fact("its cgroups and its folder are gone, too");
    last.end(End::Signal("TERM"))?;
    last.traces.wait_gone()
}

/// This program again, with a node.
struct Owner {
    process: Child,
    folder: PathBuf,
    traces: Traces,
}

impl Owner {
    fn start() -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(std::env::args_os().skip(1))
            .env("ONLY", "held")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut folder = String::new();
        let output = process.stdout.take().ok_or("no standard output")?;
        BufReader::new(output).read_line(&mut folder)?;
        let folder = PathBuf::from(folder.trim());
        check(folder.is_absolute(), "another node comes up")?;
        let mut traces = Traces::new(&folder)?;
        traces.note(script(&folder)?, &first(&folder)?);
        check(!traces.left()?.is_empty(), "a node that runs leaves traces")?;
        Ok(Self { process, folder, traces })
    }

    fn end(&mut self, end: End) -> Result<()> {
        match end {
            End::Fails => drop(self.process.stdin.take()),
            End::Signal(signal) => kill(signal, self.process.id())?,
            End::AllKilled => {
                kill("KILL", script(&self.folder)?)?;
                kill("KILL", self.process.id())?;
            }
        }
        let ended = self.process.wait()?;
        check(!ended.success(), "its owner ended badly")
    }
}

/// What an owner does: it has a node until its input ends, and fails then.
pub fn hold(node: Node) -> Result<()> {
    println!("{}", node.folder.display());
    std::io::stdin().read_line(&mut String::new())?;
    Err(node.fail(&"on purpose".into()))
}

fn script(folder: &Path) -> Result<u32> {
    Ok(fs::read_to_string(folder.join("owner"))?.trim().parse()?)
}

fn kill(signal: &str, process: u32) -> Result<()> {
    said(Command::new("kill").args(["-s", signal, &process.to_string()])).map(drop)
}
