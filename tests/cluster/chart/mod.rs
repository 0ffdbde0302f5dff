//! The chart: what it renders, what it refuses, and its life on a cluster.

mod life;
mod manifests;
mod rendered;

use crate::support::chart::{folder, helm::Helm};

/// helm may have to be built, which takes minutes.
async fn helm() -> Helm {
    tokio::task::spawn_blocking(Helm::find).await.unwrap().unwrap_or_else(|error| panic!("no helm: {error}"))
}

/// The values files that come with the chart, by name.
fn values_files() -> Vec<(String, String)> {
    let files = std::fs::read_dir(folder().join("ci")).unwrap().flatten();
    let mut files: Vec<_> = files
        .map(|file| (file.file_name().into_string().unwrap(), file.path().display().to_string()))
        .collect();
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    files
}
