//! Whether this process may write.

use tokio::{sync::watch, time::Instant};

/// A claim on the leadership, as good as the Lease that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// From here on it is worth nothing.
    pub expiry: Instant,
}

/// Whether this process may write: asked at the moment of writing, not before. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Term(Option<watch::Receiver<Option<Claim>>>);

impl Term {
    /// Of the only process there is: it may always write.
    #[must_use]
    pub const fn endless() -> Self {
        Self(None)
    }

    /// As long as the newest claim is good.
    #[must_use]
    pub const fn of(claims: watch::Receiver<Option<Claim>>) -> Self {
        Self(Some(claims))
    }

    /// Whether this process may write now.
    #[must_use]
    pub fn is_current(&self) -> bool {
        let Some(claims) = &self.0 else { return true };
        claims.borrow().is_some_and(|claim| Instant::now() < claim.expiry)
    }

    /// Returns when the term begins; never, if it doesn't.
    pub async fn begun(&self) {
        let Some(mut claims) = self.0.clone() else { return };
        if claims.wait_for(Option::is_some).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_term_ends_by_the_clock_though_nobody_says_so() {
        let (claims, term) = watch::channel(None);
        let term = Term::of(term);
        assert!(!term.is_current());
        claims.send_replace(Some(Claim { expiry: Instant::now() + Duration::from_secs(15) }));
        term.begun().await;
        assert!(term.is_current());
        tokio::time::advance(Duration::from_secs(15)).await;
        assert!(!term.is_current());
        assert!(Term::endless().is_current());
    }
}
