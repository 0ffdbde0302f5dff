//! What a test asks of a pod, by annotations on its template.
//!
//! | annotation | the pod |
//! | --- | --- |
//! | `test.uptake.dev/ready-after: "3s"` | becomes ready that long after its containers run |
//! | `test.uptake.dev/never-ready: "true"` | runs, never becomes ready |
//! | `test.uptake.dev/ready-if: "db/password=good"` | becomes ready only if it started with that value |
//! | `test.uptake.dev/crash-unless: "db/password=good"` | its containers crash unless started with that value |
//! | `test.uptake.dev/image-pull-fails: "true"` | waits with `ImagePullBackOff` |
//!
//! A pod that must not be scheduled has a `nodeSelector` that fits no node. A pod that asks for something that
//! can't be understood fails its test by waiting with the reason `TestAnnotationInvalid`.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::time::Duration;

/// A Secret's value that a pod's fate depends on.
#[derive(Debug, PartialEq, Eq)]
pub struct Condition {
    /// `secret/key`, as in [`super::needs::Values`].
    pub of: String,
    pub value: String,
}

impl Condition {
    fn parse(text: &str) -> Option<Self> {
        let (of, value) = text.split_once('=')?;
        Some(Self { of: of.into(), value: value.into() })
    }

    pub fn holds(&self, values: &BTreeMap<String, String>) -> bool {
        values.get(&self.of) == Some(&self.value)
    }
}

#[derive(Debug)]
pub struct Behaviour {
    pub ready_after: Duration,
    pub never_ready: bool,
    pub ready_if: Option<Condition>,
    pub crash_unless: Option<Condition>,
    pub image_pull_fails: bool,
}

impl Behaviour {
    pub fn of(pod: &Pod, ready_after: Duration) -> Result<Self, String> {
        let annotation = |name: &str| pod.annotations().get(&format!("test.uptake.dev/{name}"));
        let is_set = |name: &str| annotation(name).is_some_and(|value| value == "true");
        let condition = |name: &str| {
            let parse = |text: &String| Condition::parse(text).ok_or(format!("{name}: {text}"));
            annotation(name).map(parse).transpose()
        };
        let delay =
            |text: &String| humantime::parse_duration(text).map_err(|error| format!("ready-after: {error}"));
        Ok(Self {
            ready_after: annotation("ready-after").map_or(Ok(ready_after), delay)?,
            never_ready: is_set("never-ready"),
            ready_if: condition("ready-if")?,
            crash_unless: condition("crash-unless")?,
            image_pull_fails: is_set("image-pull-fails"),
        })
    }
}
