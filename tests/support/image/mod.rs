//! The container image as an OCI archive, made without a container engine from the Dockerfile's last stage.

pub mod archive;
pub mod dockerfile;
pub mod program;
