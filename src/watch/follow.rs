//! The loop that keeps one watch going.
//!
//! ```text
//!   list afresh ──────────► watch ──────────► resume at the last version
//!    ▲   │ fails             ▲  │ ends, breaks, idle        │    │
//!    │   ▼                   └──┼───────────────────────────┘    │ 410, or succeeds after nobody answered,
//!    └─ Broken, wait            │ silent, version goes back,     │ or fails for a minute, or the rights are
//!    ▲                          │ a new round                    │ gone (Broken)
//!    └──────────────────────────┴────────────────────────────────┘
//! ```

use std::{collections::HashSet, time::Duration};

use backon::ExponentialBuilder;
use kube_runtime::{utils::Backoff, watcher::ExponentialBackoff};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    lines::Lines,
    message::{Message, Meta},
    outlet::{Closed, Outlet},
    read::{LeftOut, Read, Reading},
};
use crate::{
    cluster::{self, Api, List, Page, READ_LIMIT, path},
    engine::{Fault, InventoryFault, Watched},
    facts::{Kind, Namespace, Version},
};

/// Without an event and a bookmark for so long, the connection may be dead: bookmarks come every minute.
const IDLE: Duration = Duration::from_secs(180);
/// Within a list something always comes.
const LIST_IDLE: Duration = Duration::from_secs(30);
/// How long a resumption is tried before the inventory counts as lost: an API server's restart takes less, and
/// a watch that resumes knows the exact version of each change, which a fresh list doesn't.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pauses after failures double from the first to the last. The last is short, for while the API server is back and this
/// waits, a changed Secret isn't seen; one client that asks every few seconds is no load.
const FIRST_PAUSE: Duration = Duration::from_millis(800);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// How often it is looked whether a kind that isn't there has come: most clusters never get it.
const ABSENT_PAUSE: Duration = Duration::from_secs(30);
/// A stream that ends at once and without a word is a failure, or the loop would spin.
const SHORT: Duration = Duration::from_secs(1);
/// Warnings about unreadable objects are kept apart up to this many.
const WARNED_LIMIT: usize = 1000;

/// What is watched.
#[derive(Clone, Debug)]
pub struct Target {
    /// The word for it in logs.
    pub kind: String,
    /// Where the collection is.
    pub place: Place,
    /// The path of a watch, where it isn't the collection's. It selects by itself.
    pub watch_path: Option<String>,
    /// The field selector.
    pub fields: Option<String>,
    /// How many objects a page has, where lists are paged.
    pub page: u16,
    /// Whether missing rights make it empty instead of unknown.
    pub optional: bool,
    /// The path of the group's version (`/apis/GROUP/VERSION`) of a kind that clusters may be without: where the API
    /// server doesn't serve it, there are no objects of it. It is looked for again at the backoff's pace.
    pub may_be_absent: Option<String>,
    /// Spreads what should not happen at the same moment everywhere. Any number.
    pub seed: u64,
}

/// Where a collection is.
#[derive(Clone, Debug)]
pub enum Place {
    /// At that path.
    Path(String),
    /// Where the API server says that a kind's workloads are, in a namespace or in all: asked at each fresh list, for
    /// custom kinds come and go.
    Workloads(Kind, Option<Namespace>),
}

impl Place {
    async fn find(&self, api: &Api) -> Result<String, Fault> {
        match self {
            Self::Path(path) => Ok(path.clone()),
            Self::Workloads(kind, namespace) => {
                let plural = cluster::look_up(api, kind).await?;
                Ok(path::workloads(kind, &plural, namespace.as_deref()))
            }
        }
    }
}

impl Target {
    /// A watch that is silent for so long (5 to 10 minutes) is listed afresh: one whose version is ahead of
    /// a restored store is deaf for ever, and nothing else tells.
    fn silence(&self) -> Duration {
        Duration::from_secs(300 + spread(self.seed, 300))
    }

    /// The server ends a watch after so long (30 to 60 minutes, its own default).
    fn lifetime(&self) -> String {
        (1800 + spread(self.seed.rotate_left(32), 1800)).to_string()
    }
}

/// A number below `below` that looks random (splitmix64's last step).
const fn spread(seed: u64, below: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % below
}

/// Keeps a watch going until nobody listens any more.
pub async fn follow<R: Read>(api: Api, target: Target, reader: R, out: Outlet<R::Item, R::Id>) {
    let backoff = ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LAST_PAUSE)
        .with_factor(2.0)
        .with_jitter()
        .without_max_times();
    let backoff = ExponentialBackoff::from(backoff);
    follow_with(api, target, reader, out, Box::new(backoff), ABSENT_PAUSE).await;
}

async fn follow_with<R: Read>(
    api: Api,
    target: Target,
    reader: R,
    out: Outlet<R::Item, R::Id>,
    backoff: Box<dyn Backoff>,
    absent_pause: Duration,
) {
    let mut follower = Follower {
        api,
        silence: target.silence(),
        target,
        reader,
        out,
        backoff,
        absent_pause,
        path: String::new(),
        streamed: true,
        at: Version(0),
        heard: Instant::now(),
        told: None,
        warned: HashSet::new(),
    };
    while follower.round().await.is_ok() {}
}

/// Why a list or a stream ended.
enum End {
    Closed,
    Fault(Fault),
}

impl From<Closed> for End {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What to do after a stream.
enum After {
    Resume,
    Relist,
}

struct Follower<R: Read> {
    api: Api,
    target: Target,
    silence: Duration,
    reader: R,
    out: Outlet<R::Item, R::Id>,
    backoff: Box<dyn Backoff>,
    absent_pause: Duration,
    /// The path of the collection, as of the last list.
    path: String,
    /// Whether the server streams initial lists (Kubernetes 1.34 does).
    streamed: bool,
    /// Up to where everything has been delivered.
    at: Version,
    /// When the server last said anything.
    heard: Instant,
    /// The fault that the engine knows of.
    told: Option<InventoryFault>,
    /// Objects of which it has been said that they are left out, and why.
    warned: HashSet<(String, String, String)>,
}

impl<R: Read> Follower<R> {
    /// One fresh list and the watch after it, until another list is needed.
    async fn round(&mut self) -> Result<(), Closed> {
        let mut expired = false;
        let stream = loop {
            match self.list().await {
                Ok(stream) => break stream,
                Err(End::Closed) => return Err(Closed),
                // The list took longer than versions are kept: once more at once.
                Err(End::Fault(Fault::Expired)) if !expired => expired = true,
                Err(End::Fault(fault)) => {
                    self.broken(fault).await?;
                    self.pause().await?;
                }
            }
        };
        self.watch(stream).await
    }

    /// A fresh list, and the stream that goes on from it if it was streamed.
    async fn list(&mut self) -> Result<Option<Lines>, End> {
        self.path = self.target.place.find(&self.api).await?;
        if self.streamed {
            match self.list_streamed().await {
                Err(End::Fault(Fault::Refused(_))) => self.streamed = false,
                listed => return listed.map(Some),
            }
        }
        self.list_paged().await.map(|()| None)
    }

    /// A list as a watch that begins with all objects there are. The empty version makes it consistent.
    async fn list_streamed(&mut self) -> Result<Lines, End> {
        let list = [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")];
        let mut lines = self.open("", &list).await?;
        self.out.relist().await?;
        loop {
            let Ok(more) = timeout(LIST_IDLE, lines.advance()).await else {
                // An old or overloaded server: it may do better with pages.
                self.streamed = false;
                return Err(Fault::Unknown("the list stopped coming".to_owned()).into());
            };
            if !more? {
                return Err(Fault::Unknown("the list broke off".to_owned()).into());
            }
            match Message::read(lines.line()).ok_or_else(cluster::undecodable)? {
                Message::Bookmark { version, initial_end: true } => {
                    self.complete(version).await?;
                    return Ok(lines);
                }
                Message::Bookmark { .. } => {}
                Message::Applied(meta, object) => self.apply(meta, object).await?,
                Message::Deleted(meta, version) => self.delete(&meta, version).await?,
                Message::Error(status) => return Err(status.fault().into()),
            }
        }
    }

    async fn list_paged(&mut self) -> Result<(), End> {
        let (path, Target { fields, page, .. }) = (self.path.clone(), self.target.clone());
        let query: Vec<_> = fields.iter().map(|fields| ("fieldSelector", fields.as_str())).collect();
        let list = List { path: &path, query: &query, at: None, page, metadata_only: false };
        let mut next = String::new();
        loop {
            let body = list.page(&self.api, &next).await?;
            let page: Page<'_> = cluster::decode(body.as_ref())?;
            if next.is_empty() {
                self.out.relist().await?;
            }
            for item in page.items() {
                let object = item.get().as_bytes();
                let meta = Meta::of(object).ok_or_else(cluster::undecodable)?;
                self.apply(meta, object).await?;
            }
            if page.metadata.next.is_empty() {
                let version = page.metadata.version()?;
                return Ok(self.complete(version).await?);
            }
            next = page.metadata.next;
        }
    }

    async fn open(&self, at: &str, more: &[(&str, &str)]) -> Result<Lines, Fault> {
        let lifetime = self.target.lifetime();
        let mut query = vec![
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", at),
            ("timeoutSeconds", lifetime.as_str()),
        ];
        query.extend_from_slice(more);
        let Target { watch_path, fields, .. } = &self.target;
        if let Some(fields) = fields.as_ref().filter(|_| watch_path.is_none()) {
            query.push(("fieldSelector", fields));
        }
        let request = cluster::get(&path::with(watch_path.as_ref().unwrap_or(&self.path), &query));
        self.api.open(request, READ_LIMIT).await.map(Lines::new)
    }

    /// Watches until a fresh list is needed. As long as it resumes, nothing is missed and nothing is said.
    async fn watch(&mut self, mut stream: Option<Lines>) -> Result<(), Closed> {
        let mut failing: Option<Instant> = None;
        let mut was_down = false;
        loop {
            let (opened, heard) = (Instant::now(), self.heard);
            let end = match stream.take() {
                Some(lines) => self.consume(lines).await,
                None => match self.open(&self.at.to_string(), &[]).await {
                    // Meanwhile the store may have been restored from a backup and have grown beyond this version, and no
                    // watch would tell.
                    Ok(_) if was_down => return Ok(()),
                    Ok(lines) => self.consume(lines).await,
                    Err(fault) => {
                        was_down |= matches!(fault, Fault::Unknown(_));
                        Err(fault.into())
                    }
                },
            };
            if self.heard > heard {
                failing = None;
                self.backoff.reset();
            }
            match end {
                Ok(After::Relist) | Err(End::Fault(Fault::Expired)) => return Ok(()),
                Ok(After::Resume) if self.heard > heard || opened.elapsed() > SHORT => {}
                Ok(After::Resume) => self.pause().await?,
                Err(End::Closed) => return Err(Closed),
                Err(End::Fault(fault)) => {
                    let since = *failing.get_or_insert_with(Instant::now);
                    let hopeless = matches!(fault, Fault::Forbidden(_) | Fault::NotFound);
                    if hopeless || since.elapsed() > PATIENCE {
                        self.broken(fault).await?;
                        return self.pause().await;
                    }
                    tracing::debug!(
                        kind = self.target.kind,
                        reason = cluster::words(&fault),
                        "Watch is resumed after a failure"
                    );
                    self.pause().await?;
                }
            }
        }
    }

    /// Takes a stream's lines until it ends.
    async fn consume(&mut self, mut lines: Lines) -> Result<After, End> {
        let mut idle = Instant::now() + IDLE;
        loop {
            let deaf = self.heard + self.silence;
            let line = tokio::select! {
                line = timeout_at(idle.min(deaf), lines.advance()) => line,
                () = self.out.asked() => return Ok(After::Relist),
            };
            match line {
                Ok(more) => {
                    if !more? {
                        return Ok(After::Resume);
                    }
                }
                Err(_) if Instant::now() >= deaf => return Ok(After::Relist),
                Err(_) => return Ok(After::Resume),
            }
            let message = Message::read(lines.line()).ok_or_else(cluster::undecodable)?;
            self.heard = Instant::now();
            idle = self.heard + IDLE;
            if matches!(self.take(message).await?, After::Relist) {
                return Ok(After::Relist);
            }
        }
    }

    /// Passes on a message of a watch. A version that goes back is passed on as it is, and is the end of the
    /// watch: no store does that but a restored one.
    async fn take(&mut self, message: Message<'_>) -> Result<After, End> {
        let version = match message {
            Message::Applied(meta, object) => {
                let version = meta.version().ok_or_else(cluster::undecodable)?;
                self.apply(meta, object).await?;
                version
            }
            Message::Deleted(meta, version) => {
                self.delete(&meta, version).await?;
                version
            }
            Message::Bookmark { version, .. } => {
                self.out.say(Watched::Progress(version)).await?;
                version
            }
            Message::Error(status) => return Err(status.fault().into()),
        };
        let after = if version < self.at { After::Relist } else { After::Resume };
        self.at = version;
        Ok(after)
    }

    async fn apply(&mut self, meta: Meta, object: &[u8]) -> Result<(), Closed> {
        if !self.reader.wants(&meta) {
            return Ok(());
        }
        match self.reader.read(object) {
            Reading::Item(item) => self.out.say(Watched::Apply(item)).await,
            Reading::Unreadable => {
                self.warn_of(&meta, None);
                Ok(())
            }
            Reading::LeftOut(why) => {
                match why {
                    LeftOut::Worth(reason) => self.warn_of(&meta, Some(&reason)),
                    LeftOut::Usual(reason) => {
                        let Meta { namespace, name, .. } = &meta;
                        let kind = self.target.kind.as_str();
                        tracing::debug!(kind, namespace, name, reason, "Object is left out");
                    }
                }
                // It may have been one to deal with before.
                let version = meta.version().unwrap_or(self.at);
                self.out.say(Watched::Delete(self.reader.id(&meta), version)).await
            }
        }
    }

    /// Says of an object that it is left out, once a reason.
    fn warn_of(&mut self, meta: &Meta, reason: Option<&str>) {
        let kind = self.target.kind.as_str();
        let Meta { namespace, name, .. } = meta;
        let place = (namespace.clone(), name.clone(), reason.unwrap_or_default().to_owned());
        if self.warned.len() >= WARNED_LIMIT || !self.warned.insert(place) {
            return;
        }
        let Some(reason) = reason else {
            tracing::warn!(kind, namespace, name, "Object can't be read and is left out");
            return;
        };
        tracing::warn!(kind, namespace, name, reason, "Object is left out");
    }

    async fn delete(&mut self, meta: &Meta, version: Version) -> Result<(), Closed> {
        if self.reader.wants(meta) {
            self.out.say(Watched::Delete(self.reader.id(meta), version)).await?;
        }
        Ok(())
    }

    async fn complete(&mut self, version: Version) -> Result<(), Closed> {
        self.at = version;
        self.heard = Instant::now();
        self.backoff.reset();
        if self.told.take().is_some() {
            tracing::info!(kind = self.target.kind, "Inventory is known again");
        }
        self.out.say(Watched::Complete(version)).await
    }

    /// Says that the inventory is lost, once a state: another text of the same fault is no news. What counts as empty is
    /// said as an empty list, again whenever a fresh one is asked for.
    async fn broken(&mut self, fault: Fault) -> Result<(), Closed> {
        let fault = match fault {
            Fault::Forbidden(words) if !self.is_absent().await => InventoryFault::Forbidden(words),
            Fault::Forbidden(_) | Fault::NotFound => InventoryFault::UnknownKind,
            fault => InventoryFault::Unavailable(cluster::words(&fault)),
        };
        let same = |told: &InventoryFault| std::mem::discriminant(told) == std::mem::discriminant(&fault);
        let news = !self.told.as_ref().is_some_and(same);
        self.told = Some(fault.clone());
        let empty = self.counts_as_empty();
        if news {
            self.log_fault(&fault);
        }
        if empty && (news || self.out.is_asked()) {
            self.out.relist().await?;
            return self.out.say(Watched::Complete(self.at)).await;
        }
        if empty || !news {
            return Ok(());
        }
        self.out.say(Watched::Broken(fault)).await
    }

    /// Whether the fault that was told last means that there are no objects.
    fn counts_as_empty(&self) -> bool {
        match self.told {
            Some(InventoryFault::Forbidden(_)) => self.target.optional,
            Some(InventoryFault::UnknownKind) => self.target.may_be_absent.is_some(),
            Some(InventoryFault::Unavailable(_)) | None => false,
        }
    }

    /// Without rights the API server says the same of a kind that it serves and of one that it doesn't; what it serves
    /// anybody may ask.
    async fn is_absent(&self) -> bool {
        let Some(group) = &self.target.may_be_absent else { return false };
        cluster::serves(&self.api, group, &self.target.kind).await == Ok(false)
    }

    fn log_fault(&self, fault: &InventoryFault) {
        let kind = self.target.kind.as_str();
        let reason = match fault {
            InventoryFault::Forbidden(words) | InventoryFault::Unavailable(words) => words,
            InventoryFault::UnknownKind => "the API server doesn't know the kind",
        };
        match fault {
            InventoryFault::UnknownKind if self.counts_as_empty() => {
                tracing::debug!(kind, reason, "There are no objects of this kind yet");
            }
            _ if self.counts_as_empty() => {
                tracing::warn!(kind, reason, "Inventory may not be read and counts as empty");
            }
            InventoryFault::UnknownKind => tracing::warn!(kind, reason, "Kind is waited for"),
            _ => tracing::warn!(kind, reason, "Inventory is not known"),
        }
    }

    /// Waits before the next try.
    async fn pause(&mut self) -> Result<(), Closed> {
        // The backoff has no end; without one, its longest pause.
        let pause = self.backoff.next().unwrap_or(LAST_PAUSE);
        if self.counts_as_empty() {
            // The other parts of the kind may wait for this one's empty list.
            let _ = timeout(pause.max(self.absent_pause), self.out.asked()).await;
        } else {
            let _ = timeout(pause, self.out.gone()).await;
        }
        if self.out.is_gone() { Err(Closed) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
