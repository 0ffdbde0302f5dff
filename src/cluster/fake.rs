//! For tests: an API server that gives prepared answers, one after the other.

use std::{
    convert::Infallible,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    body::Body as AnswerBody,
    response::{IntoResponse as _, Response},
};
use futures::{StreamExt as _, stream};
use http::{Request, StatusCode};
use kube::{Client, client::Body};
use serde_json::{Value, json};

use super::Api;

/// Makes an answer.
pub type Reply = Box<dyn Fn() -> Response + Send + Sync>;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The method.
    pub method: String,
    /// Path and query.
    pub uri: String,
    /// The media types.
    pub headers: http::HeaderMap,
    /// The body.
    pub body: Value,
}

/// The server. The last answer is given for ever.
#[derive(Clone, Default)]
pub struct Fake {
    next: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Fake {
    /// Starts it.
    pub fn start(replies: Vec<Reply>) -> (Self, Api) {
        let (fake, client) = Self::client(replies);
        (fake, Api::new(client))
    }

    /// Starts it, for kube's own client.
    pub fn client(replies: Vec<Reply>) -> (Self, Client) {
        let fake = Self::default();
        let (server, replies) = (fake.clone(), Arc::new(replies));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, replies) = (server.clone(), Arc::clone(&replies));
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                server.seen.lock().unwrap().push(Seen {
                    method: head.method.to_string(),
                    uri: head.uri.to_string(),
                    headers: head.headers,
                    body: serde_json::from_slice(&body).unwrap_or_default(),
                });
                let at = server.next.fetch_add(1, Ordering::SeqCst).min(replies.len() - 1);
                Ok::<_, Infallible>(replies[at]())
            }
        });
        (fake, Client::new(service, "default"))
    }

    /// How many requests came.
    pub fn count(&self) -> usize {
        self.next.load(Ordering::SeqCst)
    }

    /// The requests that came.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Path and query of each request.
    pub fn uris(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.uri).collect()
    }
}

/// Lines, and then the stream's end.
pub fn lines(lines: &[String]) -> Reply {
    text(200, &(lines.join("\n") + "\n"))
}

/// Lines, and then silence.
pub fn open(lines: &[String]) -> Reply {
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    Box::new(move || {
        let text = text.clone();
        let first = stream::once(async move { Ok::<_, io::Error>(text) });
        AnswerBody::from_stream(first.chain(stream::pending())).into_response()
    })
}

/// A text.
pub fn text(code: u16, text: &str) -> Reply {
    let text = text.to_owned();
    Box::new(move || (StatusCode::from_u16(code).unwrap(), text.clone()).into_response())
}

/// An object.
pub fn object(code: u16, object: &Value) -> Reply {
    text(code, &object.to_string())
}

/// A Status.
pub fn status(code: u16, message: &str) -> Reply {
    object(code, &json!({"kind": "Status", "code": code, "message": message}))
}

/// A page of a list.
pub fn page(items: &[Value], version: u64, next: &str) -> Reply {
    let metadata = json!({"resourceVersion": version.to_string(), "continue": next});
    object(200, &json!({"metadata": metadata, "items": items}))
}
