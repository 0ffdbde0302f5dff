//! The client: the cluster is found as kubectl finds it.

use std::{path::PathBuf, time::Duration};

use http::{HeaderName, HeaderValue};
use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::{Meter, fault};

/// What was said about where the cluster is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// `--kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`.
    pub context: Option<String>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("failed to {step}: {cause}")]
pub struct ConnectError {
    step: &'static str,
    cause: String,
}

impl ConnectError {
    fn new(step: &'static str) -> impl FnOnce(&(dyn std::error::Error + 'static)) -> Self {
        move |error| Self { step, cause: fault::chain(error) }
    }
}

/// A connection that isn't there after this long won't come. Well below the calls' own limits.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Makes the client. Nothing is sent yet.
///
/// # Errors
/// The kubeconfig can't be read or doesn't name a cluster; there is neither a kubeconfig nor a service account.
pub async fn connect(connection: &Connection, meter: &Meter) -> Result<Connected, ConnectError> {
    let mut config = configure(connection).await?;
    let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    // A retried write is a write that the engine doesn't know of, and kube retries any verb.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_LIMIT);
    let agent = HeaderValue::from_static(concat!("uptake/", env!("CARGO_PKG_VERSION")));
    config.headers.push((HeaderName::from_static("user-agent"), agent));
    let builder = ClientBuilder::try_from(config)
        .map_err(|e| ConnectError::new("make the client of the cluster")(&e))?;
    Ok(Connected { client: builder.with_layer(meter).build(), server })
}

/// A client, and whom it asks.
pub struct Connected {
    /// Sends requests.
    pub client: Client,
    /// The API server's address.
    pub server: String,
}

async fn configure(connection: &Connection) -> Result<Config, ConnectError> {
    let options = KubeConfigOptions { context: connection.context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = &connection.kubeconfig {
        let named = "read the file of --kubeconfig";
        let kubeconfig = Kubeconfig::read_from(path).map_err(|e| ConnectError::new(named)(&e))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        return config.map_err(|e| ConnectError::new("use the file of --kubeconfig")(&e));
    }
    if connection.context.is_some() {
        let config = Config::from_kubeconfig(&options).await;
        return config.map_err(|e| ConnectError::new("use the kubeconfig for --context")(&e));
    }
    Config::infer()
        .await
        .map_err(|e| ConnectError::new("find a cluster (kubeconfig, then service account)")(&e))
}
