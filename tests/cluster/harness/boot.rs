//! Booting, breaking and ending a cluster.

use crate::support::cluster::{Cluster, Component, Options};
use crate::support::objects::{Namespace, SOON};
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ListParams;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Set for this test binary when it runs itself as the owner of a cluster that is about to die.
const OWNER: &str = "UPTAKE_TEST_CLUSTER_OWNER";

/// Command lines of running processes that name the folder; a zombie has none.
fn processes_of(folder: &Path) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&*folder.to_string_lossy())).collect()
}

async fn wait_nothing_left(folder: &Path) {
    eventually(Duration::from_secs(10), || async {
        let left = processes_of(folder);
        if left.is_empty() && !folder.exists() {
            Ok(())
        } else {
            Err(format!("{left:?}, {}", folder.exists()))
        }
    })
    .await;
}

#[tokio::test]
async fn after_a_drop_nothing_is_left() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let folder = cluster.folder().to_owned();
    // etcd, API server, controller manager, scheduler, kwok and the supervisor.
    assert!(processes_of(&folder).len() >= 6, "{:?}", processes_of(&folder));
    drop(cluster);
    // At once: a drop waits for the end.
    assert_eq!(processes_of(&folder), [""; 0]);
    assert!(!folder.exists());
}

/// Not a test by itself: the process that the next one kills.
#[tokio::test]
async fn owner_of_a_cluster() {
    if std::env::var_os(OWNER).is_none() {
        return;
    }
    let cluster = Cluster::start(Options::default()).await.unwrap();
    println!("folder={}", cluster.folder().display());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn kill_9_of_the_owner_leaves_nothing() {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "harness::boot::owner_of_a_cluster", "--nocapture"])
        .env(OWNER, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = owner.stdout.take().unwrap();
    let folder: PathBuf = tokio::task::spawn_blocking(|| {
        use std::io::BufRead;
        let mut lines = std::io::BufReader::new(output).lines().map_while(Result::ok);
        lines.find_map(|line| Some(PathBuf::from(line.split_once("folder=")?.1))).unwrap()
    })
    .await
    .unwrap();
    assert!(processes_of(&folder).len() >= 6);
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_nothing_left(&folder).await;
}

#[tokio::test]
async fn the_store_and_the_api_server_can_be_broken_and_mended() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let ns = Namespace::create(&cluster, "broken").await;
    let secrets: Api<Secret> = ns.api();
    let version =
        |secret: &Secret| secret.metadata.resource_version.as_ref().unwrap().parse::<u64>().unwrap();

    let first = ns.set_secret("db", &[("password", "one")]).await;
    let backup = cluster.back_up().await.unwrap();
    let second = ns.set_secret("db", &[("password", "two")]).await;
    assert!(version(&second) > version(&first));

    // Compacted history is gone once the API server's own cache of it is, too.
    cluster.compact_etcd().await.unwrap();
    cluster.stop_api_server();
    assert!(secrets.get("db").await.is_err());
    cluster.start_api_server().await.unwrap();
    let exact =
        ListParams::default().matching(kube::api::VersionMatch::Exact).at(&version(&first).to_string());
    let gone = secrets.list(&exact).await.unwrap_err();
    assert!(matches!(&gone, kube::Error::Api(status) if status.code == 410), "{gone}");
    assert_eq!(version(&secrets.get("db").await.unwrap()), version(&second));

    cluster.restore(&backup).await.unwrap();
    assert_eq!(version(&secrets.get("db").await.unwrap()), version(&first));
    let web = Workload::deployment("web").consumes(Via::env("db", "password"));
    ns.run(&web).await;
    assert_eq!(ns.values_in_pods(&web, "db/password").await, ["one"]);

    // Without its store the API server answers late or with an error.
    cluster.kill(Component::Etcd);
    let answer = tokio::time::timeout(Duration::from_secs(1), secrets.get("db")).await;
    assert!(!matches!(answer, Ok(Ok(_))), "{answer:?}");
    cluster.start_etcd().await.unwrap();
    eventually(SOON, || secrets.get("db")).await;
}
