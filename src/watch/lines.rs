//! A stream's bytes cut into lines.

use std::ops::Range;

use kube::client::Body;

use crate::{
    cluster::{Wiped, next_chunk},
    engine::Fault,
};

/// An object has at most 1.5 MiB in the store; as JSON it can grow sixfold.
const LINE_LIMIT: usize = 16 << 20;

/// The lines of a watch.
pub struct Lines {
    body: Body,
    buffer: Wiped,
    /// Where the line that was given last begins and ends.
    given: Range<usize>,
}

impl Lines {
    /// Of that body.
    pub fn new(body: Body) -> Self {
        Self { body, buffer: Wiped::default(), given: 0..0 }
    }

    /// Waits for the next line; false at the stream's end. A line that the stream's end cuts off is
    /// dropped: the watch resumes before it. Can be cancelled at any point.
    ///
    /// # Errors
    /// The connection broke, or a line is too long to be one.
    pub async fn advance(&mut self) -> Result<bool, Fault> {
        let mut searched = self.given.end;
        loop {
            let start = self.given.end;
            if let Some(at) = self.buffer.as_ref()[searched..].iter().position(|&b| b == b'\n') {
                self.given = start..searched + at + 1;
                return Ok(true);
            }
            // Given lines are dropped together, when there is no other left.
            self.buffer.drop_front(start);
            self.given = 0..0;
            searched = self.buffer.as_ref().len();
            if searched > LINE_LIMIT {
                return Err(Fault::Unknown("a line of the watch is too long".to_owned()));
            }
            match next_chunk(&mut self.body).await? {
                Some(chunk) => self.buffer.extend(&chunk),
                None => return Ok(false),
            }
        }
    }

    /// The line that [`advance`](Self::advance) found.
    pub fn line(&self) -> &[u8] {
        &self.buffer.as_ref()[self.given.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &str) -> Vec<String> {
        let mut lines = Lines::new(Body::from(text.as_bytes().to_vec()));
        let mut seen = Vec::new();
        while lines.advance().await.unwrap() {
            seen.push(String::from_utf8(lines.line().to_vec()).unwrap());
        }
        seen
    }

    #[tokio::test]
    async fn lines_are_whole_or_dropped() {
        assert_eq!(lines("a\nbc\n\nd").await, ["a\n", "bc\n", "\n"]);
        assert!(lines("").await.is_empty());
    }
}
