//! A layer around the client that counts requests and reads the server's clock.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::{Method, Request, Response, header};
use prometheus::IntCounterVec;
use tower::{Layer, Service};

use super::ServerClock;

/// Counts each request by verb and code, and learns the server's time from each answer.
#[derive(Clone)]
pub struct Meter {
    /// `uptake_api_requests_total{verb,code}`.
    pub requests: IntCounterVec,
    /// Learns from `Date` headers.
    pub clock: ServerClock,
}

impl<S> Layer<S> for Meter {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Metered { inner, meter: self.clone() }
    }
}

/// The metered client.
pub struct Metered<S> {
    inner: S,
    meter: Meter,
}

impl<S, A, B> Service<Request<A>> for Metered<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let meter = self.meter.clone();
        let verb = verb(request.method(), request.uri().query().unwrap_or_default());
        let sent = meter.clock.mono();
        let call = self.inner.call(request);
        Box::pin(async move {
            let answer = call.await;
            // `<error>` is client-go's word for a request without an answer.
            let code =
                answer.as_ref().map_or("<error>".to_owned(), |answer| answer.status().as_u16().to_string());
            meter.requests.with_label_values(&[verb, code.as_str()]).inc();
            let date = answer.as_ref().ok().and_then(|answer| answer.headers().get(header::DATE));
            if let Some(date) = date.and_then(|date| date.to_str().ok()) {
                meter.clock.learn(sent, date);
            }
            answer
        })
    }
}

fn verb(method: &Method, query: &str) -> &'static str {
    match *method {
        Method::GET if query.contains("watch=true") => "watch",
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use prometheus::Opts;
    use tower::{ServiceExt as _, service_fn};

    use super::*;

    #[tokio::test]
    async fn requests_are_counted_and_the_clock_is_learnt() {
        let requests = IntCounterVec::new(Opts::new("r", "r"), &["verb", "code"]).unwrap();
        let meter = Meter { requests: requests.clone(), clock: ServerClock::new() };
        let server = service_fn(|_: Request<()>| async {
            let answer =
                Response::builder().status(201).header("date", "Tue, 01 Dec 2037 03:41:10 GMT").body(());
            Ok::<_, Infallible>(answer.unwrap())
        });
        let request = Request::builder().method("POST").uri("/x").body(()).unwrap();
        meter.layer(server).oneshot(request).await.unwrap();
        assert_eq!(requests.with_label_values(&["create", "201"]).get(), 1);
        assert!(meter.clock.now().server.to_string().starts_with("2037-12-01"));
    }

    #[test]
    fn watches_are_told_from_gets() {
        assert_eq!(verb(&Method::GET, "limit=1"), "get");
        assert_eq!(verb(&Method::GET, "a=b&watch=true"), "watch");
    }
}
