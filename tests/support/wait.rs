//! Waiting for a condition: polled against a deadline, never a fixed sleep.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How often a condition is looked at: short beside every deadline, long beside a request to the API server.
const POLL: Duration = Duration::from_millis(25);

/// Polls until `look` gives a value; the error of the last look is what the failure says.
pub async fn try_eventually<T, E, F>(deadline: Duration, mut look: impl FnMut() -> F) -> Result<T, String>
where
    E: Display,
    F: Future<Output = Result<T, E>>,
{
    let end = Instant::now() + deadline;
    let mut seen = String::from("nothing: the first look did not end");
    loop {
        // A look that hangs (a stopped server) must not hang the test.
        match timeout(end.saturating_duration_since(Instant::now()).max(POLL), look()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => seen = error.to_string(),
            Err(_) => {}
        }
        if Instant::now() >= end {
            return Err(format!("not within {deadline:?}; last seen: {seen}"));
        }
        sleep(POLL).await;
    }
}

/// As [`try_eventually`], failing the test with what was last seen.
#[track_caller]
pub fn eventually<T, E, F>(deadline: Duration, look: impl FnMut() -> F) -> impl Future<Output = T>
where
    E: Display,
    F: Future<Output = Result<T, E>>,
{
    let caller = std::panic::Location::caller();
    async move { try_eventually(deadline, look).await.unwrap_or_else(|failure| panic!("{caller}: {failure}")) }
}

/// The opposite claim: nothing of the kind happens for `time`. `look` gives what must not be there.
#[track_caller]
pub fn never<T, F>(time: Duration, mut look: impl FnMut() -> F) -> impl Future<Output = ()>
where
    T: std::fmt::Debug,
    F: Future<Output = Option<T>>,
{
    let caller = std::panic::Location::caller();
    async move {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if let Some(found) = look().await {
                panic!("{caller}: must not happen, but did: {found:?}");
            }
            sleep(POLL).await;
        }
    }
}
