//! The key under which values are hashed: a Secret in Uptake's own namespace.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::Method;
use serde::Deserialize;
use serde_json::json;
use zeroize::Zeroizing;

use super::{
    Api,
    api::{self, READ_LIMIT, WRITE_LIMIT},
    fault, ledger_object, path,
};
use crate::{
    engine::Fault,
    ledger::{DigestKey, KEY_BYTES},
    watch::secret::Value,
};

/// The Secret's name.
pub const NAME: &str = "uptake-digest-key";
const DATA_KEY: &str = "key";

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum DigestKeyError {
    /// The API server gives or takes none.
    #[error("failed to {step} Secret {namespace}/{NAME}: {cause}")]
    Unavailable {
        /// `read` or `create`.
        step: &'static str,
        /// Uptake's own namespace.
        namespace: String,
        /// Why.
        cause: String,
    },
    /// The Secret is there and holds no key. It isn't replaced: the ledger's digests were made with the
    /// real one, and somebody may be able to bring it back.
    #[error(
        "Secret {0}/{NAME} holds no digest key of {KEY_BYTES} bytes under {DATA_KEY:?}: restore it, or delete it \
         (then all values count as seen for the first time)"
    )]
    Damaged(String),
    /// The operating system gives no random bytes.
    #[error("failed to get random bytes for a new digest key")]
    NoRandomness,
}

/// Reads the key, or makes it if there is none. Two that make one at once agree: the second creation is a
/// conflict, and the first one's key is read.
///
/// # Errors
/// See [`DigestKeyError`].
pub async fn get_or_create(api: &Api, namespace: &str) -> Result<DigestKey, DigestKeyError> {
    let unavailable = |step| {
        move |fault: Fault| DigestKeyError::Unavailable {
            step,
            namespace: namespace.to_owned(),
            cause: fault::words(&fault),
        }
    };
    if let Some(key) = read(api, namespace).await.map_err(unavailable("read"))? {
        return key.ok_or_else(|| DigestKeyError::Damaged(namespace.to_owned()));
    }
    match create(api, namespace, &random()?[..]).await {
        Ok(()) | Err(Fault::Conflict) => {}
        Err(fault) => return Err(unavailable("create")(fault)),
    }
    let key = read(api, namespace).await.map_err(unavailable("read"))?.flatten();
    key.ok_or_else(|| DigestKeyError::Damaged(namespace.to_owned()))
}

/// The key, as it is; none if there is none.
///
/// # Errors
/// It can't be read.
pub async fn find(api: &Api, namespace: &str) -> Result<Option<DigestKey>, Fault> {
    Ok(read(api, namespace).await?.flatten())
}

/// `None`: there is no Secret. `Some(None)`: it holds no key.
async fn read(api: &Api, namespace: &str) -> Result<Option<Option<DigestKey>>, Fault> {
    #[derive(Deserialize)]
    struct Object {
        #[serde(default)]
        data: Option<BTreeMap<String, Value>>,
    }
    let request = api::get(&format!("{}/{NAME}", path::core(Some(namespace), "secrets")));
    let mut object: Object = match api.json(request, READ_LIMIT).await {
        Err(Fault::NotFound) => return Ok(None),
        object => object?,
    };
    let value = object.data.as_mut().and_then(|data| data.remove(DATA_KEY));
    Ok(Some(value.and_then(|value| DigestKey::from_slice(&value.0))))
}

async fn create(api: &Api, namespace: &str, key: &[u8]) -> Result<(), Fault> {
    let (label, value) = ledger_object::MANAGED;
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME, "namespace": namespace, "labels": {label: value}},
        "type": "Opaque",
        "immutable": true,
        "data": {DATA_KEY: BASE64_STANDARD.encode(key)},
    });
    let request = api::send(Method::POST, &path::core(Some(namespace), "secrets"), &secret);
    api.bytes(request, WRITE_LIMIT).await.map(drop)
}

fn random() -> Result<Zeroizing<[u8; KEY_BYTES]>, DigestKeyError> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes[..]).map_err(|_| DigestKeyError::NoRandomness)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::{Fake, Reply, object, status};

    async fn get(replies: Vec<Reply>) -> (Result<DigestKey, String>, Fake) {
        let (fake, api) = Fake::start(replies);
        (get_or_create(&api, "uptake").await.map_err(|error| error.to_string()), fake)
    }

    fn stored(bytes: &[u8]) -> Reply {
        object(200, &json!({"data": {DATA_KEY: BASE64_STANDARD.encode(bytes)}}))
    }

    fn digest(key: &DigestKey) -> crate::ledger::Digest {
        key.of_key("a", "b", "c", None)
    }

    #[tokio::test]
    async fn a_key_that_is_there_is_used() {
        let (key, fake) = get(vec![stored(&[5; KEY_BYTES])]).await;
        assert_eq!(digest(&key.unwrap()), digest(&DigestKey::new([5; KEY_BYTES])));
        assert_eq!(fake.count(), 1);
    }

    #[tokio::test]
    async fn two_creators_at_once_agree_on_the_first_ones() {
        let replies = vec![status(404, "no"), status(409, "already exists"), stored(&[5; KEY_BYTES])];
        let (key, fake) = get(replies).await;
        assert_eq!(digest(&key.unwrap()), digest(&DigestKey::new([5; KEY_BYTES])));
        let made = fake.seen()[1].body["data"][DATA_KEY].as_str().unwrap().to_owned();
        assert_eq!(BASE64_STANDARD.decode(made).unwrap().len(), KEY_BYTES);
    }

    #[tokio::test]
    async fn a_damaged_key_is_never_overwritten() {
        for damaged in
            [stored(b"short"), object(200, &json!({})), object(200, &json!({"data": {"else": "YQ=="}}))]
        {
            let (key, fake) = get(vec![damaged]).await;
            assert!(key.unwrap_err().contains("uptake/uptake-digest-key holds no digest key"));
            assert!(fake.seen().iter().all(|seen| seen.method == "GET"));
        }
    }

    #[tokio::test]
    async fn a_missing_right_names_the_step_and_the_object() {
        let words = r#"secrets "uptake-digest-key" is forbidden: User "x" cannot get resource"#;
        let (key, _) = get(vec![status(403, words)]).await;
        assert_eq!(key.unwrap_err(), format!("failed to read Secret uptake/uptake-digest-key: {words}"));
    }
}
