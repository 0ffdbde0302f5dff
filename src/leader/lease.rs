//! Reads and writes the Lease.

use std::time::Duration;

use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{Candidacy, Claim, Observed, Step, Term, Timing, candidacy::Why};
use crate::{
    cluster::{self, Api, path},
    engine::Fault,
};

/// The Lease's name.
pub const NAME: &str = "uptake";

/// Why the process has to end.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The claim ran out.
    #[error("the leadership is lost: Lease {0}/{NAME} wasn't renewed in time")]
    Expired(String),
    /// Somebody else leads.
    #[error("the leadership is lost: Lease {0}/{NAME} is held by somebody else")]
    Taken(String),
    /// The Lease can't be used, and waiting won't help.
    #[error("failed to use Lease {0}/{NAME} for --leader-elect: {1}")]
    Unusable(String, String),
    /// Nobody keeps the claim any more.
    #[error("the leadership is lost: the task that renews the Lease has ended")]
    Unkept,
}

/// The Lease, and this process's claim on it.
pub struct Lease {
    api: Api,
    namespace: String,
    candidacy: Candidacy,
    timing: Timing,
    /// As it was last read or written; what others added to it is kept.
    object: Value,
    claims: watch::Sender<Option<Claim>>,
    /// Whether it was ever read.
    read: bool,
    /// Whether it was ever written.
    written: bool,
    complained: bool,
}

impl Lease {
    /// A candidate under a name that nobody else has, and the term of its leadership.
    #[must_use]
    pub fn new(api: Api, namespace: String, me: String, timing: Timing) -> (Self, Term) {
        let (claims, term) = watch::channel(None);
        let candidacy = Candidacy::new(me, timing, Instant::now());
        let object = Value::Null;
        let lease = Self {
            api,
            namespace,
            candidacy,
            timing,
            object,
            claims,
            read: false,
            written: false,
            complained: false,
        };
        (lease, Term::of(term))
    }

    /// Becomes leader when it can, and stays it until `release`; then the Lease is given back.
    ///
    /// # Errors
    /// The leadership is lost: the process must end.
    pub async fn run(mut self, release: CancellationToken) -> Result<(), Lost> {
        let ended = tokio::select! {
            lost = self.keep() => Err(lost),
            () = release.cancelled() => Ok(()),
        };
        self.claims.send_replace(None);
        if ended.is_ok() {
            self.give_back().await;
        }
        ended
    }

    async fn keep(&mut self) -> Lost {
        loop {
            let now = Instant::now();
            let step = self.candidacy.step(now);
            let writes = !matches!(step, Step::Read);
            let result = match step {
                Step::Read => self.read().await,
                Step::Create => self.write(Method::POST, true).await,
                Step::Take => self.write(Method::PUT, true).await,
                Step::Renew => self.write(Method::PUT, false).await,
                Step::Wait(until) => {
                    sleep_until(until).await;
                    continue;
                }
                Step::End(Why::Expired) => return Lost::Expired(self.namespace.clone()),
                Step::End(Why::Taken) => return Lost::Taken(self.namespace.clone()),
            };
            match result {
                Ok(()) => {
                    self.complained = false;
                    *self.worked(writes) = true;
                }
                Err(Fault::Conflict | Fault::NotFound) => self.candidacy.conflicted(),
                Err(fault @ (Fault::Forbidden(_) | Fault::Refused(_))) if !*self.worked(writes) => {
                    return Lost::Unusable(self.namespace.clone(), cluster::words(&fault));
                }
                Err(fault) => self.failed(&fault),
            }
        }
    }

    /// Whether it could be read, or written, before: then a refusal may be over soon.
    const fn worked(&mut self, writes: bool) -> &mut bool {
        if writes { &mut self.written } else { &mut self.read }
    }

    fn failed(&mut self, fault: &Fault) {
        self.candidacy.failed(Instant::now());
        if !self.complained {
            self.complained = true;
            tracing::warn!(cause = cluster::words(fault), "Lease {NAME} can't be read or written; tried on");
        }
    }

    fn path(&self) -> String {
        let group = path::group("coordination.k8s.io", "v1");
        path::custom(&group, Some(&self.namespace), "leases")
    }

    async fn send(&self, request: Request<Body>, limit: Duration) -> Result<Value, Fault> {
        self.api.json(request, limit).await
    }

    async fn read(&mut self) -> Result<(), Fault> {
        let request = cluster::get(&format!("{}/{NAME}", self.path()));
        let read = self.send(request, self.candidacy.patience(Instant::now())).await;
        self.object = match read {
            Err(Fault::NotFound) => Value::Null,
            object => object?,
        };
        let seen = (!self.object.is_null()).then(|| observed(&self.object));
        self.candidacy.saw(seen, Instant::now());
        Ok(())
    }

    /// Writes the own name into the Lease; `new`: it wasn't there before.
    async fn write(&mut self, method: Method, new: bool) -> Result<(), Fault> {
        let manifest = self.manifest(new);
        let path = if method == Method::POST { self.path() } else { format!("{}/{NAME}", self.path()) };
        // The claim counts from before the request, however long it takes.
        let sent = Instant::now();
        let request = cluster::send(method, &path, &manifest);
        self.object = self.send(request, self.candidacy.patience(sent)).await?;
        let first = self.candidacy.expiry().is_none();
        self.candidacy.wrote(observed(&self.object), sent);
        self.claims.send_replace(self.candidacy.expiry().map(|expiry| Claim { expiry }));
        if first {
            tracing::info!(holder = self.candidacy.me(), "This process leads");
        }
        Ok(())
    }

    fn manifest(&self, new: bool) -> Value {
        let now = micro_time();
        let mut lease = if self.object.is_null() {
            json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {
                    "name": NAME,
                    "namespace": self.namespace,
                    "labels": {"app.kubernetes.io/managed-by": "uptake"},
                },
                "spec": {"leaseTransitions": -1},
            })
        } else {
            self.object.clone()
        };
        let transitions = observed(&lease).transitions;
        let spec = &mut lease["spec"];
        spec["holderIdentity"] = self.candidacy.me().into();
        spec["leaseDurationSeconds"] = self.timing.duration.as_secs().into();
        spec["renewTime"] = now.clone().into();
        if new {
            spec["acquireTime"] = now.into();
            spec["leaseTransitions"] = (transitions + 1).into();
        }
        lease
    }

    /// Clears the holder, so that the next one needn't wait. Where that fails, it waits.
    async fn give_back(&mut self) {
        let Some(expiry) = self.candidacy.expiry() else { return };
        let until = expiry.min(Instant::now() + self.timing.call);
        // The renewal that the end cut short may have been done: then the version isn't the known one.
        for _ in 0..2 {
            if Instant::now() >= until {
                return;
            }
            let mut lease = self.object.clone();
            lease["spec"]["holderIdentity"] = "".into();
            lease["spec"]["renewTime"] = micro_time().into();
            let request = cluster::send(Method::PUT, &format!("{}/{NAME}", self.path()), &lease);
            match self.send(request, until.saturating_duration_since(Instant::now())).await {
                Ok(_) => return tracing::info!("The leadership is given back"),
                Err(Fault::Conflict) => {}
                Err(_) => return,
            }
            if self.read().await.is_err()
                || observed(&self.object).holder.as_deref() != Some(self.candidacy.me())
            {
                return;
            }
        }
    }
}

fn observed(lease: &Value) -> Observed {
    let spec = &lease["spec"];
    let text = |field: &str| spec[field].as_str().map(str::to_owned);
    Observed {
        holder: text("holderIdentity").filter(|holder| !holder.is_empty()),
        duration: spec["leaseDurationSeconds"].as_u64().map(Duration::from_secs),
        times: [text("acquireTime"), text("renewTime")],
        transitions: spec["leaseTransitions"].as_i64().unwrap_or_default(),
    }
}

fn micro_time() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests;
