//! Finds the consumers of a Secret kind by kind, and stamps them.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use serde_json::{Value, value::RawValue};
use tokio::sync::Semaphore;

use super::{
    plan::{self, Choice},
    report::{DiscoveryFailure, Failure, Requested, Tally},
};
use crate::{
    catalog::{Workload, beside::BesideId, effective, read},
    cli::{Class, Session, gather, target::ConsumerTarget},
    cluster::{self, List, READ_LIMIT, WRITE_LIMIT, path, stamp::patch, words},
    engine::Fault,
    facts::{KNATIVE, Kind, Name, Namespace, Raw, Version, class_of},
    watch::workload::is_of_knative,
};

/// Patches in flight of one restart.
const PATCHES_IN_FLIGHT: usize = 4;
/// How often a patch is tried that somebody else's write came before.
const TRIES: u32 = 5;
/// When it is looked for what became of a patch whose answer was lost.
const FIND_AFTER: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];
const PAGE: u16 = 500;

/// What is to be restarted.
#[derive(Clone, Debug)]
pub struct Order {
    /// The namespace.
    pub namespace: Namespace,
    /// The Secret, or the SecretProviderClass as it stands among Secrets.
    pub secret: Name,
    /// These consumers only; empty: all.
    pub only: Vec<ConsumerTarget>,
    /// Whether the API server only says what it would do.
    pub dry_run: bool,
}

/// A workload that was stamped, as it was then.
#[derive(Clone, Debug)]
pub struct Stamped {
    /// The workload after its stamp.
    pub workload: Workload,
    /// The stamp.
    pub stamp: String,
}

/// Whether the Secret is there.
#[derive(Clone, Debug)]
enum Found {
    At(Version),
    /// What is restarted for is a SecretProviderClass.
    Class,
    Nowhere,
    Unknown(Fault),
}

/// Restarts: gives what came of it, and the workloads that are being rolled.
pub async fn perform(session: &Session, order: &Order) -> (Tally, Vec<Stamped>) {
    let mut tally = Tally { dry_run: order.dry_run, ..Tally::default() };
    let known = session.kinds(gather::settings(session).await.as_ref()).await;
    let knative = known.iter().any(|kind| kind.group() == KNATIVE);
    let kinds = plan::kinds(known, &order.only);
    let (found, beside) = futures::join!(find(session, order), gather::beside(session));
    let (classes, accounts) = beside;
    note_unlisted(&mut tally, "ServiceAccounts", accounts.as_ref().err());
    note_unlisted(&mut tally, "SecretProviderClasses", classes.as_ref().err());
    let beside = Beside { accounts: accounts.unwrap_or_default(), classes: classes.unwrap_or_default() };
    let turns = Semaphore::new(PATCHES_IN_FLIGHT);
    let version = if let Found::At(version) = found { Some(version) } else { None };
    let run = Run { session, order, beside: &beside, turns: &turns, version, knative };
    let mut faults: Vec<Fault> = Vec::new();
    let done: Vec<_> =
        stream::iter(&kinds).map(|kind| run.kind(kind)).buffered(kinds.len().max(1)).collect().await;
    let mut stamped = Vec::new();
    for (kind, done) in kinds.iter().zip(done) {
        match done {
            Ok(done) => stamped.extend(take(&mut tally, done)),
            Err(fault) => {
                tally.discovery_failures.push(DiscoveryFailure {
                    kind: kind.as_str().into(),
                    reason: Class::of_list(&fault),
                    message: words(&fault),
                });
                faults.push(fault);
            }
        }
    }
    note_misnamed(&mut tally, order);
    note_secret(&mut tally, &found, order);
    tally.untold = !kinds.is_empty() && faults.len() == kinds.len() && is_untold(&found, &faults);
    let nobody = tally.matched == 0 && tally.left_out.is_empty() && faults.is_empty();
    if nobody && matches!(found, Found::Nowhere) {
        tally.nowhere = !is_referenced(session, order).await;
    }
    (tally, stamped)
}

/// Whether nothing was told but that the rights are missing, or nothing at all.
fn is_untold(found: &Found, faults: &[Fault]) -> bool {
    let silent = |fault: &Fault| {
        matches!(Class::of(fault), Class::Forbidden | Class::Timeout)
            || matches!(fault, Fault::Unknown(words) if !words.starts_with("HTTP "))
    };
    matches!(found, Found::Unknown(fault) if silent(fault)) && faults.iter().all(silent)
}

fn note_unlisted(tally: &mut Tally, what: &str, fault: Option<&Fault>) {
    if let Some(fault) = fault {
        tally.notes.push(format!(
            "{what} can't be listed, nor who consumes the Secret through one: {}",
            words(fault)
        ));
    }
}

/// Who was named and is no consumer: a misspelt name isn't good news.
fn note_misnamed(tally: &mut Tally, order: &Order) {
    for only in &order.only {
        let requested = tally.requested.iter().any(|one| only.is(&one.kind, &one.name));
        let failed = tally.failures.iter().any(|one| only.is(&one.kind, &one.name));
        let unlisted = tally.discovery_failures.iter().any(|one| only.is_kind(&one.kind));
        if !(requested || failed || unlisted) {
            tally.failures.push(Failure {
                namespace: order.namespace.clone(),
                kind: only.kind().into(),
                name: only.name.clone(),
                reason: Class::Gone,
                message: format!("it isn't there, or doesn't consume {}", order.secret),
            });
        }
    }
}

fn note_secret(tally: &mut Tally, found: &Found, order: &Order) {
    match found {
        Found::Nowhere if tally.matched > 0 => tally
            .notes
            .push(format!("Secret {} doesn't exist: new pods that require it won't start", order.secret)),
        Found::At(_) | Found::Class | Found::Nowhere => {}
        Found::Unknown(fault) => {
            tally.notes.push(format!("Secret {} can't be read: {}", order.secret, words(fault)));
        }
    }
}

/// Whether anything that can't be rolled references the Secret.
async fn is_referenced(session: &Session, order: &Order) -> bool {
    let wanted = gather::Wanted { secret: Some(order.secret.clone()) };
    let scene = gather::scene(session, &wanted).await;
    // Who can't look says nothing about it.
    scene.map_or(true, |scene| scene.consumers.iter().any(|consumer| consumer.names(&order.secret)))
}

async fn find(session: &Session, order: &Order) -> Found {
    if class_of(&order.secret).is_some() {
        return Found::Class;
    }
    let path = format!("{}/{}", path::core(Some(&order.namespace), "secrets"), order.secret);
    match session.api.json::<Value>(cluster::get_object_metadata(&path), READ_LIMIT).await {
        Err(Fault::NotFound) => Found::Nowhere,
        Err(fault) => Found::Unknown(fault),
        Ok(object) => match Raw(&object).version() {
            Ok(version) => Found::At(version),
            Err(_) => Found::Unknown(cluster::undecodable()),
        },
    }
}

struct Beside {
    accounts: Vec<crate::catalog::beside::ServiceAccountFacts>,
    classes: Vec<crate::catalog::beside::ProviderClassFacts>,
}

impl Beside {
    /// A workload with all that it consumes.
    fn complete(&self, mut workload: Workload) -> Workload {
        let id = BesideId::new(workload.id.namespace.clone(), workload.service_account.clone());
        let account = self.accounts.iter().find(|account| account.id == id);
        let class = |name: &str| self.classes.iter().find(|class| *class.id.name == *name);
        let effective = effective(&workload.declared, account, class);
        workload.references = effective.kept;
        workload
    }
}

/// What came of one kind.
#[derive(Default)]
struct OfKind {
    done: Vec<Result<Stamped, Failure>>,
    left_out: Vec<String>,
}

fn take(tally: &mut Tally, of_kind: OfKind) -> Vec<Stamped> {
    let mut stamped = Vec::new();
    tally.matched += of_kind.done.len();
    tally.left_out.extend(of_kind.left_out);
    for done in of_kind.done {
        match done {
            Ok(one) => {
                let id = &one.workload.id;
                tally.requested.push(Requested {
                    namespace: id.namespace.clone(),
                    kind: id.kind.as_str().into(),
                    name: id.name.clone(),
                    generation: one.workload.rollout.generation,
                });
                stamped.push(one);
            }
            Err(failure) => tally.failures.push(failure),
        }
    }
    stamped
}

struct Run<'a> {
    session: &'a Session,
    order: &'a Order,
    beside: &'a Beside,
    turns: &'a Semaphore,
    version: Option<Version>,
    /// Whether Knative's Services are among the kinds.
    knative: bool,
}

impl Run<'_> {
    /// Lists a kind to its end, then stamps.
    async fn kind(&self, kind: &Kind) -> Result<OfKind, Fault> {
        let mut of_kind = OfKind::default();
        let mut targets = Vec::new();
        for workload in self.list(kind).await? {
            match plan::choose(&workload, &self.order.secret, &self.order.only) {
                Choice::Target => targets.push(workload),
                Choice::LeftOut => of_kind.left_out.push(format!("{}/{}", kind, workload.id.name)),
                Choice::NotMeant => {}
            }
        }
        let stamps = targets.into_iter().map(|workload| self.stamp(workload));
        of_kind.done = stream::iter(stamps).buffer_unordered(PATCHES_IN_FLIGHT).collect().await;
        Ok(of_kind)
    }

    async fn list(&self, kind: &Kind) -> Result<Vec<Workload>, Fault> {
        let path = cluster::collection(&self.session.api, kind, Some(&self.order.namespace)).await?;
        let list = List { path: &path, query: &[], at: None, page: PAGE, metadata_only: false };
        let each = |listed: &mut Vec<Workload>, item: &RawValue| {
            let object: Value = cluster::decode(item.get().as_bytes())?;
            // What a Knative Service made is rolled by it.
            if self.knative && is_of_knative(kind, Raw(&object)) {
                return Ok(());
            }
            // A custom object without a template consumes nothing.
            let workload = read::workload(kind, &object, &gather::READ).ok();
            listed.extend(workload.map(|workload| self.beside.complete(workload)));
            Ok(())
        };
        Ok(list.each(&self.session.api, Vec::new, each).await?.0)
    }

    /// Stamps exactly the inspected workload; after somebody else's write it is inspected again.
    async fn stamp(&self, mut workload: Workload) -> Result<Stamped, Failure> {
        let _turn = self.turns.acquire().await;
        let id = workload.id.clone();
        let failed = |reason: Class, message: String| Failure {
            namespace: id.namespace.clone(),
            kind: id.kind.as_str().into(),
            name: id.name.clone(),
            reason,
            message,
        };
        let (uid, mut tries) = (workload.uid, 0);
        loop {
            let stamp =
                plan::stamp(workload.stamp.as_deref(), &self.order.secret, self.version, self.session.now());
            let before = workload.rollout.generation;
            tries += 1;
            let fault = match self.patch(&workload, &stamp).await {
                Ok(after) if after.rollout.generation > before => {
                    return Ok(Stamped { workload: after, stamp });
                }
                Ok(_) => {
                    let words =
                        "the API server took the patch and nothing changed: something removes the annotation";
                    return Err(failed(Class::Refused, words.to_owned()));
                }
                Err(fault) => fault,
            };
            let now = match &fault {
                Fault::Conflict => self.get(&workload).await,
                // Nobody else writes this text, so whoever bears it was stamped, whatever became of the answer.
                Fault::Unknown(_) => match self.find_stamped(&workload, &stamp).await {
                    Some(now) => return Ok(Stamped { workload: now, stamp }),
                    None => return Err(failed(Class::of(&fault), words(&fault))),
                },
                fault => return Err(failed(Class::of(fault), words(fault))),
            };
            workload = match now {
                Err(Fault::NotFound) => {
                    return Err(failed(Class::Gone, "it was deleted meanwhile".to_owned()));
                }
                Ok(now) if now.uid != uid => {
                    return Err(failed(Class::Gone, "it was deleted and made again meanwhile".to_owned()));
                }
                Ok(now) if plan::choose(&now, &self.order.secret, &self.order.only) != Choice::Target => {
                    let message = "it was changed meanwhile, and isn't meant any more".to_owned();
                    return Err(failed(Class::Conflict, message));
                }
                Ok(now) if tries < TRIES => now,
                _ => return Err(failed(Class::of(&fault), words(&fault))),
            };
        }
    }

    /// Looks for the stamp of a patch whose answer was lost: it may still be on its way.
    async fn find_stamped(&self, before: &Workload, stamp: &str) -> Option<Workload> {
        for pause in FIND_AFTER {
            tokio::time::sleep(pause).await;
            match self.get(before).await {
                Ok(now) if now.uid != before.uid => return None,
                Ok(now) if now.stamp.as_deref() == Some(stamp) => {
                    return Some(now).filter(|now| now.rollout.generation > before.rollout.generation);
                }
                Err(Fault::NotFound) => return None,
                Ok(_) | Err(_) => {}
            }
        }
        None
    }

    async fn patch(&self, workload: &Workload, stamp: &str) -> Result<Workload, Fault> {
        let id = &workload.id;
        let mut query = vec![("fieldManager", read::MANAGER)];
        if self.order.dry_run {
            query.push(("dryRun", "All"));
        }
        let path = path::with(&cluster::workload(&self.session.api, id).await?, &query);
        let request = cluster::patch(&path, &patch(&id.kind, workload.uid, workload.version, stamp));
        let object: Value = self.session.api.json(request, WRITE_LIMIT).await?;
        self.read(&id.kind, &object)
    }

    async fn get(&self, workload: &Workload) -> Result<Workload, Fault> {
        let object: Value = gather::workload(self.session, &workload.id).await?;
        self.read(&workload.id.kind, &object)
    }

    fn read(&self, kind: &Kind, object: &Value) -> Result<Workload, Fault> {
        let workload = read::workload(kind, object, &gather::READ).map_err(|_| cluster::undecodable())?;
        Ok(self.beside.complete(workload))
    }
}
