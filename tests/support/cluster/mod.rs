//! A control plane of its own: booted in seconds, gone with its owner.

pub mod audit;
mod binaries;
mod components;
pub mod credentials;
pub mod kubelet;
mod rights;
pub mod storage;
mod supervisor;

pub use binaries::tool;
pub use components::{Component, free_ports};
pub use credentials::User;

use crate::support::wait::try_eventually;
use crate::support::{Error, Result};
use components::{Ports, Setting};
use credentials::Credentials;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kubelet::Kubelet;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use supervisor::Supervisor;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::OnceCell;

/// Long enough for a machine that compiles meanwhile; a boot usually takes a tenth of it.
const BOOT: Duration = Duration::from_secs(90);

/// Another process may take a port between its choice and its use.
const BOOT_TRIES: u32 = 3;

/// How long a request of a test's client may take until its answer begins.
const REQUEST: Duration = Duration::from_secs(10);

/// What differs between clusters.
#[derive(Clone, Debug)]
pub struct Options {
    pub nodes: usize,
    /// Whether anything acts on objects: controllers, scheduler, nodes. Without, pods are made by hand.
    pub agents: bool,
    /// From a pod's containers running to its being ready, unless its template says otherwise.
    pub ready_after: Duration,
    /// Added to the API server's own, such as `--feature-gates=…`.
    pub api_server_arguments: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 2,
            agents: true,
            ready_after: Duration::from_millis(50),
            api_server_arguments: Vec::new(),
        }
    }
}

/// A running cluster. Dropping it ends every process and removes its folder.
pub struct Cluster {
    programs: PathBuf,
    options: Options,
    ports: Ports,
    credentials: Credentials,
    components: Mutex<BTreeMap<Component, Child>>,
    kubelet: Mutex<Option<Kubelet>>,
    /// For what must outlive the runtime of a single test: the node agent, and the removal of namespaces.
    background: Option<Runtime>,
    /// What it took to be ready for a pod.
    pub booted_in: Duration,
    /// The last field: it ends what is left when all others are gone.
    supervisor: Supervisor,
}

impl Cluster {
    /// The cluster that the tests of this process share.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Cluster> = OnceCell::const_new();
        let start = || Self::start(Options::default());
        SHARED.get_or_try_init(start).await.unwrap_or_else(|error| panic!("no shared cluster: {error}"))
    }

    /// Boots a cluster and waits until it would run a pod.
    pub async fn start(options: Options) -> Result<Self> {
        let programs = tokio::task::spawn_blocking(binaries::folder).await??;
        let mut last = Error::from("not tried");
        for _ in 0..BOOT_TRIES {
            match Self::boot(&programs, options.clone()).await {
                Ok(cluster) => return Ok(cluster),
                Err(error) if error.to_string().contains("address already in use") => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    async fn boot(programs: &Path, options: Options) -> Result<Self> {
        let began = Instant::now();
        let supervisor = Supervisor::start(&binaries::run_folder(programs))?;
        let credentials = Credentials::create(&supervisor.folder().join("pki"))?;
        let background = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("kubelet")
            .enable_all()
            .build()?;
        let mut cluster = Self {
            programs: programs.to_owned(),
            options,
            ports: Ports::free()?,
            credentials,
            components: Mutex::default(),
            kubelet: Mutex::default(),
            background: Some(background),
            booted_in: Duration::ZERO,
            supervisor,
        };
        cluster.launch(Component::Etcd)?;
        cluster.wait_etcd().await?;
        cluster.launch(Component::ApiServer)?;
        cluster.wait_api_server().await?;
        if cluster.options.agents {
            cluster.launch_agents()?;
            cluster.create_nodes().await?;
            cluster.wait_agents().await?;
        }
        cluster.booted_in = began.elapsed();
        eprintln!(
            "cluster: ready in {:.1} s, folder {}",
            cluster.booted_in.as_secs_f32(),
            cluster.folder().display()
        );
        Ok(cluster)
    }

    /// Where this cluster's files are; `logs` below it holds every component's output.
    pub fn folder(&self) -> &Path {
        self.supervisor.folder()
    }

    /// `https://127.0.0.1:PORT`
    pub fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.api_server)
    }

    /// The API server's.
    pub fn port(&self) -> u16 {
        self.ports.api_server
    }

    /// The built programs, `kubectl` among them.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// `kubectl` as somebody.
    pub fn kubectl(&self, user: &User) -> Command {
        let mut command = Command::new(self.program("kubectl"));
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig(user))
            .arg("--cache-dir")
            .arg(self.folder().join("kubectl"));
        self.supervisor.adopt(&mut command);
        command
    }

    /// PEM of the CA that signed the API server's certificate.
    pub fn ca(&self) -> &str {
        self.credentials.ca()
    }

    /// PEM certificate and key for a server of the test on 127.0.0.1, such as an admission webhook.
    pub fn server_certificate(&self) -> (String, String) {
        self.credentials.server_certificate().expect("a certificate can be signed")
    }

    /// Puts a command under supervision: it ends at the latest when this cluster does.
    pub fn adopt<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        self.supervisor.adopt(command)
    }

    /// For work that must outlive the test's own runtime, or go on while the test blocks its thread.
    pub fn background(&self) -> &Handle {
        self.background.as_ref().expect("it lives as long as the cluster").handle()
    }

    /// The Secret values that a pod's containers started with, by `secret/key`; none if none started.
    pub fn values_at_start(&self, pod_uid: &str) -> Option<BTreeMap<String, String>> {
        self.kubelet.lock().ok()?.as_ref()?.values_at_start(pod_uid)
    }
}

/// Who speaks to it.
impl Cluster {
    /// The test itself. What it does is in the audit log without request bodies.
    #[allow(clippy::unused_self, reason = "who may do everything is a matter of the cluster")]
    pub fn admin(&self) -> User {
        credentials::admin()
    }

    /// Somebody new, without any right.
    pub fn user(&self) -> User {
        self.credentials.next_user()
    }

    pub fn kubeconfig(&self, user: &User) -> PathBuf {
        self.kubeconfig_at(user, &self.server())
    }

    /// For a server that stands before the API server.
    pub fn kubeconfig_at(&self, user: &User, server: &str) -> PathBuf {
        self.credentials.write_kubeconfig(user, server).expect("the cluster's folder can be written")
    }

    /// A client of the calling test's runtime: it must not be kept for another test.
    pub async fn client(&self, user: &User) -> Client {
        client(&self.kubeconfig(user)).await.expect("the kubeconfig is our own")
    }

    pub async fn admin_client(&self) -> Client {
        self.client(&self.admin()).await
    }
}

/// Its parts, for tests that stop them.
impl Cluster {
    fn setting(&self) -> Setting<'_> {
        Setting {
            programs: &self.programs,
            folder: self.supervisor.folder(),
            ports: self.ports,
            credentials: &self.credentials,
            options: &self.options,
        }
    }

    fn launch(&self, component: Component) -> Result<()> {
        let child = self.supervisor.spawn(component.name(), &mut self.setting().command(component)?)?;
        if let Some(mut earlier) = self.lock().insert(component, child) {
            end(&mut earlier);
        }
        Ok(())
    }

    /// Kills a component: no goodbye to anybody.
    pub fn kill(&self, component: Component) {
        if let Some(mut child) = self.lock().remove(&component) {
            end(&mut child);
        }
    }

    /// From now on connections to the API server are refused.
    pub fn stop_api_server(&self) {
        self.unaudited();
        self.kill(Component::ApiServer);
    }

    /// Starts it on the same port and waits until it is ready.
    pub async fn start_api_server(&self) -> Result<()> {
        self.launch(Component::ApiServer)?;
        self.wait_api_server().await
    }

    pub async fn start_etcd(&self) -> Result<()> {
        self.launch(Component::Etcd)?;
        self.wait_etcd().await
    }

    /// All that acts on objects: controllers, scheduler, nodes.
    fn launch_agents(&self) -> Result<()> {
        for component in [Component::ControllerManager, Component::Scheduler, Component::Kwok] {
            self.launch(component)?;
        }
        let kubeconfig = self.kubeconfig(&credentials::part("kubelet"));
        let kubelet = Kubelet::start(self.background(), kubeconfig, self.options.ready_after);
        *self.kubelet.lock().unwrap() = Some(kubelet);
        Ok(())
    }

    fn stop_agents(&self) {
        *self.kubelet.lock().unwrap() = None;
        for component in [Component::ControllerManager, Component::Scheduler, Component::Kwok] {
            self.kill(component);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Component, Child>> {
        self.components.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether a component ended by itself, and what it said last.
    fn obituary(&self, component: Component) -> Option<Error> {
        let status = self.lock().get_mut(&component)?.try_wait().ok()??;
        let name = component.name();
        let log = std::fs::read_to_string(self.folder().join("logs").join(format!("{name}.log")))
            .unwrap_or_default();
        let tail: Vec<_> = log.lines().rev().take(5).collect();
        let tail: Vec<_> = tail.into_iter().rev().collect();
        Some(format!("{name} ended with {status}:\n{}", tail.join("\n")).into())
    }

    /// Polls until `look` succeeds, or at once fails when the component has ended.
    async fn wait_component<F>(&self, component: Component, mut look: impl FnMut() -> F) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        let looked = try_eventually(BOOT, || {
            let ended = self.obituary(component);
            let look = ended.is_none().then(&mut look);
            async move {
                match look {
                    // Ended: waiting longer is no use, so this is the wait's answer.
                    None => Ok(ended),
                    Some(look) => look.await.map(|()| None),
                }
            }
        });
        match looked.await {
            Ok(None) => Ok(()),
            Ok(Some(ended)) => Err(ended),
            Err(failure) => Err(format!("{} is not ready: {failure}", component.name()).into()),
        }
    }

    async fn wait_etcd(&self) -> Result<()> {
        let port = self.ports.etcd;
        self.wait_component(Component::Etcd, || async move {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            Ok(())
        })
        .await
    }

    async fn wait_api_server(&self) -> Result<()> {
        let client = &self.admin_client().await;
        self.wait_component(Component::ApiServer, || async move {
            client.request_text(http::Request::get("/readyz").body(Vec::new())?).await?;
            Ok(())
        })
        .await
    }

    async fn create_nodes(&self) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.admin_client().await);
        for number in 0..self.options.nodes {
            let name = format!("node-{number}");
            let labels = json!({ "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" });
            let node = serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } }))?;
            nodes.create(&PostParams::default(), &node).await?;
        }
        Ok(())
    }

    /// Until a pod would be admitted (its ServiceAccount is there), scheduled (no taint) and run.
    async fn wait_agents(&self) -> Result<()> {
        let client = self.admin_client().await;
        let nodes: &Api<Node> = &Api::all(client.clone());
        let accounts: &Api<ServiceAccount> = &Api::default_namespaced(client);
        self.wait_component(Component::ControllerManager, || async move {
            accounts.get("default").await?;
            for node in nodes.list(&ListParams::default()).await? {
                let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
                if let Some(taint) = taints.first() {
                    return Err(format!("a node has the taint {}", taint.key).into());
                }
            }
            Ok(())
        })
        .await
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop_agents();
        self.kill(Component::ApiServer);
        self.kill(Component::Etcd);
        if let Some(runtime) = self.background.take() {
            // A drop within a test's runtime must not wait for another one.
            runtime.shutdown_background();
        }
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// A client that neither repeats requests by itself nor waits for ever.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    let timeout = tower::timeout::TimeoutLayer::new(REQUEST);
    Ok(kube::client::ClientBuilder::try_from(config)?.with_layer(&timeout).build())
}
