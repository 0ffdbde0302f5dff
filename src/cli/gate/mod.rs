//! `gate`: a deploy pipeline's question, and one try to make the answer yes.

mod exec;
mod render;
pub mod verdict;

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{
    CliError, Exit, Session,
    args::{GateArgs, GateFormat},
    gather::{self, Wanted},
    output::{self, Format, Progress},
    restart::{self, Order},
    scene::Scene,
    target::{ConsumerTarget, Target},
};
use crate::facts::{Name, Namespace, class_source};
use verdict::{Answer, Check, Report};

/// How often pods that start are looked at.
const POLL: Duration = Duration::from_millis(500);

/// Runs it.
///
/// # Errors
/// It is asked about something that has no consumers of its own, or nothing can be listed.
pub async fn run(args: &GateArgs) -> Result<Exit, CliError> {
    if let Target::Consumer(consumer) = &args.target {
        let message = format!("gate asks about secret/NAME or secretproviderclass/NAME, not {consumer}");
        return Err(CliError::usage(message));
    }
    let session = Session::open(&args.cluster).await?;
    let gate =
        Gate { namespace: session.one_namespace()?, session, args, deadline: Instant::now() + args.timeout };
    let report = gate.pass().await?;
    let format = match args.output {
        GateFormat::Junit => {
            output::write(&render::junit(&report)?);
            return Ok(report.exit());
        }
        GateFormat::Table => Format::Table,
        GateFormat::Wide => Format::Wide,
        GateFormat::Json => Format::Json,
        GateFormat::Yaml => Format::Yaml,
    };
    output::print(format, &report, |paint, wide| render::render(&report, paint, wide))?;
    Ok(report.exit())
}

struct Gate<'a> {
    session: Session,
    namespace: Namespace,
    args: &'a GateArgs,
    deadline: Instant,
}

/// What was seen at one look.
struct Seen {
    checks: Vec<Check>,
    consumers: usize,
    /// A Secret that every consumer names, for the stamp.
    secret: Option<Name>,
}

impl Gate<'_> {
    async fn pass(&self) -> Result<Report, CliError> {
        let seen = self.look().await?;
        let failed = verdict::overall(&seen.checks) == Answer::Failed;
        if !failed || self.args.no_restart {
            return Ok(self.report(seen, false));
        }
        if !self.restart(&seen).await {
            return Ok(self.report(seen, false));
        }
        Ok(self.report(self.look().await?, true))
    }

    /// Looks, again and again while pods start.
    async fn look(&self) -> Result<Seen, CliError> {
        let mut progress = Progress::new();
        loop {
            let seen = self.look_once().await?;
            let pending = seen.checks.iter().find(|check| check.answer == Answer::Pending);
            let Some(pending) = pending.filter(|_| Instant::now() < self.deadline) else {
                progress.end();
                return Ok(seen);
            };
            progress.show(&format!("{}: {}", pending.name, pending.detail));
            sleep(POLL).await;
        }
    }

    async fn look_once(&self) -> Result<Seen, CliError> {
        let scene = gather::scene(&self.session, &self.wanted()).await?;
        let mut checks = verdict::checks(&scene, &self.namespace, &self.args.target);
        if self.args.exec {
            checks.extend(self.ask(&scene).await);
        }
        let consumers = verdict::consumers(&scene, &self.args.target).count();
        let secret = match &self.args.target {
            Target::ProviderClass(name) => Some(class_source(name)),
            target => verdict::expected(&scene, target).into_keys().next(),
        };
        Ok(Seen { checks, consumers, secret })
    }

    fn wanted(&self) -> Wanted {
        match &self.args.target {
            Target::Secret(name) => Wanted { secret: Some(name.clone()) },
            Target::ProviderClass(_) | Target::Consumer(_) => Wanted::default(),
        }
    }

    /// Asks in the containers for the expected names.
    async fn ask(&self, scene: &Scene) -> Vec<Check> {
        let expected = verdict::expected(scene, &self.args.target);
        let consumers: Vec<_> = verdict::consumers(scene, &self.args.target).collect();
        let mut checks = exec::ask(&self.session, &self.namespace, scene, &consumers, &expected).await;
        for check in
            checks.iter_mut().filter(|check| check.answer == Answer::Unknown && self.args.allow_unknown)
        {
            check.answer = Answer::Skipped;
        }
        checks
    }

    /// Rolls those whose pods are stale; all of them where a key is missing. Whether anything was rolled.
    async fn restart(&self, seen: &Seen) -> bool {
        let Some(secret) = &seen.secret else { return false };
        let missing = seen.checks.iter().any(|check| check.answer == Answer::Failed && check.rolls.is_none());
        let rolls = seen.checks.iter().filter(|check| {
            check.answer == Answer::Failed
                || (missing && matches!(check.answer, Answer::Passed | Answer::Pending))
        });
        let only: Vec<ConsumerTarget> =
            rolls.filter_map(|check| check.rolls.as_ref()).filter_map(|name| name.parse().ok()).collect();
        if only.is_empty() {
            return false;
        }
        output::say(&format!(
            "not yet; rolling once: {}",
            only.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        ));
        let order = Order { namespace: self.namespace.clone(), secret: secret.clone(), only, dry_run: false };
        let report = restart::restart(&self.session, &order, Some(self.deadline)).await;
        for failure in &report.failures {
            output::say(&format!(
                "{}/{}: {}: {}",
                failure.kind,
                failure.name,
                failure.reason.as_str(),
                failure.message
            ));
        }
        !report.requested.is_empty()
    }

    fn report(&self, seen: Seen, restarted: bool) -> Report {
        let Seen { mut checks, consumers, .. } = seen;
        if consumers == 0 && self.args.require_consumers {
            checks.push(Check {
                name: "there are consumers".to_owned(),
                answer: Answer::Failed,
                detail: "there are none".to_owned(),
                rolls: None,
            });
        }
        let mut status = verdict::overall(&checks);
        let late = Instant::now() >= self.deadline && status != Answer::Passed;
        if late {
            status = Answer::Unknown;
        }
        let target = self.args.target.to_string();
        let again = if restarted { ", after one restart" } else { "" };
        let message = match (status, consumers) {
            (Answer::Passed, 0) => format!("{target} passes: nobody consumes it"),
            (Answer::Passed | Answer::Skipped, _) => format!("{target} passes{again}"),
            (Answer::Failed, _) => format!("{target} doesn't pass{again}"),
            _ if late => format!("{target}: the time is over{again}"),
            (Answer::Pending | Answer::Unknown, _) => {
                format!("{target}: it can't be told whether it passes{again}")
            }
        };
        Report {
            target,
            namespace: self.namespace.to_string(),
            status,
            consumers,
            restarted,
            checks,
            message,
        }
    }
}
