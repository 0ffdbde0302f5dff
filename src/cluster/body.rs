//! Answers' bodies as bytes that are wiped when they are dropped.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use kube::client::Body;
use zeroize::Zeroize as _;

use super::fault;
use crate::engine::Fault;

/// Bytes that may hold a Secret's value: wiped when they are dropped and when they grow. What the TLS
/// library and the HTTP client buffer on the way is out of reach.
#[derive(Default)]
pub struct Wiped(Vec<u8>);

impl Wiped {
    /// Adds bytes; the old allocation is wiped if they need a new one.
    pub fn extend(&mut self, chunk: &[u8]) {
        let needed = self.0.len() + chunk.len();
        if needed > self.0.capacity() {
            let mut grown = Vec::with_capacity(needed.max(self.0.capacity() * 2));
            grown.extend_from_slice(&self.0);
            self.0.zeroize();
            self.0 = grown;
        }
        self.0.extend_from_slice(chunk);
    }

    /// Drops and wipes the first `count` bytes.
    pub fn drop_front(&mut self, count: usize) {
        let count = count.min(self.0.len());
        let rest = self.0.len() - count;
        self.0.copy_within(count.., 0);
        self.0[rest..].zeroize();
        self.0.truncate(rest);
    }
}

impl AsRef<[u8]> for Wiped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The next bytes of a body; none at its end.
///
/// # Errors
/// The connection broke.
pub async fn next_chunk(body: &mut Body) -> Result<Option<Bytes>, Fault> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| fault::of_transport(&error))?;
        if let Ok(chunk) = frame.into_data() {
            return Ok(Some(chunk));
        }
    }
    Ok(None)
}

/// A whole body, if it isn't longer than `limit`.
///
/// # Errors
/// The connection broke, or the body is too long.
pub async fn read(mut body: Body, limit: usize) -> Result<Wiped, Fault> {
    let mut read = Wiped::default();
    while let Some(chunk) = next_chunk(&mut body).await? {
        if read.as_ref().len() + chunk.len() > limit {
            return Err(Fault::Unknown("the answer is too long".to_owned()));
        }
        read.extend(&chunk);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_in_order_and_dropped_from_the_front() {
        let mut bytes = Wiped::default();
        for chunk in [b"ab".as_slice(), b"", b"cdefgh"] {
            bytes.extend(chunk);
        }
        bytes.drop_front(3);
        assert_eq!(bytes.as_ref(), b"defgh");
        bytes.drop_front(9);
        assert_eq!(bytes.as_ref(), b"");
    }
}
