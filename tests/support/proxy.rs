//! A proxy before the API server that misbehaves as told: what networks, load balancers and busy servers do.
//!
//! ```ignore
//! let proxy = Proxy::start(cluster).await;
//! let install = Install::for_namespaces(cluster, &[&ns.name]).await.via(&proxy);
//! let rule = proxy.on(write_of("deployments"), Fault::LoseAnswer).times(1);
//! …
//! assert_eq!(rule.hits(), 1);
//! ```
//!
//! It speaks plain HTTP to the caller and passes the caller's token on. Answers are streamed as they come.

use super::Result;
use super::cluster::{Cluster, User};
use futures::{StreamExt, stream};
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

type Body = UnsyncBoxBody<Bytes, super::Error>;

/// What happens to a request that a rule matches.
#[derive(Clone)]
pub enum Fault {
    /// It is forwarded later.
    Delay(Duration),
    /// The connection ends before anything is forwarded.
    Refuse,
    /// It is never forwarded and never answered: the moment before a write, to kill its caller in.
    Hold,
    /// The server does it; the connection ends before its answer.
    LoseAnswer,
    /// A status without having asked the server: 429, 500, 504.
    Answer { status: u16, retry_after: Option<u32> },
    /// The connection breaks after so many bytes of the answer's body.
    CutAfter(usize),
    /// The answer ends after so many bytes as if that were all.
    EndAfter(usize),
    /// This byte of the answer's body becomes one that JSON nowhere allows.
    Corrupt(usize),
    /// The whole answer is replaced; not for watches, which never end.
    Rewrite(fn(&[u8]) -> Vec<u8>),
    /// No more bytes, while the rule stands; also of answers that have begun. The connection stays open. A write
    /// has happened and its caller doesn't know: the moment to kill it.
    Stall,
}

/// A request as rules see it.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub body: Bytes,
}

impl Asked {
    fn of(request: &Request<Full<Bytes>>, body: Bytes) -> Self {
        let uri = request.uri();
        Self {
            method: request.method().clone(),
            path: uri.path().into(),
            query: uri.query().unwrap_or_default().into(),
            body,
        }
    }

    fn is_watch(&self) -> bool {
        self.query.split('&').any(|part| matches!(part, "watch=true" | "watch=1"))
    }

    fn names(&self, resource: &str) -> bool {
        self.path.split('/').any(|step| step == resource)
    }
}

/// A list of a kind, in one namespace or all.
pub fn list_of(resource: &'static str) -> impl Fn(&Asked) -> bool + Clone + Send + Sync + 'static {
    move |asked| {
        asked.method == Method::GET && !asked.is_watch() && asked.path.rsplit('/').next() == Some(resource)
    }
}

pub fn watch_of(resource: &'static str) -> impl Fn(&Asked) -> bool + Clone + Send + Sync + 'static {
    move |asked| asked.is_watch() && asked.names(resource)
}

/// An Event with that reason is written.
pub fn event_of(reason: &'static str) -> impl Fn(&Asked) -> bool + Clone + Send + Sync + 'static {
    let reason = format!("\"reason\":\"{reason}\"");
    move |asked| {
        asked.method == Method::POST
            && asked.names("events")
            && String::from_utf8_lossy(&asked.body).contains(&reason)
    }
}

/// A write to objects of a kind.
pub fn write_of(resource: &'static str) -> impl Fn(&Asked) -> bool + Clone + Send + Sync + 'static {
    move |asked| asked.method != Method::GET && asked.names(resource)
}

pub fn everything() -> impl Fn(&Asked) -> bool + Clone + Send + Sync + 'static {
    |_| true
}

/// A rule in force; it stays when this handle is dropped.
#[derive(Clone)]
pub struct Rule {
    inner: Arc<Inner>,
    shared: Arc<Shared>,
}

struct Inner {
    matches: Box<dyn Fn(&Asked) -> bool + Send + Sync>,
    fault: Fault,
    /// How often it may still act.
    left: AtomicU32,
    hits: AtomicUsize,
}

impl Rule {
    /// Acts so often only.
    pub fn times(self, times: u32) -> Self {
        self.inner.left.store(times, Ordering::SeqCst);
        self
    }

    /// How many requests it has acted on.
    pub fn hits(&self) -> usize {
        self.inner.hits.load(Ordering::SeqCst)
    }

    pub fn remove(&self) {
        self.shared.rules.lock().unwrap().retain(|other| !Arc::ptr_eq(other, &self.inner));
        self.shared.changed.send_modify(|_| ());
    }
}

/// What all connections share.
struct Shared {
    rules: Mutex<Vec<Arc<Inner>>>,
    /// Wakes answers that are stalled or on their way; the number of cuts so far.
    changed: watch::Sender<u64>,
    requests: AtomicUsize,
    upstream: (u16, TlsConnector),
}

impl Shared {
    /// The first rule that matches and may act; a stall is looked at byte by byte instead.
    fn take(&self, asked: &Asked) -> Option<Fault> {
        let rules = self.rules.lock().unwrap();
        let rule = rules.iter().find(|rule| {
            !matches!(rule.fault, Fault::Stall)
                && (rule.matches)(asked)
                && rule
                    .left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok()
        })?;
        rule.hits.fetch_add(1, Ordering::SeqCst);
        Some(rule.fault.clone())
    }

    fn stall(&self, asked: &Asked) -> Option<Arc<Inner>> {
        let rules = self.rules.lock().unwrap();
        rules.iter().find(|rule| matches!(rule.fault, Fault::Stall) && (rule.matches)(asked)).cloned()
    }
}

/// Listens until it is dropped; open connections end then too.
pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
    cluster_files: PathBuf,
    task: AbortHandle,
}

impl Proxy {
    /// Runs beside the test, so it works while the test blocks its thread.
    pub async fn start(cluster: &Cluster) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let listener = listener.into_std().expect("a listener moves to another runtime");
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared {
            rules: Mutex::default(),
            changed: watch::Sender::new(0),
            requests: AtomicUsize::new(0),
            upstream: (cluster.port(), connector(cluster.ca())),
        });
        let task = cluster.background().spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Self { shared, port, cluster_files: cluster.folder().to_owned(), task }
    }

    pub fn server(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn kubeconfig(&self, cluster: &Cluster, user: &User) -> PathBuf {
        debug_assert_eq!(self.cluster_files, cluster.folder());
        cluster.kubeconfig_at(user, &self.server())
    }

    /// From now on. Of several rules that match, the oldest that may still act does.
    pub fn on(&self, matches: impl Fn(&Asked) -> bool + Send + Sync + 'static, fault: Fault) -> Rule {
        let left = AtomicU32::new(u32::MAX);
        let inner = Arc::new(Inner { matches: Box::new(matches), fault, left, hits: AtomicUsize::new(0) });
        self.shared.rules.lock().unwrap().push(Arc::clone(&inner));
        self.shared.changed.send_modify(|_| ());
        Rule { inner, shared: Arc::clone(&self.shared) }
    }

    /// Behaves well again.
    pub fn clear(&self) {
        self.shared.rules.lock().unwrap().clear();
        self.shared.changed.send_modify(|_| ());
    }

    /// Breaks every answer that is on its way now, watches above all.
    pub fn cut_open_answers(&self) {
        self.shared.changed.send_modify(|cuts| *cuts += 1);
    }

    /// How many requests came so far.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        self.cut_open_answers();
    }
}

fn connector(ca: &str) -> TlsConnector {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).expect("our own CA")).expect("our own CA");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).expect("a bound listener");
    // Aborted with this task, so that a dropped proxy serves nobody.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let service = service_fn(|request| handle(request, Arc::clone(&shared)));
            // An error of the service ends the connection without an answer: exactly what is wanted.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn handle(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Body>> {
    shared.requests.fetch_add(1, Ordering::SeqCst);
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let request = Request::from_parts(head, Full::new(body.clone()));
    let asked = Asked::of(&request, body);
    let fault = shared.take(&asked);
    match &fault {
        Some(Fault::Refuse) => return Err("refused on purpose".into()),
        Some(Fault::Hold) => std::future::pending().await,
        Some(Fault::Answer { status, retry_after }) => return failure(*status, *retry_after),
        Some(Fault::Delay(time)) => tokio::time::sleep(*time).await,
        _ => {}
    }
    let answer = forward(request, &shared).await?;
    let (mut head, body) = answer.into_parts();
    // The body may become shorter or longer: hyper frames it anew.
    head.headers.remove(header::CONTENT_LENGTH);
    let body = match fault {
        Some(Fault::LoseAnswer) => {
            body.collect().await?;
            return Err("lost on purpose".into());
        }
        Some(Fault::Rewrite(rewrite)) => {
            let whole = body.collect().await?.to_bytes();
            Full::new(Bytes::from(rewrite(&whole))).map_err(Into::into).boxed_unsync()
        }
        fault => pass_on(body, asked, fault, shared),
    };
    Ok(Response::from_parts(head, body))
}

/// As the API server words it.
fn failure(code: u16, retry_after: Option<u32>) -> Result<Response<Body>> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "message": "injected by the test's proxy", "reason": "Injected",
    });
    let mut answer = Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
    if let Some(seconds) = retry_after {
        answer = answer.header(header::RETRY_AFTER, seconds);
    }
    let body = Full::new(Bytes::from(status.to_string())).map_err(Into::into).boxed_unsync();
    Ok(answer.body(body)?)
}

/// A connection a request: slower than need be, but no request suffers for another's fault.
async fn forward(mut request: Request<Full<Bytes>>, shared: &Shared) -> Result<Response<Incoming>> {
    let (port, connector) = &shared.upstream;
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await?;
    let stream = connector.connect("localhost".try_into()?, stream).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    request.headers_mut().insert(header::HOST, HeaderValue::from_str(&format!("127.0.0.1:{port}"))?);
    request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    let mut answer = sender.send_request(request).await?;
    answer.headers_mut().remove(header::CONNECTION);
    Ok(answer)
}

/// An answer on its way.
struct Passing {
    body: Incoming,
    asked: Asked,
    fault: Option<Fault>,
    shared: Arc<Shared>,
    changed: watch::Receiver<u64>,
    /// Cuts before this answer began are not meant for it.
    cuts: u64,
    sent: usize,
    /// A stall counts an answer once.
    stalled: bool,
}

fn pass_on(body: Incoming, asked: Asked, fault: Option<Fault>, shared: Arc<Shared>) -> Body {
    let changed = shared.changed.subscribe();
    let cuts = *changed.borrow();
    let passing = Passing { body, asked, fault, shared, changed, cuts, sent: 0, stalled: false };
    let frames = stream::unfold(Some(passing), |passing| async move {
        let mut passing = passing?;
        match passing.next().await {
            Ok(Some(data)) => Some((Ok(Frame::data(data)), Some(passing))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    });
    StreamBody::new(frames.boxed()).boxed_unsync()
}

impl Passing {
    /// The next bytes to send; None at the end, an error to break the connection.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        match self.fault {
            Some(Fault::CutAfter(limit)) if self.sent >= limit => {
                // Pending once: the server flushes what it has before it learns of the break.
                tokio::task::yield_now().await;
                return Err("cut on purpose".into());
            }
            Some(Fault::EndAfter(limit)) if self.sent >= limit => return Ok(None),
            _ => {}
        }
        let data = loop {
            tokio::select! {
                frame = self.body.frame() => match frame.transpose()?.map(Frame::into_data) {
                    Some(Ok(data)) => break data,
                    // Trailers: of no use to anybody here.
                    Some(Err(_)) => {}
                    None => return Ok(None),
                },
                _ = self.changed.changed() => self.check_cut()?,
            }
        };
        self.wait_while_stalled().await?;
        let data = self.damage(data);
        self.sent += data.len();
        Ok(Some(data))
    }

    fn check_cut(&self) -> Result<()> {
        if *self.changed.borrow() == self.cuts { Ok(()) } else { Err("cut on purpose".into()) }
    }

    async fn wait_while_stalled(&mut self) -> Result<()> {
        while let Some(rule) = self.shared.stall(&self.asked) {
            if !self.stalled {
                self.stalled = true;
                rule.hits.fetch_add(1, Ordering::SeqCst);
            }
            self.changed.changed().await?;
            self.check_cut()?;
        }
        self.stalled = false;
        Ok(())
    }

    fn damage(&self, data: Bytes) -> Bytes {
        match self.fault {
            Some(Fault::CutAfter(limit) | Fault::EndAfter(limit)) => {
                data.slice(..limit.saturating_sub(self.sent).min(data.len()))
            }
            Some(Fault::Corrupt(at)) if (self.sent..self.sent + data.len()).contains(&at) => {
                let mut data = data.to_vec();
                data[at - self.sent] = 1;
                data.into()
            }
            _ => data,
        }
    }
}
