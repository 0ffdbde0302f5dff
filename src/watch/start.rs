//! Starts the loops of all kinds.

use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    beside::Besides,
    follow::{Place, Target, follow},
    merge::Merge,
    namespace::Namespaces,
    outlet::{Outlet, Said},
    read::Read,
    secret::Secrets,
    workload::Workloads,
};
use crate::{
    catalog::ReadOptions,
    cluster::{Api, path},
    engine::{Input, Watched},
    facts::{KNATIVE, Kind, Namespace},
    ledger::DigestKey,
};

/// Left out at the server: Helm's releases are many and large, the ledger is Uptake's own.
pub(crate) const SECRET_FIELDS: &str = "type!=helm.sh/release.v1,type!=uptake.dev/ledger";
/// The group of the Secrets Store CSI driver's kinds.
pub(crate) const SECRETS_STORE: &str = "secrets-store.csi.x-k8s.io";
/// Secrets a page: 500 of the largest would be 750 MB.
const SECRET_PAGE: u16 = 50;
const PAGE: u16 = 500;
/// What a kind's loops may be ahead of the merge.
const AHEAD: usize = 64;

/// What is watched.
#[derive(Clone, Debug)]
pub struct WatchConfig {
    /// The watched namespaces; none means all.
    pub namespaces: Vec<Namespace>,
    /// The namespaces that are left alone.
    pub ignore_namespaces: Vec<Namespace>,
    /// Uptake's own.
    pub own_namespace: Namespace,
    /// The kinds of workload.
    pub kinds: Vec<Kind>,
    /// Under which Secret values are hashed.
    pub digest_key: DigestKey,
    /// How workloads are read.
    pub read: ReadOptions,
    /// Any number; another one a process.
    pub seed: u64,
}

/// Starts all loops as tasks. They end when the receiver of `inputs` is dropped.
pub fn start(api: &Api, config: &WatchConfig, inputs: &mpsc::Sender<Input>, tasks: &mut JoinSet<()>) {
    let mut starter = Starter { api, config, inputs, tasks, started: 0 };
    starter.secrets();
    for kind in &config.kinds {
        starter.workloads(kind);
    }
    starter.namespaces();
    starter.service_accounts();
    starter.provider_classes();
}

struct Starter<'a> {
    api: &'a Api,
    config: &'a WatchConfig,
    inputs: &'a mpsc::Sender<Input>,
    tasks: &'a mut JoinSet<()>,
    started: u64,
}

impl Starter<'_> {
    fn secrets(&mut self) {
        let targets = self.targets("Secret", SECRET_PAGE, Some(SECRET_FIELDS), |namespace| {
            Place::Path(path::core(namespace, "secrets"))
        });
        let WatchConfig { digest_key: key, ignore_namespaces: ignored, .. } = self.config.clone();
        self.kind(targets, || Secrets { key: key.clone(), ignored: ignored.clone() }, Input::Secrets);
    }

    fn workloads(&mut self, kind: &Kind) {
        let targets = self.targets(kind.as_str(), PAGE, None, |namespace| {
            Place::Workloads(kind.clone(), namespace.map(Namespace::from))
        });
        let WatchConfig { read: options, ignore_namespaces: ignored, .. } = self.config.clone();
        let knative = self.config.kinds.iter().any(|kind| kind.group() == KNATIVE);
        let reader = || Workloads { kind: kind.clone(), ignored: ignored.clone(), options, knative };
        let of = kind.clone();
        self.kind(targets, reader, move |said| Input::Workloads(of.clone(), said));
    }

    /// Where only some namespaces are watched, the right to list Namespaces may be missing, or there for some by
    /// name: those are watched one by one, and one that may not be read has no policy.
    fn namespaces(&mut self) {
        let WatchConfig { namespaces, own_namespace: own, ignore_namespaces: ignored, .. } =
            self.config.clone();
        let mut targets =
            self.targets("Namespace", PAGE, None, |_| Place::Path(path::core(None, "namespaces")));
        if let Some(template) = targets.first().cloned().filter(|_| !namespaces.is_empty()) {
            let mut names = namespaces;
            names.extend((!names.contains(&own)).then(|| own.clone()));
            let target = |(name, seed): (&Namespace, u64)| Target {
                watch_path: Some(path::watched_namespace(name)),
                fields: Some(format!("metadata.name={name}")),
                optional: true,
                seed: template.seed.wrapping_add(seed),
                ..template.clone()
            };
            targets = names.iter().zip(0..).map(target).collect();
        }
        self.kind(targets, || Namespaces { ignored: ignored.clone(), own: own.clone() }, Input::Namespaces);
    }

    fn service_accounts(&mut self) {
        let targets = self.targets("ServiceAccount", PAGE, None, |namespace| {
            Place::Path(path::core(namespace, "serviceaccounts"))
        });
        let ignored = self.config.ignore_namespaces.clone();
        self.kind(targets, || Besides::new(ignored.clone()), Input::ServiceAccounts);
    }

    /// Only clusters with the Secrets Store CSI driver have any.
    fn provider_classes(&mut self) {
        let targets = self.of_driver("SecretProviderClass", "secretproviderclasses");
        let ignored = self.config.ignore_namespaces.clone();
        self.kind(targets, || Besides::new(ignored.clone()), Input::ProviderClasses);
        let targets = self.of_driver("SecretProviderClassPodStatus", "secretproviderclasspodstatuses");
        let ignored = self.config.ignore_namespaces.clone();
        self.kind(targets, || Besides::new(ignored.clone()), Input::Mounts);
    }

    fn of_driver(&mut self, kind: &str, plural: &str) -> Vec<Target> {
        let group = path::group(SECRETS_STORE, "v1");
        let mut targets =
            self.targets(kind, PAGE, None, |namespace| Place::Path(path::custom(&group, namespace, plural)));
        for target in &mut targets {
            target.may_be_absent = Some(group.clone());
        }
        targets
    }

    /// A target a watched namespace, or one for all.
    fn targets(
        &mut self,
        kind: &str,
        page: u16,
        fields: Option<&str>,
        place: impl Fn(Option<&str>) -> Place,
    ) -> Vec<Target> {
        let mut target = |namespace: Option<&Namespace>| {
            self.started += 1;
            Target {
                kind: kind.to_owned(),
                place: place(namespace.map(|namespace| &**namespace)),
                watch_path: None,
                fields: fields.map(ToOwned::to_owned),
                page,
                optional: false,
                may_be_absent: None,
                seed: self.config.seed.wrapping_add(self.started << 20),
            }
        };
        match &*self.config.namespaces {
            [] => vec![target(None)],
            namespaces => namespaces.iter().map(|namespace| target(Some(namespace))).collect(),
        }
    }

    fn kind<R: Read>(
        &mut self,
        targets: Vec<Target>,
        reader: impl Fn() -> R,
        input: impl Fn(Watched<R::Item, R::Id>) -> Input + Send + 'static,
    ) {
        let (to, from) = mpsc::channel(AHEAD);
        let mut rounds = Vec::new();
        for (part, target) in targets.into_iter().enumerate() {
            let (round, asked) = watch::channel(0);
            rounds.push(round);
            self.tasks.spawn(follow(
                self.api.clone(),
                target,
                reader(),
                Outlet::new(part, asked, to.clone()),
            ));
        }
        self.tasks.spawn(merge(from, rounds, input, self.inputs.clone()));
    }
}

/// Joins a kind's parts and passes on what they say together.
async fn merge<T, Id>(
    mut from: mpsc::Receiver<Said<T, Id>>,
    rounds: Vec<watch::Sender<u64>>,
    input: impl Fn(Watched<T, Id>) -> Input,
    inputs: mpsc::Sender<Input>,
) {
    let mut merge = Merge::new(rounds.len());
    while let Some(Said { part, round, words }) = from.recv().await {
        let said = merge.take(part, round, words);
        for (part, asked) in rounds.iter().enumerate() {
            asked.send_if_modified(|asked| std::mem::replace(asked, merge.round(part)) != merge.round(part));
        }
        let Some(said) = said else { continue };
        if inputs.send(input(said)).await.is_err() {
            return;
        }
    }
}
