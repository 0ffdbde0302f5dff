//! What an answer that isn't a success means.

use std::error::Error;

use http::StatusCode;
use serde::Deserialize;

use crate::engine::Fault;

/// The words for an answer whose body can't be decoded. Never the decoder's own: they quote the body.
pub const UNDECODABLE: &str = "undecodable answer";

/// The part of `meta/v1` Status that tells why.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Status {
    /// For people.
    pub message: String,
    /// For programs.
    pub reason: String,
    /// The HTTP status.
    pub code: u16,
}

impl Status {
    /// The Status in a body, if it is one.
    pub fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// Whether the asked-for version is too old: in an answer, or in the midst of a watch.
    fn is_expired(&self) -> bool {
        self.code == 410 || matches!(self.reason.as_str(), "Expired" | "Gone")
    }

    /// What it means.
    pub fn fault(self) -> Fault {
        if self.is_expired() {
            return Fault::Expired;
        }
        match self.code {
            404 => Fault::NotFound,
            409 => Fault::Conflict,
            403 if is_about_rights(&self.message) => Fault::Forbidden(self.message),
            400 | 403 | 422 => Fault::Refused(self.message),
            429 => Fault::Throttled,
            code => Fault::Unknown(format!("HTTP {code}: {}", self.message)),
        }
    }
}

/// The authorizer's words are `… is forbidden: User "x" cannot list resource …`. Admission plugins
/// answer 403 too, with other words, and mean this very request.
fn is_about_rights(message: &str) -> bool {
    message.contains("User \"") && message.contains("\" cannot ")
}

/// What an answer with that HTTP status and body means. A body that isn't a Status (a proxy's page)
/// isn't quoted.
pub fn of_answer(code: StatusCode, body: &[u8]) -> Fault {
    let status = Status::read(body).filter(|status| status.code != 0 || !status.message.is_empty());
    let mut status = status.unwrap_or_else(|| Status {
        message: code.canonical_reason().unwrap_or("no Status in the answer").to_owned(),
        ..Status::default()
    });
    status.code = code.as_u16();
    status.fault()
}

/// A request that got no answer, or whose answer broke off.
pub fn of_transport(error: &kube::Error) -> Fault {
    Fault::Unknown(match error {
        // kube's own word for it says nothing.
        kube::Error::Service(cause) => chain(&**cause),
        error => chain(error),
    })
}

/// An error and its causes in one line, without repeats.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = error.source();
    }
    words.replace(['\n', '\r'], " ")
}

/// The words of a fault, for people.
pub fn words(fault: &Fault) -> String {
    match fault {
        Fault::NotFound => "not found".to_owned(),
        Fault::Conflict => "changed by somebody else meanwhile".to_owned(),
        Fault::Forbidden(words) | Fault::Refused(words) | Fault::Unknown(words) => words.clone(),
        Fault::Expired => "the version is too old".to_owned(),
        Fault::Throttled => "too many requests".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn status(code: u16, message: &str) -> Fault {
        let body = serde_json::json!({"kind": "Status", "message": message, "code": code}).to_string();
        of_answer(StatusCode::from_u16(code).unwrap(), body.as_bytes())
    }

    const RIGHTS: &str = r#"secrets is forbidden: User "x" cannot list resource "secrets" in API group "" at the cluster scope"#;
    const QUOTA: &str = r#"deployments.apps "d" is forbidden: exceeded quota: q"#;

    #[rstest]
    #[case::rights(403, RIGHTS, Fault::Forbidden(RIGHTS.into()))]
    #[case::admission(403, QUOTA, Fault::Refused(QUOTA.into()))]
    #[case::bad_request(400, "admission webhook denied", Fault::Refused("admission webhook denied".into()))]
    #[case::invalid(422, "is invalid", Fault::Refused("is invalid".into()))]
    #[case::absent(404, "x", Fault::NotFound)]
    #[case::conflict(409, "x", Fault::Conflict)]
    #[case::expired(410, "x", Fault::Expired)]
    #[case::throttled(429, "x", Fault::Throttled)]
    #[case::timeout(504, "later", Fault::Unknown("HTTP 504: later".into()))]
    #[case::who_are_you(401, "Unauthorized", Fault::Unknown("HTTP 401: Unauthorized".into()))]
    fn each_status_means_one_fault(#[case] code: u16, #[case] message: &str, #[case] fault: Fault) {
        assert_eq!(status(code, message), fault);
    }

    #[test]
    fn a_body_that_is_no_status_is_not_quoted() {
        let fault = of_answer(StatusCode::BAD_GATEWAY, b"<html>hunter2</html>");
        assert_eq!(fault, Fault::Unknown("HTTP 502: Bad Gateway".to_owned()));
        assert_eq!(of_answer(StatusCode::GONE, b""), Fault::Expired);
    }

    #[test]
    fn an_expired_version_in_the_midst_of_a_watch_is_known_by_its_reason() {
        let body = br#"{"kind":"Status","reason":"Expired","message":"too old"}"#;
        assert_eq!(Status::read(body).unwrap().fault(), Fault::Expired);
    }
}
