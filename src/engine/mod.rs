//! The state machine that joins the rooms. It has no client, no clock and no randomness.

mod config;
mod io;

pub use config::{EngineConfig, FirstSight, Trigger};
pub use io::{Answer, Call, CallId, Fault, Input, InventoryFault, LedgerObject, Output, Watched};

use crate::{
    facts::{Mono, Now},
    record::Gauges,
};

/// The operator without its hands: told what happens, it says what to do.
pub struct Engine {
    config: EngineConfig,
}

impl Engine {
    /// A new engine; the first calls come from the first [`step`](Self::step).
    #[must_use]
    pub fn new(config: EngineConfig) -> Self {
        Self { config }
    }

    /// Takes one input and says what to do.
    pub fn step(&mut self, _now: Now, _input: Input) -> Output {
        let _ = &self.config;
        Output::default()
    }

    /// When a [`Input::Tick`] is due at the latest.
    #[must_use]
    pub fn next_wake(&self) -> Option<Mono> {
        None
    }

    /// The state of things, for metrics.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        Gauges {
            stale_pods: Vec::new(),
            held: Vec::new(),
            pending: 0,
            in_flight: 0,
            synced: Vec::new(),
            ledger: Ok(()),
        }
    }
}
