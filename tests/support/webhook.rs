//! An admission webhook that thinks for a while and then allows everything, or refuses.

use super::Result;
use super::cluster::Cluster;
use super::objects::Namespace;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// What it says to every request.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub after: Duration,
    /// The message of a refusal.
    pub refuse: Option<String>,
}

impl Verdict {
    pub fn allow_after(after: Duration) -> Self {
        Self { after, refuse: None }
    }

    pub fn refuse(message: &str) -> Self {
        Self { after: Duration::ZERO, refuse: Some(message.into()) }
    }

    fn on(&self, review: &Value) -> Value {
        json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {
                "uid": review["request"]["uid"],
                "allowed": self.refuse.is_none(),
                "status": { "message": self.refuse },
            },
        })
    }
}

/// Asked about one resource in one namespace, until it is removed.
pub struct Webhook {
    name: String,
    configurations: Api<ValidatingWebhookConfiguration>,
    asked: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl Webhook {
    /// `resource` as in a path: `secrets`, `deployments`. In force at the latest a moment after this returns: a
    /// test that needs it waits for [`Self::asked`] to grow.
    pub async fn start(cluster: &Cluster, ns: &Namespace<'_>, resource: &str, verdict: Verdict) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let listener = listener.into_std().expect("a listener moves to another runtime");
        let port = listener.local_addr().expect("it is bound").port();
        let asked = Arc::default();
        let serving = serve(listener, acceptor(cluster), verdict, Arc::clone(&asked));
        let task = cluster.background().spawn(serving).abort_handle();
        let name = super::objects::unique("webhook");
        let configuration = json!({
            "metadata": { "name": name },
            "webhooks": [{
                "name": format!("{name}.test.uptake.dev"),
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{port}/"),
                    "caBundle": k8s_openapi::ByteString(cluster.ca().as_bytes().to_vec()),
                },
                "rules": [{
                    "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource],
                    "operations": ["CREATE", "UPDATE"],
                }],
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": ns.name } },
                "sideEffects": "None",
                "timeoutSeconds": 30,
                "admissionReviewVersions": ["v1"],
            }],
        });
        let configuration = serde_json::from_value(configuration).expect("a webhook configuration");
        let configurations: Api<ValidatingWebhookConfiguration> = Api::all(ns.client.clone());
        configurations.create(&PostParams::default(), &configuration).await.expect("it can be made");
        Self { name, configurations, asked, task }
    }

    /// How many requests have arrived; they are still being thought about.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub async fn remove(self) {
        self.configurations.delete(&self.name, &DeleteParams::default()).await.expect("it is there");
        self.task.abort();
    }
}

fn acceptor(cluster: &Cluster) -> TlsAcceptor {
    let (certificate, key) = cluster.server_certificate();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("our own certificate");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("our own key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("they belong together");
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(listener: std::net::TcpListener, tls: TlsAcceptor, verdict: Verdict, asked: Arc<AtomicUsize>) {
    let listener = TcpListener::from_std(listener).expect("a bound listener");
    // Aborted with this task.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(talk(stream, tls.clone(), verdict.clone(), Arc::clone(&asked)));
        while connections.try_join_next().is_some() {}
    }
}

async fn talk(stream: TcpStream, tls: TlsAcceptor, verdict: Verdict, asked: Arc<AtomicUsize>) {
    // Whoever connects and goes away again is not the API server with a question.
    let Ok(stream) = tls.accept(stream).await else { return };
    let service = service_fn(|request| answer(request, &verdict, &asked));
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    verdict: &Verdict,
    asked: &AtomicUsize,
) -> Result<Response<Full<Bytes>>> {
    let review = request.into_body().collect().await?.to_bytes();
    asked.fetch_add(1, Ordering::SeqCst);
    tokio::time::sleep(verdict.after).await;
    let answer = verdict.on(&serde_json::from_slice(&review)?).to_string();
    Ok(Response::builder().header("content-type", "application/json").body(Full::new(Bytes::from(answer)))?)
}
