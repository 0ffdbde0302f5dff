//! The HTTP side: metrics and probes.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    time::{Instant, timeout},
};

use crate::record::{Gauges, Metrics, Watch};

/// The engine's loop wakes every few seconds; one that hasn't for so long is stuck.
const STUCK: Duration = Duration::from_secs(30);

/// How long a page waits for the loop to say how things are now.
const FRESH: Duration = Duration::from_millis(500);

/// The state of the operator, as its loop published it last.
#[derive(Clone, Debug)]
pub struct Published {
    /// The engine's own view.
    pub gauges: Gauges,
    /// When it was published.
    pub beat: Instant,
}

/// What the pages are made of.
pub struct Pages {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// What the loop published.
    pub published: watch::Receiver<Published>,
    /// Asks the loop to publish: making the state looks at every workload, so nobody makes it for nothing.
    pub ask: Arc<Notify>,
    /// The inventories without which it isn't ready.
    pub required: Vec<Watch>,
}

/// Serves until `shutdown` is done.
///
/// # Errors
/// The listener broke.
pub async fn run(
    listener: TcpListener,
    pages: Pages,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(Arc::new(pages));
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await
}

impl Pages {
    /// The state as it is now; as it was last if the loop is busy.
    async fn fresh(&self) -> Gauges {
        let mut published = self.published.clone();
        published.mark_unchanged();
        self.ask.notify_one();
        let _ = timeout(FRESH, published.changed()).await;
        published.borrow().gauges.clone()
    }
}

async fn metrics(State(pages): State<Arc<Pages>>) -> Response {
    let text = pages.metrics.text(&pages.fresh().await);
    match text {
        Ok(text) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn healthz(State(pages): State<Arc<Pages>>) -> Response {
    let since = pages.published.borrow().beat.elapsed();
    if since < STUCK {
        return "ok\n".into_response();
    }
    let words = format!("the engine's loop has been stuck for {} s\n", since.as_secs());
    (StatusCode::SERVICE_UNAVAILABLE, words).into_response()
}

async fn readyz(State(pages): State<Arc<Pages>>) -> Response {
    let reasons = unready(&pages.fresh().await, &pages.required);
    if reasons.is_empty() {
        return "ok\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, reasons.join("\n") + "\n").into_response()
}

/// Why it isn't ready, a line a reason.
fn unready(state: &Gauges, required: &[Watch]) -> Vec<String> {
    let unknown = required
        .iter()
        .filter(|watch| !state.synced.iter().any(|(known, _)| known == *watch))
        .map(|watch| format!("{}: the inventory isn't known yet", watch.as_str()));
    let needed = state.synced.iter().filter(|(watch, _)| watch.is_needed());
    let lost = needed.filter_map(|(watch, synced)| {
        let reason = synced.as_ref().err()?;
        Some(format!("{}: {}", watch.as_str(), reason.replace('\n', " ")))
    });
    let ledger = state.ledger.as_ref().err().map(|reason| format!("ledger: {}", reason.replace('\n', " ")));
    unknown.chain(lost).chain(ledger).collect()
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Empty};
    use hyper_util::rt::TokioIo;
    use tokio::{net::TcpStream, sync::oneshot};

    use super::*;
    use crate::facts::Kind;

    fn gauges(synced: Vec<(Watch, Result<(), String>)>) -> Gauges {
        Gauges { stale_pods: vec![], held: vec![], pending: 0, in_flight: 0, synced, ledger: Ok(()) }
    }

    #[test]
    fn it_is_ready_when_every_inventory_and_the_ledger_are_in() {
        let required = [Watch::Secrets, Watch::Workloads(Kind::Deployment)];
        let mut state = gauges(vec![(Watch::Secrets, Ok(()))]);
        assert_eq!(unready(&state, &required), ["Deployment: the inventory isn't known yet"]);
        state.synced.push((Watch::Workloads(Kind::Deployment), Err("forbidden\nto list".into())));
        state.ledger = Err("not loaded yet".into());
        assert_eq!(unready(&state, &required), ["Deployment: forbidden to list", "ledger: not loaded yet"]);
        state.synced[1].1 = Ok(());
        state.synced.push((Watch::ServiceAccounts, Err("forbidden".into())));
        state.ledger = Ok(());
        assert!(unready(&state, &required).is_empty());
    }

    async fn page(port: u16, path: &str) -> (u16, String) {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (mut send, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request =
            hyper::Request::get(path).header("host", "x").body(Empty::<bytes::Bytes>::new()).unwrap();
        let answer = send.send_request(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn the_pages_are_served_until_shutdown() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (publish, published) = watch::channel(Published {
            gauges: gauges(vec![(Watch::Secrets, Ok(()))]),
            beat: Instant::now(),
        });
        let pages = Pages {
            metrics: Arc::new(Metrics::new().unwrap()),
            published,
            ask: Arc::default(),
            required: vec![Watch::Secrets],
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(run(listener, pages, async { drop(stopped.await) }));
        assert_eq!(page(port, "/readyz").await, (200, "ok\n".to_owned()));
        assert_eq!(page(port, "/healthz").await, (200, "ok\n".to_owned()));
        assert!(page(port, "/metrics").await.1.contains("uptake_watch_synced{kind=\"Secret\"} 1"));
        publish.send_modify(|published| {
            published.gauges.synced[0].1 = Err("gone".to_owned());
            published.beat -= STUCK;
        });
        assert_eq!(page(port, "/readyz").await, (503, "Secret: gone\n".to_owned()));
        assert_eq!(page(port, "/healthz").await.0, 503);
        assert_eq!(page(port, "/else").await.0, 404);
        drop(stop);
        server.await.unwrap().unwrap();
    }
}
