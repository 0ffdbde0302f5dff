//! The simulation: the real catalog, ledger, agenda, decision and rollout code against a simulated API server with
//! controllers, kubelets, people, GitOps tools, faults, crashes and clocks. One seed is one history.
//!
//! `SEEDS=n` says how many histories, `FROM=n` from which seed on, `SEED=n` replays one and tells it in words,
//! `PLANTED=1` runs with each planted bug until it is found, `KEEP_ON=1` goes on after a failure and names them all,
//! `BRIEF=1` doesn't tell the failing one.

// It is a test: what goes wrong here is to stop it, and its counts are small.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation
)]

mod api;
mod checks;
mod conformance;
mod controllers;
mod history;
mod humans;
mod kubelet;
mod operator;
mod planted;
mod replicas;
mod report;
mod restore;
mod rng;
mod shrink;
mod store;
mod truth;
mod turns;
mod watches;
mod world;

use std::{
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use history::{Script, script};
use planted::{BUGS, Bug};
use report::Tally;
use world::{Event, World};

/// How long after the active phase everything has come to rest.
const QUIET: i64 = 3 * 3_600_000;

/// From so many histories on everything must have been reached.
const LONG: u64 = 15_000;

fn main() -> ExitCode {
    if let Some(seed) = number("SEED") {
        return replay(seed);
    }
    if number("PLANTED").is_some() {
        return plant();
    }
    let wrong = conformance::differences();
    if !wrong.is_empty() {
        println!("the simulated API server isn't as the real one:\n  {}", wrong.join("\n  "));
        return ExitCode::FAILURE;
    }
    let (from, seeds) = (number("FROM").unwrap_or(0), number("SEEDS").unwrap_or(500));
    let start = Instant::now();
    let (tally, failed) = run_all(from, seeds, None);
    tally.print(seeds);
    println!("in {:.1} s", start.elapsed().as_secs_f64());
    if let Some(seed) = failed {
        return replay(seed);
    }
    let few = tally.too_few(seeds);
    if seeds >= LONG && !few.is_empty() {
        println!("reached too seldom:\n  {}", few.join("\n  "));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs seeds on all cores until one fails; gives the first that did.
fn run_all(from: u64, seeds: u64, bug: Option<Bug>) -> (Tally, Option<u64>) {
    let next = AtomicU64::new(from);
    let stop = AtomicBool::new(false);
    let failed = Mutex::new(None::<u64>);
    let sum = Mutex::new(Tally::default());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let keep_on = number("KEEP_ON").is_some();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = Tally::default();
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + seeds {
                        break;
                    }
                    let world = run(script(seed), bug, false);
                    mine.add(&world.tally);
                    if let Some(violation) = &world.checks.violation {
                        if keep_on {
                            println!("seed {seed}: {violation}");
                            continue;
                        }
                        stop.store(true, Ordering::Relaxed);
                        let mut failed = failed.lock().unwrap();
                        *failed = Some(failed.map_or(seed, |other| other.min(seed)));
                    }
                }
                sum.lock().unwrap().add(&mine);
            });
        }
    });
    (sum.into_inner().unwrap(), failed.into_inner().unwrap())
}

/// One history.
fn run(script: Script, bug: Option<Bug>, tell: bool) -> World {
    let mut world = World::new(script, bug, tell);
    world.found();
    let lines: Vec<i64> = world.script.lines.iter().map(|line| line.at).collect();
    let lead = 60_000;
    for (number, at) in lines.into_iter().enumerate() {
        world.after(lead + at, Event::Line(number));
    }
    // People change Secrets before Uptake comes, too: the first lines may come before it.
    let start = lead + world.rng.between(-40_000, 20_000);
    for replica in 0..u64::from(world.knobs.replicas) {
        let late = if replica > 0 { world.rng.between(0, 30_000) } else { 0 };
        world.after(start + late, Event::Start { replica });
    }
    let until = world.script.until;
    world.after(lead + until, Event::Quiet);
    let end = world.now + lead + until + QUIET;
    while world.checks.violation.is_none()
        && let Some(event) = world.next_event()
    {
        if world.now > end {
            break;
        }
        happen(&mut world, event);
    }
    world.check_end();
    world
}

fn happen(world: &mut World, event: Event) {
    let Some(event) = world.turn_to_replica_of(event) else { return };
    match event {
        Event::Line(number) => {
            world.back_up();
            let action = world.script.lines[number].action;
            world.act(action);
        }
        Event::Quiet => world.become_quiet(),
        Event::Deliver { stream, turn } => world.deliver(stream, turn),
        Event::List { stream, turn } => world.list(stream, turn),
        Event::Listed { stream, turn, part } => world.listed(stream, turn, part),
        Event::Resume { stream, turn } => world.resume(stream, turn),
        Event::OutageOver { stream } => world.each_replica(|world| world.streams[stream].out = false),
        Event::Bookmark { stream, life } => world.bookmark(stream, life),
        Event::Execute { life, call } => world.execute(life, call),
        Event::Answered { life, call, answer } => world.answered(life, call, *answer),
        Event::Tick { life, number } => world.tick(life, number),
        Event::Start { .. } => world.start_operator(),
        Event::Candidate { life } => world.candidate(life),
        Event::Lease { life, asked } => world.lease_answers(life, asked),
        Event::Control(owner) | Event::Deadline(owner) => world.control(owner),
        Event::Admitted { owner, set, ordinal, created } => world.admitted(owner, set, ordinal, created),
        Event::Container { pod, which } => world.start_container(pod, which),
        Event::Ready(pod) => world.pod_ready(pod),
        Event::PodGone(pod) => world.pod_gone(pod),
        Event::Set { place, key } => world.set_anew(place, key),
        Event::Git(owner) => world.git_applies(owner),
        Event::OwnerGone(owner) => world.workload_ends(owner),
        Event::Release { place, version } => world.release(place, version),
        Event::LedgerBack => world.ledger_down = false,
    }
}

/// Tells one history in words, shortened if it fails.
fn replay(seed: u64) -> ExitCode {
    let whole = script(seed);
    let first = run(whole.clone(), None, false);
    let Some(violation) = first.checks.violation else {
        if number("STORY").is_some() {
            print_story(&run(whole, None, true));
        }
        println!("seed {seed} holds");
        return ExitCode::SUCCESS;
    };
    println!("seed {seed} fails: {violation}");
    if number("BRIEF").is_some() {
        return ExitCode::FAILURE;
    }
    let short = if number("WHOLE").is_some() { whole } else { shrink::shrink(&whole, None) };
    let world = run(short, None, true);
    println!("shortened, with {:?}:", world.knobs);
    print_story(&world);
    println!("seed {seed} fails: {violation}");
    ExitCode::FAILURE
}

fn print_story(world: &World) {
    for line in world.story.iter().flatten() {
        println!("{line}");
    }
}

fn plant() -> ExitCode {
    let seeds = number("SEEDS").unwrap_or(20_000);
    let mut missed = false;
    for bug in BUGS {
        if let Some(seed) = run_all(0, seeds, Some(bug)).1 {
            println!("{bug:?}: found by seed {seed}");
        } else {
            println!("{bug:?}: not found in {seeds} histories");
            missed = true;
        }
    }
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
