//! Where a part's loop says what it sees.

use tokio::sync::{mpsc, watch};

use crate::engine::Watched;

/// The other end is gone: the process is stopping.
pub struct Closed;

/// A part's words on their way to the merge.
pub struct Said<T, Id> {
    /// The part.
    pub part: usize,
    /// The round that it is in.
    pub round: u64,
    /// What it says.
    pub words: Watched<T, Id>,
}

/// A part's way to the merge.
pub struct Outlet<T, Id> {
    part: usize,
    round: u64,
    rounds: watch::Receiver<u64>,
    to: mpsc::Sender<Said<T, Id>>,
}

impl<T, Id> Outlet<T, Id> {
    /// Of that part; `rounds` says which round it must list in.
    pub fn new(part: usize, rounds: watch::Receiver<u64>, to: mpsc::Sender<Said<T, Id>>) -> Self {
        Self { part, round: 0, rounds, to }
    }

    /// Says it; waits while the engine is busy.
    pub async fn say(&self, words: Watched<T, Id>) -> Result<(), Closed> {
        let Self { part, round, .. } = *self;
        self.to.send(Said { part, round, words }).await.map_err(|_| Closed)
    }

    /// Joins the current round and says that a fresh list starts.
    pub async fn relist(&mut self) -> Result<(), Closed> {
        self.round = *self.rounds.borrow_and_update();
        self.say(Watched::Relist).await
    }

    /// Whether a fresh list is asked for.
    pub fn is_asked(&self) -> bool {
        *self.rounds.borrow() > self.round
    }

    /// Whether nobody listens any more.
    pub fn is_gone(&self) -> bool {
        self.to.is_closed()
    }

    /// Waits until nobody listens any more.
    pub async fn gone(&self) {
        self.to.closed().await;
    }

    /// Waits until a fresh list is asked for, or nobody listens any more.
    pub async fn asked(&mut self) {
        loop {
            if *self.rounds.borrow_and_update() > self.round {
                return;
            }
            tokio::select! {
                changed = self.rounds.changed() => if changed.is_err() { return },
                () = self.to.closed() => return,
            }
        }
    }
}
