//! The container image as an OCI archive, made without a container engine from the Dockerfile's last stage.

mod archive;
mod dockerfile;
mod program;

pub use archive::Image;
pub use dockerfile::Recipe;
pub use program::is_static;
