//! The start: everything that can be wrong from the beginning is found here, and said in one line.

use std::{
    hash::{BuildHasher as _, RandomState},
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::{Notify, mpsc},
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::Drive;
use crate::{
    cluster::{
        self, Api, ConnectError, Meter, Performer, ServerClock,
        digest_key::{self, DigestKeyError},
        own_namespace::{self, OwnNamespaceError},
    },
    config::{Config, Found},
    engine::{Answer, Call, Engine, Fault, Input},
    facts::Namespace,
    leader::{Lease, Lost, Term, Timing},
    record::{Metrics, Watch},
    server::{self, Pages},
    watch::{self, WatchConfig},
};

/// What the watches may be ahead of the engine. More would only be memory: it waits for none of them.
const AHEAD: usize = 1024;
/// How long giving the leadership back may take.
const GIVE_BACK: Duration = Duration::from_secs(5);
/// How long the HTTP server may take to end.
const HTTP_FINISH: Duration = Duration::from_secs(1);

/// Why the operator doesn't start, or doesn't go on.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port is taken, or the address isn't this machine's.
    #[error("failed to listen on --http-addr {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        cause: std::io::Error,
    },
    /// Signals can't be caught.
    #[error("failed to catch signals: {0}")]
    Signals(std::io::Error),
    /// Two metrics have one name.
    #[error("failed to make the metrics: {0}")]
    Metrics(prometheus::Error),
    /// There is no client.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The own namespace isn't known.
    #[error(transparent)]
    OwnNamespace(#[from] OwnNamespaceError),
    /// There is no digest key.
    #[error(transparent)]
    DigestKey(#[from] DigestKeyError),
    /// The ledger can't be read.
    #[error("failed to list the ledger's Secrets in namespace {0:?}: {1}")]
    Ledger(Namespace, String),
    /// Somebody else may lead.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// Runs the operator until SIGTERM or SIGINT.
///
/// # Errors
/// It can't start. Once it runs, it tries on whatever happens, unless it led and lost that.
pub async fn run(config: Config) -> Result<(), StartError> {
    let stop = stop_on_signal()?;
    let listener = listen(config.http_addr).await?;
    let metrics = Arc::new(Metrics::new().map_err(StartError::Metrics)?);
    let clock = ServerClock::new();
    let meter = Meter { requests: metrics.requests(), clock: clock.clone() };
    let api = Api::new(cluster::connect(&config.connection, &meter).await?.client);
    let (found, performer) = tokio::select! {
        prepared = prepare(&api, &config) => prepared?,
        () = stop.cancelled() => return Ok(()),
    };
    announce(&config, &found);

    let (inputs, from) = mpsc::channel(AHEAD);
    let engine = config.engine(&found);
    let engine = if config.leader_elect { Engine::standby(engine) } else { Engine::new(engine) };
    let (mut lease, term) = if config.leader_elect {
        let (lease, term) = Leadership::stand(api.clone(), &found);
        (Some(lease), term)
    } else {
        (None, Term::endless())
    };
    let performer = Arc::new(performer.in_term(term.clone()));
    tokio::spawn(lead(term, inputs.clone(), Arc::clone(&metrics)));
    let relist = Arc::new(Notify::new());
    let ask = Arc::new(Notify::new());
    let (drive, published) = Drive::new(
        engine,
        clock,
        performer,
        Arc::clone(&metrics),
        from,
        Arc::clone(&relist),
        Arc::clone(&ask),
    );
    let pages = Pages { metrics, published, ask, required: required(&config) };
    let server = tokio::spawn(server::run(listener, pages, stop.clone().cancelled_owned()));
    let watches = tokio::spawn(keep_watches(api, config.watch(&found), inputs, relist));
    let written = tokio::select! {
        written = drive.run(stop.clone()) => written,
        lost = lost(lease.as_mut()) => return Err(lost.into()),
    };
    if let Some(lease) = lease {
        lease.end(written).await;
    }

    stop.cancel();
    watches.abort();
    // A scrape that never ends must not keep the process.
    if timeout(HTTP_FINISH, server).await.is_err() {
        tracing::debug!("HTTP connections are cut");
    }
    Ok(())
}

/// The task that keeps the Lease.
struct Leadership {
    task: JoinHandle<Result<(), Lost>>,
    release: CancellationToken,
}

impl Leadership {
    fn stand(api: Api, found: &Found) -> (Self, Term) {
        // A container that was started again has its pod's name, and is another process.
        let me = format!("{}_{:016x}", found.instance, found.seed);
        let (lease, term) = Lease::new(api, found.own_namespace.to_string(), me, Timing::default());
        let release = CancellationToken::new();
        (Self { task: tokio::spawn(lease.run(release.clone())), release }, term)
    }

    /// Gives the Lease back, if all writes are `written`: else it runs out, for one may still be on its way.
    async fn end(self, written: bool) {
        if !written {
            self.task.abort();
            return;
        }
        self.release.cancel();
        if timeout(GIVE_BACK, self.task).await.is_err() {
            tracing::debug!("The Lease couldn't be given back: it runs out");
        }
    }
}

/// Why the process mustn't go on; never, where nobody is elected.
async fn lost(lease: Option<&mut Leadership>) -> Lost {
    match lease {
        Some(lease) => match (&mut lease.task).await {
            Ok(Err(lost)) => lost,
            Ok(Ok(())) | Err(_) => Lost::Unkept,
        },
        None => std::future::pending().await,
    }
}

/// Tells the engine and the metrics that this process leads. The engine takes in first what was delivered before.
async fn lead(term: Term, inputs: mpsc::Sender<Input>, metrics: Arc<Metrics>) {
    term.begun().await;
    metrics.lead();
    // Without an election the engine leads already, and without an engine nobody needs to.
    let _ = inputs.send(Input::Lead).await;
}

/// Watches, and starts all watches over when the engine asks for it.
async fn keep_watches(api: Api, config: WatchConfig, inputs: mpsc::Sender<Input>, relist: Arc<Notify>) {
    loop {
        let mut watches = JoinSet::new();
        watch::start(&api, &config, &inputs, &mut watches);
        relist.notified().await;
        watches.shutdown().await;
    }
}

fn stop_on_signal() -> Result<CancellationToken, StartError> {
    let stop = CancellationToken::new();
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let mut signal = signal(kind).map_err(StartError::Signals)?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signal.recv().await;
            stop.cancel();
        });
    }
    Ok(stop)
}

/// `[::]` takes IPv4 too, but there are machines without IPv6.
async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    let cause = match TcpListener::bind(address).await {
        Ok(listener) => return Ok(listener),
        Err(cause) => cause,
    };
    let any = address.is_ipv6() && address.ip().is_unspecified();
    if any && cause.kind() != std::io::ErrorKind::AddrInUse {
        let plain = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
        if let Ok(listener) = TcpListener::bind(plain).await {
            return Ok(listener);
        }
    }
    Err(StartError::Listen { address, cause })
}

/// What needs the cluster before anything can run.
async fn prepare(api: &Api, config: &Config) -> Result<(Found, Performer), StartError> {
    let found = find(api, config).await?;
    let performer = Performer::new(api.clone(), config.performer(&found));
    check_ledger(&performer, &found).await?;
    Ok((found, performer))
}

/// Asks the cluster what only it knows.
async fn find(api: &Api, config: &Config) -> Result<Found, StartError> {
    let own_namespace = own_namespace::name(config.own_namespace.as_ref())?;
    let own_namespace_uid = own_namespace::uid(api, &own_namespace).await?;
    let digest_key = digest_key::get_or_create(api, &own_namespace).await?;
    let instance = ["POD_NAME", "HOSTNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    Ok(Found {
        own_namespace,
        own_namespace_uid,
        digest_key,
        instance: instance.unwrap_or_else(|| "uptake".to_owned()),
        seed: RandomState::new().hash_one(std::process::id()),
    })
}

/// Without its ledger it could never do anything. Other rights are probed by the watches, which recover.
async fn check_ledger(performer: &Performer, found: &Found) -> Result<(), StartError> {
    match performer.perform(Call::ListLedger).await {
        Answer::Ledger(Err(fault @ (Fault::Forbidden(_) | Fault::Refused(_)))) => {
            Err(StartError::Ledger(found.own_namespace.clone(), cluster::words(&fault)))
        }
        _ => Ok(()),
    }
}

fn required(config: &Config) -> Vec<Watch> {
    let kinds = config.kinds().into_iter().map(Watch::Workloads);
    std::iter::once(Watch::Secrets).chain(kinds).collect()
}

fn announce(config: &Config, found: &Found) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        own_namespace = &*found.own_namespace,
        kinds = ?config.kinds().iter().map(crate::facts::Kind::as_str).collect::<Vec<_>>(),
        namespaces = ?config.namespaces,
        ignore_namespaces = ?config.ignore_namespaces,
        roll_volumes = config.roll_volumes,
        rolling = ?config.rolling,
        leader_elect = config.leader_elect,
        http_addr = %config.http_addr,
        "Started"
    );
}
