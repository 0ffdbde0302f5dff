//! The processes of a control plane and their arguments.

use super::Options;
use super::credentials::{self, Credentials};
use crate::support::Result;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
    Kwok,
}

impl Component {
    /// Also the program's name and its log's.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
        }
    }
}

/// Ports of one boot. They are free when chosen; a boot that finds one taken meanwhile starts again with others.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    pub etcd: u16,
    pub etcd_peer: u16,
    pub api_server: u16,
}

impl Ports {
    pub fn free() -> Result<Self> {
        let [etcd, etcd_peer, api_server] = free_ports()?;
        Ok(Self { etcd, etcd_peer, api_server })
    }
}

/// Held together until all are known, so that they differ.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut listeners = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

/// Everything that arguments are made of.
pub struct Setting<'a> {
    pub programs: &'a Path,
    pub folder: &'a Path,
    pub ports: Ports,
    pub credentials: &'a Credentials,
    pub options: &'a Options,
}

impl Setting<'_> {
    pub fn command(&self, component: Component) -> Result<Command> {
        let mut command = Command::new(self.programs.join(component.name()));
        command.current_dir(self.folder).args(match component {
            Component::Etcd => self.etcd(),
            Component::ApiServer => self.api_server(),
            Component::ControllerManager => self.controller_manager()?,
            Component::Scheduler => self.scheduler()?,
            Component::Kwok => self.kwok()?,
        });
        Ok(command)
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn kubeconfig(&self, part: &str) -> Result<String> {
        let server = format!("https://127.0.0.1:{}", self.ports.api_server);
        let path = self.credentials.write_kubeconfig(&credentials::part(part), &server)?;
        Ok(path.display().to_string())
    }

    fn etcd(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer);
        vec![
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--unsafe-no-fsync".into(),
        ]
    }

    fn api_server(&self) -> Vec<String> {
        let file = |name| self.credentials.file(name);
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.ports.api_server),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            format!("--service-account-key-file={}", file("sa.pub")),
            format!("--service-account-signing-key-file={}", file("sa.key")),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            "--service-cluster-ip-range=10.0.0.0/16".into(),
            format!("--token-auth-file={}", file("tokens.csv")),
            "--authorization-mode=Node,RBAC".into(),
            format!("--audit-policy-file={}", file("audit-policy.yaml")),
            format!("--audit-log-path={}", self.path("audit.log")),
            // A line is in the log before its request is answered.
            "--audit-log-mode=blocking".into(),
            // The test runs no network: the API server finds webhooks by URL and needs no endpoints of its own.
            "--endpoint-reconciler-type=none".into(),
        ];
        if !self.options.agents {
            // Nobody makes ServiceAccounts.
            arguments.push("--disable-admission-plugins=ServiceAccount".into());
        }
        arguments.extend(self.options.api_server_arguments.iter().cloned());
        arguments
    }

    fn controller_manager(&self) -> Result<Vec<String>> {
        let file = |name| self.credentials.file(name);
        Ok(vec![
            format!("--kubeconfig={}", self.kubeconfig("kube-controller-manager")?),
            format!("--service-account-private-key-file={}", file("sa.key")),
            format!("--root-ca-file={}", file("ca.crt")),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
            // The default client limit (20 a second) would make 300 rollouts wait for this program.
            "--kube-api-qps=1000".into(),
            "--kube-api-burst=2000".into(),
            "--concurrent-deployment-syncs=20".into(),
            "--concurrent-replicaset-syncs=20".into(),
            "--concurrent-namespace-syncs=20".into(),
            "--concurrent-serviceaccount-token-syncs=20".into(),
            // A busy machine must not look like a lost node.
            "--node-monitor-grace-period=10m".into(),
        ])
    }

    fn scheduler(&self) -> Result<Vec<String>> {
        let config = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
             clientConnection: {{ kubeconfig: {}, qps: 1000, burst: 2000 }}\n\
             leaderElection: {{ leaderElect: false }}\n",
            self.kubeconfig("kube-scheduler")?
        );
        let path = self.path("scheduler.yaml");
        std::fs::write(&path, config)?;
        Ok(vec![format!("--config={path}"), "--secure-port=0".into()])
    }

    fn kwok(&self) -> Result<Vec<String>> {
        Ok(vec![
            format!("--kubeconfig={}", self.kubeconfig("kwok")?),
            format!("--config={}", self.credentials.file("kwok.yaml")),
            "--manage-all-nodes=true".into(),
            "--node-lease-duration-seconds=40".into(),
        ])
    }
}
