#![expect(clippy::needless_pass_by_value, reason = "a literal reads better without a borrow")]

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::{
    catalog::{ReadOptions, beside::Beside as _, read},
    facts::Name,
};

const ROLL_VOLUMES: ReadOptions = ReadOptions { roll_volumes: true };

/// What a workload with that pod spec and those annotations says itself.
fn declared(spec: Value, annotations: Value, options: ReadOptions) -> Declared {
    let object = json!({"metadata": {"annotations": annotations}});
    read::consumption(&object, &json!({"spec": spec}), &options).declared
}

/// A pod that mounts the class `vault` in its container `c`.
fn mounting(mount: Value, container: Value) -> Value {
    let mut container = container;
    container["name"] = json!("c");
    let mut mount = mount;
    mount["name"] = json!("v");
    container["volumeMounts"] = json!([mount]);
    let csi = json!({
        "driver": "secrets-store.csi.k8s.io",
        "volumeAttributes": {"secretProviderClass": "vault"},
    });
    json!({"containers": [container, {"name": "other"}], "volumes": [{"name": "v", "csi": csi}]})
}

fn folder() -> Value {
    mounting(json!({"mountPath": "/v"}), json!({}))
}

fn account(secrets: &[&str]) -> ServiceAccountFacts {
    let secrets: Vec<Value> = secrets.iter().map(|name| json!({"name": name})).collect();
    let metadata = json!({"name": "runner", "namespace": "demo"});
    ServiceAccountFacts::read(&json!({"metadata": metadata, "imagePullSecrets": secrets})).unwrap()
}

/// The class `vault` that syncs the keys `password` and `user` of the Secret `db`.
fn vault() -> ProviderClassFacts {
    let data = json!([{"objectName": "p", "key": "password"}, {"objectName": "u", "key": "user"}]);
    let spec = json!({"secretObjects": [{"secretName": "db", "data": data}]});
    let metadata = json!({"name": "vault", "namespace": "demo"});
    ProviderClassFacts::read(&json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn with_class(declared: &Declared) -> Effective {
    let vault = vault();
    effective(declared, None, |name| (name == "vault").then_some(&vault))
}

/// A reference by what tells it from others.
fn shown(effective: &Effective) -> Vec<String> {
    let one = |reference: &Reference| {
        let Reference { secret, via, from, rolls, synced, .. } = reference;
        let synced = if *synced { " synced" } else { "" };
        format!("{secret} {via} {from} {rolls:?}{synced}")
    };
    effective.kept.iter().map(one).collect()
}

#[test]
fn without_anything_beside_it_nothing_is_copied() {
    let own = declared(
        json!({"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "s"}}]}]}),
        json!({}),
        ROLL_VOLUMES,
    );
    let alone = effective(&own, None, |_| None);
    assert!(Arc::ptr_eq(&alone.kept, &own.references));
}

#[rstest]
#[case::inherited(json!({}), &["reg pull ServiceAccount/runner KindIsListedOnly"])]
#[case::own(json!({"imagePullSecrets": [{"name": "mine"}]}), &["mine pull  KindIsListedOnly"])]
fn pull_secrets_are_inherited_by_pods_that_have_none(#[case] spec: Value, #[case] expected: &[&str]) {
    let own = declared(spec, json!({}), ROLL_VOLUMES);
    assert_eq!(shown(&effective(&own, Some(&account(&["reg"])), |_| None)), expected);
}

#[test]
fn an_inherited_pull_secret_is_optional_and_of_the_whole_pod() {
    let own = declared(json!({}), json!({}), ROLL_VOLUMES);
    let all = effective(&own, Some(&account(&["reg"])), |_| None);
    let reference = Reference {
        secret: "reg".into(),
        keys: Keys::All,
        via: Via::Pull,
        optional: true,
        containers: Containers::All,
        rolls: Rolls::KindIsListedOnly,
        from: Origin::ServiceAccount("runner".into()),
        synced: false,
    };
    assert_eq!((all.count, &*all.kept), (1, &[reference][..]));
}

#[test]
fn a_class_gives_its_synced_secrets_to_the_containers_that_mount_it() {
    let all = with_class(&declared(folder(), json!({}), ROLL_VOLUMES));
    let reference = Reference {
        secret: "db".into(),
        keys: Keys::named(["password".into(), "user".into()]),
        via: Via::Csi,
        optional: false,
        containers: Containers::Named([Name::from("c")].into()),
        rolls: Rolls::Yes,
        from: Origin::ProviderClass("vault".into()),
        synced: true,
    };
    let mounted =
        Reference { secret: "secretproviderclass/vault".into(), keys: Keys::All, ..reference.clone() };
    assert_eq!((all.count, &*all.kept), (2, &[reference, mounted][..]));
}

#[rstest]
#[case::folder(json!({"mountPath": "/v"}), json!({}), ROLL_VOLUMES, "csi SecretProviderClass/vault Yes")]
#[case::sub_path(json!({"subPath": "x"}), json!({}), ROLL_VOLUMES, "subPath SecretProviderClass/vault Yes")]
#[case::reloads(
    json!({"mountPath": "/v"}),
    json!({"uptake.dev/reloads": "db, secretproviderclass/vault"}),
    ROLL_VOLUMES,
    "csi SecretProviderClass/vault Reloads"
)]
#[case::reloads_sub_path(
    json!({"subPath": "x"}),
    json!({"uptake.dev/reloads": "*"}),
    ROLL_VOLUMES,
    "subPath SecretProviderClass/vault Yes"
)]
#[case::ignored(
    json!({"mountPath": "/v"}),
    json!({"uptake.dev/ignore-secrets": "db,secretproviderclass/vault"}),
    ROLL_VOLUMES,
    "csi SecretProviderClass/vault Ignored"
)]
#[case::cluster_wide(
    json!({"mountPath": "/v"}),
    json!({}),
    ReadOptions { roll_volumes: false },
    "csi SecretProviderClass/vault Reloads"
)]
fn who_rereads_a_class_files_is_not_rolled(
    #[case] mount: Value,
    #[case] annotations: Value,
    #[case] options: ReadOptions,
    #[case] expected: &str,
) {
    let own = declared(mounting(mount, json!({})), annotations, options);
    let both = ["db", "secretproviderclass/vault"].map(|secret| format!("{secret} {expected} synced"));
    assert_eq!(shown(&with_class(&own)), both);
}

fn env(secret: &str, key: &str) -> Value {
    let key = json!({"name": secret, "key": key});
    json!({"env": [{"name": "E", "valueFrom": {"secretKeyRef": key}}]})
}

#[rstest]
#[case::synced_key(env("db", "user"), "db env  Yes synced")]
#[case::whole(json!({"envFrom": [{"secretRef": {"name": "db"}}]}), "db envFrom  Yes synced")]
#[case::key_of_somebody_else(env("db", "token"), "db env  Yes")]
#[case::secret_of_somebody_else(env("other", "user"), "other env  Yes")]
fn the_workloads_own_reference_to_a_synced_secret_comes_with_its_pods(
    #[case] container: Value,
    #[case] expected: &str,
) {
    let own = declared(mounting(json!({"mountPath": "/v"}), container), json!({}), ROLL_VOLUMES);
    let all = with_class(&own);
    assert!(shown(&all).contains(&expected.to_owned()), "{:?}", shown(&all));
    assert_eq!(all.count, 3);
}

#[test]
fn of_a_class_that_is_not_there_only_what_it_mounts_is_followed() {
    let own = declared(folder(), json!({}), ROLL_VOLUMES);
    let expected = ["secretproviderclass/vault csi SecretProviderClass/vault Yes synced"];
    assert_eq!(shown(&effective(&own, None, |_| None)), expected);
}

#[test]
fn too_many_are_counted_and_not_kept() {
    let env: Vec<Value> = (0..MAX_REFERENCES)
        .map(|n| json!({"valueFrom": {"secretKeyRef": {"name": format!("s{n}"), "key": "k"}}}))
        .collect();
    let own = declared(mounting(json!({"mountPath": "/v"}), json!({"env": env})), json!({}), ROLL_VOLUMES);
    let all = with_class(&own);
    assert_eq!((all.kept.len(), all.count), (MAX_REFERENCES, MAX_REFERENCES + 2));
}
