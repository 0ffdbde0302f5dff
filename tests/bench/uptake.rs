//! The installation that is measured.

use std::time::Duration;

use crate::{
    field::Field,
    support::operator::{Install, program},
};

/// The settle time of all scenarios but one: long enough to show what is done meanwhile.
pub const SETTLE: Duration = Duration::from_millis(500);

/// Of the program that `UPTAKE` names, or else of this build's.
pub async fn install(field: &Field<'_>) -> Install {
    let mut install = Install::for_cluster(field.cluster).await.settle(SETTLE).log_level("warn");
    install.program = std::env::var_os("UPTAKE").map_or_else(program, Into::into);
    install
}
