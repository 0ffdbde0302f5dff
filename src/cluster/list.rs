//! Consistent lists, page by page.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Api, Wiped,
    api::{self, READ_LIMIT},
    path,
};
use crate::{engine::Fault, facts::Version};

/// One page of a list. It has no `Debug`: items may hold Secret values.
#[derive(Deserialize)]
pub struct Page<'a> {
    /// The list's own metadata.
    pub metadata: ListMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

impl<'a> Page<'a> {
    /// The objects, not decoded yet. An empty list of metadata has `null` for them.
    pub fn items(&self) -> &[&'a RawValue] {
        self.items.as_deref().unwrap_or_default()
    }
}

/// A list's metadata.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListMeta {
    /// The version of the whole list.
    pub resource_version: String,
    /// Where the next page starts; empty at the end.
    #[serde(default, rename = "continue")]
    pub next: String,
}

impl ListMeta {
    /// The list's version.
    pub fn version(&self) -> Result<Version, Fault> {
        self.resource_version.parse().map_err(|_| api::undecodable())
    }
}

/// What to list.
pub struct List<'a> {
    /// The path of the collection.
    pub path: &'a str,
    /// Its selectors. Never a `resourceVersion` of 0: that reads a cache of any age.
    pub query: &'a [(&'a str, &'a str)],
    /// Only at exactly that version, or the most recent.
    pub at: Option<Version>,
    /// How many objects a page has.
    pub page: u16,
    /// Whether only `metadata` is wanted.
    pub metadata_only: bool,
}

impl List<'_> {
    /// Hands each object to `each`, and gives the list's version. A list that expires between two pages is
    /// started again once, after `restart`.
    ///
    /// # Errors
    /// A page can't be had or decoded, or `each` says no.
    pub async fn each<State>(
        &self,
        api: &Api,
        restart: impl Fn() -> State,
        mut each: impl FnMut(&mut State, &RawValue) -> Result<(), Fault>,
    ) -> Result<(State, Version), Fault> {
        match self.once(api, restart(), &mut each).await {
            Err(Fault::Expired) if self.at.is_none() => self.once(api, restart(), &mut each).await,
            done => done,
        }
    }

    async fn once<State>(
        &self,
        api: &Api,
        mut state: State,
        each: &mut impl FnMut(&mut State, &RawValue) -> Result<(), Fault>,
    ) -> Result<(State, Version), Fault> {
        let mut next = String::new();
        loop {
            let body = self.page(api, &next).await?;
            let page: Page<'_> = api::decode(body.as_ref())?;
            for item in page.items() {
                each(&mut state, item)?;
            }
            if page.metadata.next.is_empty() {
                return Ok((state, page.metadata.version()?));
            }
            next = page.metadata.next;
        }
    }

    /// The page that starts there (empty: the first), as bytes.
    ///
    /// # Errors
    /// It can't be had.
    pub async fn page(&self, api: &Api, next: &str) -> Result<Wiped, Fault> {
        api.bytes(self.request(next), READ_LIMIT).await
    }

    fn request(&self, next: &str) -> http::Request<kube::client::Body> {
        let page = self.page.to_string();
        let at = self.at.map(|version| version.to_string());
        let mut query = self.query.to_vec();
        query.push(("limit", &page));
        if !next.is_empty() {
            query.push(("continue", next));
        } else if let Some(at) = &at {
            query.extend([("resourceVersion", at.as_str()), ("resourceVersionMatch", "Exact")]);
        }
        let path = path::with(self.path, &query);
        if self.metadata_only { api::get_metadata(&path) } else { api::get(&path) }
    }
}
