//! The ledger in memory, and which of its objects have to be written.
//!
//! Every edit gives a [`Ticket`]; what must not happen before the edit is durable waits for it. An object
//! is written whole, one write of it in flight at a time: edits made meanwhile go with the next one.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Marks, Point, SecretRecord, Settings,
    page::{Cover, HEAD, Head, Page, SCHEMA, page_name, page_number},
    sheet::{Sheet, Urgency},
};
use crate::facts::{Mono, Name, Namespace, SecretId, Time, Uid, Version};

/// How large an object may grow before its records are spread over another, in bytes: the API server
/// takes 2 ms to replace 1 KiB and 200 ms to patch 900 KiB.
pub const PAGE_BYTES: usize = 64 * 1024;

/// How many objects a namespace may have: a tenant can only hurt itself.
pub const PAGES: usize = 16;

/// The ledger.
#[derive(Debug)]
pub struct Book {
    cover: Cover,
    head: Sheet,
    head_writes: u64,
    head_more: serde_json::Map<String, serde_json::Value>,
    settings: serde_json::Value,
    chapters: BTreeMap<Namespace, Chapter>,
    held_back: bool,
}

/// A namespace's records.
#[derive(Debug, Default)]
pub(super) struct Chapter {
    pub(super) made: Point,
    pub(super) seen_until: Point,
    pub(super) secrets: BTreeMap<Name, Placed<SecretRecord>>,
    pub(super) workloads: BTreeMap<Uid, Placed<Marks>>,
    pub(super) sheets: Vec<Sheet>,
    /// What a newer version of Uptake wrote, by sheet.
    pub(super) more: BTreeMap<usize, serde_json::Map<String, serde_json::Value>>,
}

/// A record and the sheet it stands on.
#[derive(Debug)]
pub(super) struct Placed<T> {
    pub(super) record: T,
    pub(super) sheet: usize,
}

/// An edit, to be asked whether it is durable: with all that was required to be before it in its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    namespace: Namespace,
    /// By sheet, the edits that have to be in the store.
    edits: Vec<(usize, u64)>,
}

/// The namespace has as many records as its objects can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the namespace's part of the ledger is full")]
pub struct Full;

/// A write that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The object.
    pub name: String,
    /// The version to replace; none to create.
    pub over: Option<Version>,
    /// The content.
    pub body: Vec<u8>,
}

/// What was read of the ledger at the start, in words for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Whether there was a ledger of this cluster at all.
    pub known: bool,
    /// Objects that can't be read, or are another cluster's: what they told is first sight again.
    pub lost: Vec<String>,
    /// Whether digests were made under another scheme or key.
    pub adopted: bool,
}

impl Book {
    /// An empty ledger, made now.
    #[must_use]
    pub fn new(identity: Uid, scheme: String, made: Point) -> Self {
        let cover = Cover { schema: SCHEMA, scheme, identity, made, seen_until: Point::default() };
        Self {
            cover,
            head: Sheet::default(),
            head_writes: 0,
            head_more: serde_json::Map::new(),
            settings: serde_json::Value::Null,
            chapters: BTreeMap::new(),
            held_back: false,
        }
    }

    /// The same, written under those settings.
    #[must_use]
    pub fn under(mut self, settings: &Settings) -> Self {
        self.settings = serde_json::to_value(settings).unwrap_or_default();
        self
    }

    /// Takes in an object as it was read: at the start, or after somebody else wrote it. What it knows is
    /// joined with what is known.
    pub fn read(&mut self, name: &str, version: Version, body: &[u8], findings: &mut Findings) {
        if name == HEAD {
            self.read_head(version, body, findings);
            return;
        }
        match serde_json::from_slice::<Page>(body) {
            Ok(page)
                if page.cover.identity == self.cover.identity
                    && *name == *page_name(&page.namespace, page_number(name).unwrap_or(PAGES)) =>
            {
                self.read_page(name, version, page, findings);
            }
            Ok(_) => findings.lost.push(format!("{name} is another cluster's or namespace's")),
            Err(_) => findings.lost.push(format!("{name} can't be read")),
        }
    }

    fn read_head(&mut self, version: Version, body: &[u8], findings: &mut Findings) {
        self.head.read(version);
        match serde_json::from_slice::<Head>(body) {
            Ok(head) if head.cover.identity == self.cover.identity => {
                findings.known = true;
                self.head_more = head.more;
                self.head_writes = self.head_writes.max(head.writes);
                self.cover.made = head.cover.made;
                self.cover.seen_until = self.cover.seen_until.later(head.cover.seen_until);
                findings.adopted |= head.cover.scheme != self.cover.scheme;
            }
            Ok(_) => findings.lost.push(format!("{HEAD} is another cluster's")),
            Err(_) => findings.lost.push(format!("{HEAD} can't be read")),
        }
    }

    fn read_page(&mut self, name: &str, version: Version, mut page: Page, findings: &mut Findings) {
        findings.known = true;
        let number = page_number(name).unwrap_or_default();
        if page.cover.scheme != self.cover.scheme {
            findings.adopted = true;
            page.secrets.values_mut().for_each(SecretRecord::forget_digests);
        }
        let chapter = self.chapters.entry(page.namespace).or_default();
        chapter.made =
            if chapter.sheets.is_empty() { page.cover.made } else { chapter.made.min(page.cover.made) };
        chapter.seen_until = chapter.seen_until.later(page.cover.seen_until);
        chapter.sheet_mut(number).read(version);
        chapter.more.insert(number, page.more);
        for (secret, record) in page.secrets {
            join(&mut chapter.secrets, secret, record, number, SecretRecord::join);
        }
        for (uid, marks) in page.workloads {
            join(&mut chapter.workloads, uid, marks, number, Marks::join);
        }
    }

    /// When the records of a namespace were begun: pods born before are its installed base.
    #[must_use]
    pub fn made(&self, namespace: &str) -> Point {
        self.chapters.get(namespace).map_or(self.cover.made, |chapter| chapter.made)
    }

    /// Up to where every change of a namespace's Secrets is in the ledger.
    #[must_use]
    pub fn seen_until(&self, namespace: &str) -> Point {
        let own = self.chapters.get(namespace).map(|chapter| chapter.seen_until).unwrap_or_default();
        own.later(self.cover.seen_until)
    }

    /// Says that every change up to this point is in the ledger; the head is written with it.
    pub fn see_until(&mut self, point: Point, now: Mono) {
        self.cover.seen_until = self.cover.seen_until.later(point);
        self.head.edit(now, Urgency::Soon);
    }

    /// The ledger begins now, unless one is read.
    pub fn made_now(&mut self, point: Point) {
        self.cover.made = point;
    }

    /// The head is written.
    pub fn write_head(&mut self, now: Mono) {
        self.head.edit(now, Urgency::Now);
    }

    /// Nothing is written until [`resume`](Self::resume): the ledger is being read again.
    pub fn hold_back(&mut self) {
        self.held_back = true;
    }

    /// Writes go on, of all that has changes.
    pub fn resume(&mut self, now: Mono) {
        self.held_back = false;
        let sheets = std::iter::once(&mut self.head)
            .chain(self.chapters.values_mut().flat_map(|chapter| &mut chapter.sheets));
        for sheet in sheets.filter(|sheet| !sheet.is_clean() && !sheet.is_in_flight()) {
            sheet.edit(now, Urgency::Soon);
        }
    }

    /// Objects that are not among these are gone: they are written again.
    pub fn vanish_others<'a>(&mut self, there: impl Iterator<Item = &'a str>, now: Mono) {
        let there: BTreeSet<&str> = there.collect();
        for (namespace, chapter) in &mut self.chapters {
            for (number, sheet) in chapter.sheets.iter_mut().enumerate() {
                if sheet.version().is_some() && !there.contains(&*page_name(namespace, number)) {
                    sheet.vanished(now);
                }
            }
        }
        if self.head.version().is_some() && !there.contains(HEAD) {
            self.head.vanished(now);
        }
    }

    /// The record of a Secret.
    #[must_use]
    pub fn secret(&self, id: &SecretId) -> Option<&SecretRecord> {
        self.chapters.get(&id.namespace)?.secrets.get(&id.name).map(|placed| &placed.record)
    }

    /// The marks of a workload.
    #[must_use]
    pub fn marks(&self, namespace: &str, uid: Uid) -> Option<&Marks> {
        self.chapters.get(namespace)?.workloads.get(&uid).map(|placed| &placed.record)
    }

    /// All Secrets that have a record.
    pub fn secrets(&self) -> impl Iterator<Item = SecretId> + '_ {
        self.chapters.iter().flat_map(|(namespace, chapter)| {
            chapter.secrets.keys().map(|name| SecretId { namespace: namespace.clone(), name: name.clone() })
        })
    }

    /// All workloads that have marks.
    pub fn workloads(&self) -> impl Iterator<Item = (&Namespace, Uid, &Marks)> {
        self.chapters.iter().flat_map(|(namespace, chapter)| {
            chapter.workloads.iter().map(move |(uid, placed)| (namespace, *uid, &placed.record))
        })
    }

    /// All namespaces that have records.
    pub fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.chapters.keys()
    }

    /// Changes the record of a Secret, which is begun if there is none.
    ///
    /// # Errors
    /// When the namespace's part is full.
    pub fn edit_secret(
        &mut self,
        id: &SecretId,
        edit: Edit,
        change: impl FnOnce(&mut SecretRecord),
    ) -> Result<Ticket, Full> {
        let made = self.made_for_new(edit);
        let chapter = self
            .chapters
            .entry(id.namespace.clone())
            .or_insert_with(|| Chapter { made, ..Chapter::default() });
        let sheet = match chapter.secrets.get(&id.name) {
            Some(placed) => placed.sheet,
            None => chapter.place(edit.now)?,
        };
        let placed = chapter
            .secrets
            .entry(id.name.clone())
            .or_insert_with(|| Placed { record: SecretRecord::default(), sheet });
        change(&mut placed.record);
        Ok(chapter.ticket(&id.namespace, sheet, edit))
    }

    /// Changes the marks of a workload, which are begun if there are none.
    ///
    /// # Errors
    /// When the namespace's part is full.
    pub fn edit_marks(
        &mut self,
        namespace: &Namespace,
        uid: Uid,
        edit: Edit,
        new: impl FnOnce() -> Marks,
        change: impl FnOnce(&mut Marks),
    ) -> Result<Ticket, Full> {
        let made = self.made_for_new(edit);
        let chapter =
            self.chapters.entry(namespace.clone()).or_insert_with(|| Chapter { made, ..Chapter::default() });
        let sheet = match chapter.workloads.get(&uid) {
            Some(placed) => placed.sheet,
            None => chapter.place(edit.now)?,
        };
        let placed = chapter.workloads.entry(uid).or_insert_with(|| Placed { record: new(), sheet });
        change(&mut placed.record);
        Ok(chapter.ticket(namespace, sheet, edit))
    }

    /// Removes the record of a Secret.
    pub fn drop_secret(&mut self, id: &SecretId, now: Mono) {
        if let Some(chapter) = self.chapters.get_mut(&id.namespace)
            && let Some(placed) = chapter.secrets.remove(&id.name)
        {
            chapter.sheet_mut(placed.sheet).edit(now, Urgency::Soon);
        }
    }

    /// Removes the marks of a workload.
    pub fn drop_marks(&mut self, namespace: &str, uid: Uid, now: Mono) {
        if let Some(chapter) = self.chapters.get_mut(namespace)
            && let Some(placed) = chapter.workloads.remove(&uid)
        {
            chapter.sheet_mut(placed.sheet).edit(now, Urgency::Soon);
        }
    }

    /// Forgets a namespace; gives the objects that are to be deleted.
    pub fn drop_namespace(&mut self, namespace: &str) -> Vec<(String, Version)> {
        let Some(chapter) = self.chapters.remove(namespace) else { return Vec::new() };
        let numbered = chapter.sheets.iter().enumerate();
        numbered
            .filter_map(|(number, sheet)| Some((page_name(namespace, number), sheet.version()?)))
            .collect()
    }

    /// Whether an edit is durable.
    #[must_use]
    pub fn is_durable(&self, ticket: &Ticket) -> bool {
        // A namespace that was dropped has nothing left to wait for.
        let Some(chapter) = self.chapters.get(&ticket.namespace) else { return true };
        let is_durable = |sheet: usize, edit| chapter.sheets.get(sheet).is_none_or(|s| s.is_durable(edit));
        ticket.edits.iter().all(|(sheet, edit)| is_durable(*sheet, *edit))
    }

    /// Whether all edits are durable.
    #[must_use]
    pub fn is_all_durable(&self) -> bool {
        self.chapters.values().flat_map(|chapter| &chapter.sheets).all(Sheet::is_clean)
    }

    /// Whether writes fail: since the first failure nothing was written.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.sheets().any(Sheet::is_failing)
    }

    fn sheets(&self) -> impl Iterator<Item = &Sheet> {
        std::iter::once(&self.head).chain(self.chapters.values().flat_map(|chapter| &chapter.sheets))
    }

    /// When the next write is due, if any is.
    #[must_use]
    pub fn next_write(&self) -> Option<Mono> {
        if self.held_back {
            return None;
        }
        self.sheets().filter_map(Sheet::due).min()
    }

    /// The writes that are due; they count as in flight from now on. `seen` is up to where everything was
    /// delivered, if the watch is unbroken: an object that says all of its namespace says that too.
    pub fn writes(&mut self, now: Mono, seen: Option<Point>) -> Vec<Write> {
        let mut writes = Vec::new();
        if self.held_back {
            return writes;
        }
        if self.head.is_due(now) {
            self.head_writes += 1;
            let head = Head {
                cover: self.cover.clone(),
                writes: self.head_writes,
                settings: self.settings.clone(),
                more: self.head_more.clone(),
            };
            let over = self.head.send();
            writes.push(Write { name: HEAD.to_owned(), over, body: json(&head) });
        }
        for (namespace, chapter) in &mut self.chapters {
            chapter.writes(namespace, &self.cover, now, seen, &mut writes);
        }
        writes
    }

    /// A write was done.
    pub fn written(&mut self, name: &str, version: Version) {
        if let Some(sheet) = self.sheet_named(name) {
            sheet.written(version);
        }
    }

    /// A write failed, or its answer was lost; it is tried again later.
    pub fn not_written(&mut self, name: &str, now: Mono) {
        if let Some(sheet) = self.sheet_named(name) {
            sheet.not_written(now);
        }
    }

    /// The object is gone, though it was there: it is created again.
    pub fn vanished(&mut self, name: &str, now: Mono) {
        if let Some(sheet) = self.sheet_named(name) {
            sheet.vanished(now);
        }
    }

    /// Whether an object is older than it was already: no store does that but a restored one.
    pub fn has_gone_back(&mut self, name: &str, version: Version) -> bool {
        self.sheet_named(name).and_then(|sheet| sheet.version()).is_some_and(|known| version < known)
    }

    fn sheet_named(&mut self, name: &str) -> Option<&mut Sheet> {
        if name == HEAD {
            return Some(&mut self.head);
        }
        let number = page_number(name)?;
        let found = self.chapters.iter_mut().find(|(namespace, _)| page_name(namespace, number) == name);
        found.and_then(|(_, chapter)| chapter.sheets.get_mut(number))
    }

    /// Turns what lies above a restored store's version into first sight.
    pub fn forget_above(&mut self, store: Point, heard: Time, now: Mono) {
        for chapter in self.chapters.values_mut() {
            chapter.forget_above(store, heard, now);
        }
        if self.cover.seen_until.version > store.version {
            self.cover.seen_until = Point { version: Version(0), time: heard };
        }
    }

    /// Forgets what was proven of workloads with versions above that one.
    pub fn doubt_above(&mut self, version: Version, now: Mono) {
        self.chapters.values_mut().for_each(|chapter| chapter.doubt_above(version, now));
    }

    /// Of gaps that began at these points of a history that is lost only the time counts.
    pub fn forget_gaps(&mut self, from: &BTreeSet<Point>, now: Mono) {
        self.chapters.values_mut().for_each(|chapter| chapter.forget_gaps(from, now));
    }

    fn made_for_new(&self, edit: Edit) -> Point {
        // While the ledger is being made, all of it is begun at once; later, a namespace's when it is first used.
        if self.head.version().is_none() { self.cover.made } else { edit.at }
    }
}

/// The circumstances of an edit.
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    /// Now, by the own clock.
    pub now: Mono,
    /// Now, as a point of the store.
    pub at: Point,
    /// How soon it has to be durable.
    pub urgency: Urgency,
}

fn join<K: Ord, T>(
    into: &mut BTreeMap<K, Placed<T>>,
    key: K,
    record: T,
    sheet: usize,
    join: impl FnOnce(&mut T, T),
) {
    match into.get_mut(&key) {
        Some(mine) => join(&mut mine.record, record),
        None => {
            into.insert(key, Placed { record, sheet });
        }
    }
}

impl Chapter {
    fn sheet_mut(&mut self, number: usize) -> &mut Sheet {
        while self.sheets.len() <= number {
            self.sheets.push(Sheet::default());
        }
        &mut self.sheets[number]
    }

    fn ticket(&mut self, namespace: &Namespace, sheet: usize, edit: Edit) -> Ticket {
        let number = self.sheet_mut(sheet).edit(edit.now, edit.urgency);
        // A stamp without the change it is for would be a stranger's to who comes after a crash.
        let others = self.sheets.iter().enumerate().filter(|(other, its)| *other != sheet && !its.is_clean());
        let edits = others.map(|(other, its)| (other, its.required())).chain([(sheet, number)]).collect();
        Ticket { namespace: namespace.clone(), edits }
    }

    /// The sheet for a new record.
    fn place(&mut self, now: Mono) -> Result<usize, Full> {
        let free = self.sheets.iter().position(Sheet::has_room);
        let number = free.or_else(|| (self.sheets.len() < PAGES).then_some(self.sheets.len())).ok_or(Full)?;
        self.sheet_mut(number).edit(now, Urgency::Soon);
        self.sheets[number].grow();
        Ok(number)
    }

    fn writes(
        &mut self,
        namespace: &Namespace,
        cover: &Cover,
        now: Mono,
        seen: Option<Point>,
        writes: &mut Vec<Write>,
    ) {
        let numbered = self.sheets.iter().enumerate();
        let due: BTreeSet<usize> =
            numbered.filter(|(_, sheet)| sheet.is_due(now)).map(|(number, _)| number).collect();
        if due.is_empty() {
            return;
        }
        let rest_is_durable =
            self.sheets.iter().enumerate().all(|(number, sheet)| due.contains(&number) || sheet.is_clean());
        self.seen_until = self.seen_until.later(cover.seen_until);
        if let (Some(seen), true, 1) = (seen, rest_is_durable, due.len()) {
            self.seen_until = self.seen_until.later(seen);
        }
        for number in due {
            let body = json(&self.page(namespace, cover, number));
            let over = self.sheets[number].send_sized(body.len());
            writes.push(Write { name: page_name(namespace, number), over, body });
        }
    }

    fn page(&self, namespace: &Namespace, cover: &Cover, number: usize) -> Page {
        let on_sheet = |sheet: usize| sheet == number;
        Page {
            cover: Cover { made: self.made, seen_until: self.seen_until, ..cover.clone() },
            namespace: namespace.clone(),
            secrets: self
                .secrets
                .iter()
                .filter(|(_, placed)| on_sheet(placed.sheet))
                .map(|(name, placed)| (name.clone(), placed.record.clone()))
                .collect(),
            workloads: self
                .workloads
                .iter()
                .filter(|(_, placed)| on_sheet(placed.sheet))
                .map(|(uid, placed)| (*uid, placed.record.clone()))
                .collect(),
            more: self.more.get(&number).cloned().unwrap_or_default(),
        }
    }

    fn forget_above(&mut self, store: Point, heard: Time, now: Mono) {
        if self.seen_until.version > store.version {
            self.seen_until = Point { version: Version(0), time: heard };
        }
        let touched = changed(self.secrets.values_mut(), |record| record.forget_above(store));
        self.touch(touched, now);
        self.doubt_above(store.version, now);
    }

    fn doubt_above(&mut self, version: Version, now: Mono) {
        let touched = changed(self.workloads.values_mut(), |marks| marks.forget_above(version));
        self.touch(touched, now);
    }

    fn forget_gaps(&mut self, from: &BTreeSet<Point>, now: Mono) {
        let touched = changed(self.secrets.values_mut(), |record| record.forget_gaps(from));
        self.touch(touched, now);
    }

    fn touch(&mut self, sheets: BTreeSet<usize>, now: Mono) {
        for sheet in sheets {
            self.sheet_mut(sheet).edit(now, Urgency::Soon);
        }
    }
}

/// Changes records: on which sheets any was changed.
fn changed<'a, T: 'a>(
    records: impl Iterator<Item = &'a mut Placed<T>>,
    change: impl Fn(&mut T) -> bool,
) -> BTreeSet<usize> {
    records.filter_map(|placed| change(&mut placed.record).then_some(placed.sheet)).collect()
}

/// A ledger value is plain data with text keys, which JSON can always say.
fn json<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
