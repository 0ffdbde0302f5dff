//! One request, and its answer or its fault.

use std::time::Duration;

use http::{HeaderValue, Method, Request, header};
use kube::{Client, client::Body};
use serde::de::DeserializeOwned;

use super::{
    body::{self, Wiped},
    fault,
    plurals::Plurals,
};
use crate::engine::Fault;

/// The `Accept` value of lists of which only `metadata` is wanted.
pub const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
/// The same of one object.
const OBJECT_METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const JSON: &str = "application/json";
/// The content type of a merge patch.
pub const MERGE_PATCH: &str = "application/merge-patch+json";

/// How long a write may take. Admission webhooks have 10 s by default, up to 30 s; a write that took
/// longer may still have happened, and is looked at again as any other unknown.
pub const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// How long a read may take.
pub const READ_LIMIT: Duration = Duration::from_secs(30);

/// A page of 500 pods is 5 to 20 MB, one of 50 Secrets of the largest size 75 MB.
const BODY_LIMIT: usize = 256 << 20;
/// A Status is short.
const STATUS_LIMIT: usize = 64 << 10;

/// Sends requests to the API server. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    client: Client,
    plurals: Plurals,
    patience: Duration,
}

impl Api {
    /// Over that client. It must not retry by itself: a retried write would be hidden from the engine.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, plurals: Plurals::default(), patience: Duration::MAX }
    }

    /// What custom kinds are called in URLs.
    #[must_use]
    pub fn plurals(&self) -> &Plurals {
        &self.plurals
    }

    /// Waits no longer than that for any answer, whatever a request's own limit is.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Opens an answer: its body when its head says success.
    ///
    /// # Errors
    /// Whatever else than success.
    pub async fn open(&self, request: Request<Body>, limit: Duration) -> Result<Body, Fault> {
        within(limit.min(self.patience), async {
            let answer = self.client.send(request).await.map_err(|error| fault::of_transport(&error))?;
            let (head, body) = answer.into_parts();
            if head.status.is_success() {
                return Ok(body);
            }
            let status = body::read(body, STATUS_LIMIT).await.unwrap_or_default();
            Err(fault::of_answer(head.status, status.as_ref()))
        })
        .await
    }

    /// The whole body of a successful answer.
    ///
    /// # Errors
    /// Whatever else than success.
    pub async fn bytes(&self, request: Request<Body>, limit: Duration) -> Result<Wiped, Fault> {
        within(limit.min(self.patience), async {
            let body = self.open(request, limit).await?;
            body::read(body, BODY_LIMIT).await
        })
        .await
    }

    /// The decoded body of a successful answer.
    ///
    /// # Errors
    /// Whatever else than success; a body that can't be decoded isn't quoted.
    pub async fn json<T: DeserializeOwned>(
        &self,
        request: Request<Body>,
        limit: Duration,
    ) -> Result<T, Fault> {
        let body = self.bytes(request, limit).await?;
        decode(body.as_ref())
    }
}

/// Decodes a body; the error never quotes it.
///
/// # Errors
/// It isn't what is expected.
pub fn decode<'a, T: serde::Deserialize<'a>>(body: &'a [u8]) -> Result<T, Fault> {
    serde_json::from_slice(body).map_err(|_| undecodable())
}

/// The fault of a body that can't be decoded.
pub fn undecodable() -> Fault {
    Fault::Unknown(fault::UNDECODABLE.to_owned())
}

async fn within<T>(limit: Duration, call: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    match tokio::time::timeout(limit, call).await {
        Ok(done) => done,
        Err(_) => Err(Fault::Unknown(format!("{NO_ANSWER} {}", humantime::format_duration(limit)))),
    }
}

/// The words for a request whose time is over.
const NO_ANSWER: &str = "no answer within";

/// Whether a request's time was over.
pub fn is_timeout(fault: &Fault) -> bool {
    matches!(fault, Fault::Unknown(words) if words.starts_with(NO_ANSWER))
}

/// A GET.
pub fn get(path: &str) -> Request<Body> {
    request(Method::GET, path, JSON, None)
}

/// A GET of metadata only.
pub fn get_metadata(path: &str) -> Request<Body> {
    request(Method::GET, path, METADATA_ONLY, None)
}

/// A GET of one object's metadata only.
pub fn get_object_metadata(path: &str) -> Request<Body> {
    request(Method::GET, path, OBJECT_METADATA_ONLY, None)
}

/// A request with a body.
pub fn send(method: Method, path: &str, body: &serde_json::Value) -> Request<Body> {
    request(method, path, JSON, Some((JSON, body)))
}

/// A merge patch.
pub fn patch(path: &str, body: &serde_json::Value) -> Request<Body> {
    request(Method::PATCH, path, JSON, Some((MERGE_PATCH, body)))
}

fn request(
    method: Method,
    path: &str,
    accept: &'static str,
    body: Option<(&'static str, &serde_json::Value)>,
) -> Request<Body> {
    let (kind, bytes) = match body {
        Some((kind, body)) => (Some(kind), Body::from(body.to_string().into_bytes())),
        None => (None, Body::empty()),
    };
    let mut request = Request::new(bytes);
    *request.method_mut() = method;
    // Names come from the API server and paths are made here; a name that makes no path makes a request
    // that the server answers with 404.
    *request.uri_mut() = path.parse().unwrap_or_else(|_| http::Uri::from_static("/invalid-path"));
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(accept));
    if let Some(kind) = kind {
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    request
}
