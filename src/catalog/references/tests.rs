#![expect(clippy::needless_pass_by_value, reason = "a literal reads better without a borrow")]

use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::catalog::policy::Reloads;

/// What a row of a test expects: the same for all containers named `c` or, without one, of the whole pod.
fn reference(secret: &str, keys: &[&str], via: Via, optional: bool) -> Reference {
    let keys = if keys.is_empty() { Keys::All } else { Keys::named(keys.iter().map(|&key| Name::from(key))) };
    let rolls = if via.rolls_by_default() { Rolls::Yes } else { Rolls::KindIsListedOnly };
    let containers = match via {
        Via::Pull | Via::Annotation => Containers::All,
        _ => in_containers(&["c"]),
    };
    Reference {
        secret: secret.into(),
        keys,
        via,
        optional,
        containers,
        rolls,
        from: Origin::Workload,
        synced: false,
    }
}

fn in_containers(names: &[&str]) -> Containers {
    Containers::Named(names.iter().map(|&name| Name::from(name)).collect())
}

fn find(spec: Value) -> Vec<Reference> {
    find_with(spec, &ReferenceAnnotations::default()).kept
}

fn find_with(spec: Value, annotations: &ReferenceAnnotations) -> References {
    references(&json!({"spec": spec}), annotations, true)
}

/// A pod whose container `c` has this field.
fn container(field: &str, value: Value) -> Value {
    json!({"containers": [{"name": "c", field: value}]})
}

/// A pod with this volume, which its container `c` mounts so.
fn mounted(source: &str, value: Value, mount: Value) -> Value {
    let mut mount = mount;
    mount["name"] = json!("v");
    json!({"containers": [{"name": "c", "volumeMounts": [mount]}], "volumes": [{"name": "v", source: value}]})
}

/// A pod with this volume, mounted as a folder.
fn volume(source: &str, value: Value) -> Value {
    mounted(source, value, json!({"mountPath": "/v"}))
}

fn env(secret: &str, key: &str) -> Value {
    json!({"name": "E", "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
}

#[rstest]
#[case::env(
    container("env", json!([{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])),
    reference("s", &["k"], Via::Env, false)
)]
#[case::env_optional(
    container("env", json!([{"valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}}])),
    reference("s", &["k"], Via::Env, true)
)]
#[case::env_from(
    container("envFrom", json!([{"prefix": "P_", "secretRef": {"name": "s"}}])),
    reference("s", &[], Via::EnvFrom, false)
)]
#[case::env_from_optional(
    container("envFrom", json!([{"secretRef": {"name": "s", "optional": true}}])),
    reference("s", &[], Via::EnvFrom, true)
)]
#[case::init_container(
    json!({"initContainers": [{"name": "c", "env": [env("s", "k")]}]}),
    reference("s", &["k"], Via::Env, false)
)]
#[case::sidecar(
    json!({"initContainers": [{"name": "c", "restartPolicy": "Always", "envFrom": [{"secretRef": {"name": "s"}}]}]}),
    reference("s", &[], Via::EnvFrom, false)
)]
#[case::ephemeral_container(
    json!({"ephemeralContainers": [{"name": "c", "env": [env("s", "k")]}]}),
    reference("s", &["k"], Via::Env, false)
)]
#[case::volume(volume("secret", json!({"secretName": "s"})), reference("s", &[], Via::Volume, false))]
#[case::volume_optional(
    volume("secret", json!({"secretName": "s", "optional": true})),
    reference("s", &[], Via::Volume, true)
)]
#[case::volume_items(
    volume("secret", json!({"secretName": "s", "items": [{"key": "b", "path": "x"}, {"key": "a", "path": "y"}]})),
    reference("s", &["a", "b"], Via::Volume, false)
)]
#[case::volume_without_items(
    volume("secret", json!({"secretName": "s", "items": []})),
    reference("s", &[], Via::Volume, false)
)]
#[case::sub_path(
    mounted("secret", json!({"secretName": "s"}), json!({"subPath": "x"})),
    reference("s", &[], Via::SubPath, false)
)]
#[case::sub_path_items(
    mounted("secret", json!({"secretName": "s", "items": [{"key": "k"}]}), json!({"subPath": "x"})),
    reference("s", &["k"], Via::SubPath, false)
)]
#[case::sub_path_expr(
    mounted("secret", json!({"secretName": "s"}), json!({"subPathExpr": "$(POD_NAME)"})),
    reference("s", &[], Via::SubPath, false)
)]
#[case::sub_path_empty(
    mounted("secret", json!({"secretName": "s"}), json!({"subPath": ""})),
    reference("s", &[], Via::Volume, false)
)]
#[case::mounted_by_an_init_container(
    json!({
        "initContainers": [{"name": "c", "volumeMounts": [{"name": "v"}]}],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
    }),
    reference("s", &[], Via::Volume, false)
)]
#[case::projected(
    volume("projected", json!({"sources": [{"configMap": {"name": "x"}}, {"secret": {"name": "s"}}]})),
    reference("s", &[], Via::Projected, false)
)]
#[case::projected_items(
    volume("projected", json!({"sources": [{"secret": {"name": "s", "items": [{"key": "k"}], "optional": true}}]})),
    reference("s", &["k"], Via::Projected, true)
)]
#[case::projected_sub_path(
    mounted("projected", json!({"sources": [{"secret": {"name": "s"}}]}), json!({"subPath": "x"})),
    reference("s", &[], Via::SubPath, false)
)]
#[case::csi(
    volume("csi", json!({"driver": "d", "nodePublishSecretRef": {"name": "s"}})),
    reference("s", &[], Via::Storage, false)
)]
#[case::azure_file(volume("azureFile", json!({"secretName": "s"})), reference("s", &[], Via::Storage, false))]
#[case::cephfs(
    volume("cephfs", json!({"secretRef": {"name": "s"}, "secretFile": "/etc/ceph/x"})),
    reference("s", &[], Via::Storage, false)
)]
#[case::cinder(volume("cinder", json!({"secretRef": {"name": "s"}})), reference("s", &[], Via::Storage, false))]
#[case::flex_volume(
    volume("flexVolume", json!({"secretRef": {"name": "s"}})),
    reference("s", &[], Via::Storage, false)
)]
#[case::iscsi(volume("iscsi", json!({"secretRef": {"name": "s"}})), reference("s", &[], Via::Storage, false))]
#[case::rbd(volume("rbd", json!({"secretRef": {"name": "s"}})), reference("s", &[], Via::Storage, false))]
#[case::scale_io(volume("scaleIO", json!({"secretRef": {"name": "s"}})), reference("s", &[], Via::Storage, false))]
#[case::storageos(
    volume("storageos", json!({"secretRef": {"name": "s"}})),
    reference("s", &[], Via::Storage, false)
)]
#[case::storage_by_sub_path(
    mounted("rbd", json!({"secretRef": {"name": "s"}}), json!({"subPath": "x"})),
    reference("s", &[], Via::Storage, false)
)]
#[case::pull(json!({"imagePullSecrets": [{"name": "s"}]}), reference("s", &[], Via::Pull, true))]
fn each_kind_of_reference(#[case] spec: Value, #[case] expected: Reference) {
    assert_eq!(find(spec), [expected]);
}

#[rstest]
#[case::literal(container("env", json!([{"name": "E", "value": "s"}])))]
#[case::config_map(container("env", json!([{"valueFrom": {"configMapKeyRef": {"name": "s", "key": "k"}}}])))]
#[case::config_map_from(container("envFrom", json!([{"configMapRef": {"name": "s"}}])))]
#[case::config_map_volume(volume("configMap", json!({"name": "s"})))]
#[case::arguments(container("args", json!(["--secret=s"])))]
#[case::not_mounted(json!({
    "containers": [{"name": "c", "volumeMounts": [{"name": "w"}]}],
    "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
}))]
#[case::storage_not_mounted(json!({"volumes": [{"name": "v", "rbd": {"secretRef": {"name": "s"}}}]}))]
#[case::devices(json!({
    "containers": [{"name": "c", "volumeDevices": [{"name": "v"}]}],
    "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
}))]
#[case::empty_name(container("envFrom", json!([{"secretRef": {"name": ""}}, {"secretRef": {}}])))]
#[case::empty_pull(json!({"imagePullSecrets": [{}, {"name": ""}]}))]
#[case::no_key(container("env", json!([{"valueFrom": {"secretKeyRef": {"name": "s"}}}])))]
#[case::wrong_types(json!({
    "containers": {"name": "c"},
    "initContainers": [null, 1, "x", {"env": {"valueFrom": 1}, "envFrom": [[]], "volumeMounts": "v"}],
    "volumes": [null, {"name": 1, "secret": {"secretName": "s"}}],
    "imagePullSecrets": "s",
}))]
#[case::wrong_name(container("envFrom", json!([{"secretRef": {"name": ["s"]}}, {"secretRef": "s"}])))]
#[case::nothing(json!(null))]
fn what_is_no_reference(#[case] spec: Value) {
    assert_eq!(find_with(spec, &ReferenceAnnotations::default()), References::default());
}

#[rstest]
#[case(json!(null))]
#[case(json!([]))]
#[case(json!({}))]
#[case(json!({"metadata": {}}))]
fn a_template_without_a_spec_references_nothing(#[case] template: Value) {
    assert_eq!(references(&template, &ReferenceAnnotations::default(), true), References::default());
}

#[test]
fn containers_that_consume_the_same_share_a_reference() {
    let spec = json!({
        "containers": [{"name": "b", "env": [env("s", "k"), env("s", "k")]}, {"name": "a", "env": [env("s", "k")]}],
        "initContainers": [{"name": "i", "env": [env("s", "l")]}],
    });
    let shared =
        Reference { containers: in_containers(&["a", "b"]), ..reference("s", &["k"], Via::Env, false) };
    let other = Reference { containers: in_containers(&["i"]), ..reference("s", &["l"], Via::Env, false) };
    assert_eq!(find(spec), [shared, other]);
}

#[test]
fn a_volume_mounted_both_ways_is_two_references() {
    let spec = json!({
        "containers": [
            {"name": "live", "volumeMounts": [{"name": "v"}]},
            {"name": "both", "volumeMounts": [{"name": "v"}, {"name": "v", "subPath": "x"}]},
            {"name": "bound", "volumeMounts": [{"name": "v", "subPath": "y"}]},
            {"name": "neither"},
        ],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
    });
    let live =
        Reference { containers: in_containers(&["both", "live"]), ..reference("s", &[], Via::Volume, false) };
    let bound = Reference {
        containers: in_containers(&["both", "bound"]),
        ..reference("s", &[], Via::SubPath, false)
    };
    assert_eq!(find(spec), [live, bound]);
}

#[test]
fn a_container_without_a_name_may_be_any() {
    let found =
        find(json!({"containers": [{"env": [env("s", "k")]}, {"name": "c", "env": [env("s", "k")]}]}));
    assert_eq!(found, [Reference { containers: Containers::All, ..reference("s", &["k"], Via::Env, false) }]);
}

#[test]
fn one_malformed_part_does_not_hide_the_others() {
    let found = find(container("env", json!([null, {"valueFrom": {"secretKeyRef": 1}}, env("s", "k")])));
    assert_eq!(found, [reference("s", &["k"], Via::Env, false)]);
}

#[test]
fn an_annotation_names_secrets_that_the_api_cannot_see() {
    let annotations =
        ReferenceAnnotations { secrets: ["s".into()].into(), ..ReferenceAnnotations::default() };
    let found = references(&json!(null), &annotations, true);
    assert_eq!(found.kept, [reference("s", &[], Via::Annotation, true)]);
}

fn naming(names: &[&str]) -> BTreeSet<Name> {
    names.iter().map(|&name| Name::from(name)).collect()
}

/// A pod that consumes `s` in every way that a policy can tell apart.
fn every_way() -> Value {
    json!({
        "containers": [{
            "name": "c",
            "env": [env("s", "k")],
            "volumeMounts": [{"name": "v"}, {"name": "v", "subPath": "x"}, {"name": "p"}, {"name": "r"}],
        }],
        "volumes": [
            {"name": "v", "secret": {"secretName": "s"}},
            {"name": "p", "projected": {"sources": [{"secret": {"name": "s"}}]}},
            {"name": "r", "rbd": {"secretRef": {"name": "s"}}},
        ],
        "imagePullSecrets": [{"name": "s"}],
    })
}

fn rolls(annotations: &ReferenceAnnotations, roll_volumes: bool) -> BTreeMap<Via, Rolls> {
    let found = references(&json!({"spec": every_way()}), annotations, roll_volumes);
    found.kept.into_iter().map(|reference| (reference.via, reference.rolls)).collect()
}

#[rstest]
#[case::default(ReferenceAnnotations::default(), true, Rolls::Yes, Rolls::Yes, Rolls::KindIsListedOnly)]
#[case::reloads(
    ReferenceAnnotations { reloads: Reloads::Named(naming(&["s"])), ..ReferenceAnnotations::default() },
    true, Rolls::Yes, Rolls::Reloads, Rolls::KindIsListedOnly
)]
#[case::reloads_all(
    ReferenceAnnotations { reloads: Reloads::All, ..ReferenceAnnotations::default() },
    true, Rolls::Yes, Rolls::Reloads, Rolls::KindIsListedOnly
)]
#[case::reloads_another(
    ReferenceAnnotations { reloads: Reloads::Named(naming(&["ss", "S"])), ..ReferenceAnnotations::default() },
    true, Rolls::Yes, Rolls::Yes, Rolls::KindIsListedOnly
)]
#[case::volumes_do_not_roll(
    ReferenceAnnotations::default(),
    false,
    Rolls::Yes,
    Rolls::Reloads,
    Rolls::KindIsListedOnly
)]
#[case::ignored(
    ReferenceAnnotations { ignored: naming(&["s"]), reloads: Reloads::All, ..ReferenceAnnotations::default() },
    true, Rolls::Ignored, Rolls::Ignored, Rolls::Ignored
)]
#[case::another_ignored(
    ReferenceAnnotations { ignored: naming(&["ss", "S"]), ..ReferenceAnnotations::default() },
    true, Rolls::Yes, Rolls::Yes, Rolls::KindIsListedOnly
)]
fn what_rolls(
    #[case] annotations: ReferenceAnnotations,
    #[case] roll_volumes: bool,
    #[case] bound: Rolls,
    #[case] live: Rolls,
    #[case] listed: Rolls,
) {
    let expected = [
        (Via::Env, bound),
        (Via::SubPath, bound),
        (Via::Volume, live),
        (Via::Projected, live),
        (Via::Storage, listed),
        (Via::Pull, listed),
    ];
    assert_eq!(rolls(&annotations, roll_volumes), expected.into());
}

#[test]
fn provider_classes_are_listed_with_those_that_mount_them() {
    let class = |name: &str, driver: &str, class: &str| json!({"name": name, "csi": {"driver": driver, "volumeAttributes": {"secretProviderClass": class}}});
    let found = find_with(
        json!({
            "containers": [
                {"name": "a", "volumeMounts": [{"name": "v"}, {"name": "w"}, {"name": "other"}]},
                {"name": "b", "volumeMounts": [{"name": "v", "subPath": "x"}, {"name": "empty"}]},
            ],
            "volumes": [
                class("v", "secrets-store.csi.k8s.io", "vault"),
                class("w", "secrets-store.csi.k8s.io", "vault"),
                class("other", "csi.example.com", "x"),
                class("empty", "secrets-store.csi.k8s.io", ""),
                class("unmounted", "secrets-store.csi.k8s.io", "y"),
            ],
        }),
        &ReferenceAnnotations::default(),
    );
    let vault =
        ProviderClass { name: "vault".into(), live: in_containers(&["a"]), sub_path: in_containers(&["b"]) };
    assert_eq!(found.provider_classes, [vault]);
    assert_eq!(found.kept, []);
}

#[test]
fn more_references_than_may_be_are_counted_and_cut() {
    let many = |count: usize| {
        let env: Vec<Value> = (0..count).map(|n| env(&format!("s{n}"), "k")).collect();
        find_with(container("env", json!(env)), &ReferenceAnnotations::default())
    };
    let most = many(MAX_REFERENCES);
    assert_eq!((most.kept.len(), most.count, most.problems.len()), (MAX_REFERENCES, MAX_REFERENCES, 0));
    let more = many(5000);
    assert_eq!((more.kept.len(), more.count), (MAX_REFERENCES, 5000));
    assert_eq!(
        more.problems[0].message.as_ref(),
        "it has 5000 references to Secrets; more than 1000 aren't followed"
    );
}

#[test]
fn thousands_of_containers_and_references_do_not_multiply() {
    let containers: Vec<Value> =
        (0..5000).map(|n| json!({"name": format!("c{n}"), "volumeMounts": [{"name": "v"}]})).collect();
    let sources: Vec<Value> = (0..20_000).map(|n| json!({"secret": {"name": format!("s{n}")}})).collect();
    let found = find(json!({
        "containers": containers,
        "volumes": [{"name": "v", "projected": {"sources": sources}}],
    }));
    assert_eq!(found.len(), MAX_REFERENCES);
    assert!(found.iter().all(|reference| reference.containers == Containers::All));
}

#[rstest]
#[case(json!({"spec": {"serviceAccountName": "a", "serviceAccount": "b"}}), "a")]
#[case(json!({"spec": {"serviceAccount": "b"}}), "b")]
#[case(json!({"spec": {"serviceAccountName": ""}}), "default")]
#[case(json!({"spec": {"serviceAccountName": 1}}), "default")]
#[case(json!({}), "default")]
fn pods_run_as_the_default_service_account(#[case] template: Value, #[case] expected: &str) {
    assert_eq!(service_account(&template).as_ref(), expected);
}

/// JSON with the fields' own names at any place, so that walks get deep into what is wrong.
fn odd_json() -> impl Strategy<Value = Value> {
    let field = prop::sample::select(vec![
        "spec",
        "containers",
        "initContainers",
        "env",
        "envFrom",
        "valueFrom",
        "secretKeyRef",
        "secretRef",
        "name",
        "key",
        "optional",
        "volumes",
        "volumeMounts",
        "subPath",
        "secret",
        "secretName",
        "items",
        "projected",
        "sources",
        "csi",
        "driver",
        "volumeAttributes",
        "secretProviderClass",
        "imagePullSecrets",
    ]);
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(8, 128, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(field.clone(), inner, 0..6).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

/// A pod that is right but for one part, at any place, which is anything.
fn nearly_right() -> impl Strategy<Value = Value> {
    (any::<prop::sample::Index>(), odd_json()).prop_map(|(place, odd)| {
        let mut template = json!({"spec": every_way()});
        let count = parts(&mut template, &mut |_| false);
        let mut left = place.index(count);
        parts(&mut template, &mut |part| {
            let here = left == 0;
            if here {
                *part = odd.clone();
            }
            left = left.wrapping_sub(1);
            here
        });
        template
    })
}

/// Visits every part of a value until the visitor says so; how many it visited.
fn parts(value: &mut Value, visit: &mut impl FnMut(&mut Value) -> bool) -> usize {
    if visit(value) {
        return 1;
    }
    1 + match value {
        Value::Array(elements) => elements.iter_mut().map(|element| parts(element, visit)).sum::<usize>(),
        Value::Object(fields) => fields.values_mut().map(|field| parts(field, visit)).sum(),
        _ => 0,
    }
}

proptest! {
    #[test]
    fn no_template_is_too_odd(template in prop_oneof![odd_json(), nearly_right()], roll_volumes: bool) {
        let found = references(&template, &ReferenceAnnotations::default(), roll_volumes);
        prop_assert_eq!(found.kept.len(), found.count);
        prop_assert!(found.kept.is_sorted_by(|a, b| a < b));
        prop_assert!(found.kept.iter().all(|reference| !reference.secret.is_empty()));
    }
}
