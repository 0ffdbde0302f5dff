use rstest::rstest;

use super::{
    verdict::{Options, State},
    *,
};

const DEMO: &str = include_str!("../../../tests/demo/shop.yaml");

fn of(text: &str, options: &Options) -> Report {
    check(&[("f.yaml".to_owned(), text.to_owned())], options)
}

fn manifest(kind: &str, annotations: &str, template_annotations: &str) -> String {
    let api_version = match kind {
        "Deployment" | "ReplicaSet" => "apps/v1",
        "Job" | "CronJob" => "batch/v1",
        "Pod" => "v1",
        _ => "argoproj.io/v1alpha1",
    };
    let spec = "{containers: [{name: c, envFrom: [{secretRef: {name: db}}]}]}";
    let template = format!("{{metadata: {{annotations: {{{template_annotations}}}}}, spec: {spec}}}");
    let body = match kind {
        "Pod" => spec.to_owned(),
        "CronJob" => format!("{{jobTemplate: {{spec: {{template: {template}}}}}}}"),
        _ => format!("{{template: {template}}}"),
    };
    format!(
        "{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: x, annotations: {{{annotations}}}}}, spec: {body}}}\n"
    )
}

#[test]
fn the_demos_nine_consumers_are_found_and_covered() {
    let report = of(DEMO, &Options::default());
    assert_eq!((report.summary.consumers, report.summary.covered, report.summary.pending), (9, 9, 0));
    assert_eq!(exit(&report), Exit::Done);
}

#[rstest]
#[case::of_a_kind_that_nobody_named(&manifest("Rollout", "", ""))]
#[case::opted_out_without_a_reason(&manifest("Deployment", "uptake.dev/rollout: 'off'", ""))]
#[case::misspelt(&manifest("Deployment", "uptake.dev/rolout: 'off', uptake.dev/reason: x", ""))]
fn a_tenth_that_nobody_examined_fails(#[case] tenth: &str) {
    let report = of(&format!("{DEMO}---\n{tenth}"), &Options::default());
    assert_eq!((report.summary.consumers, report.summary.pending), (10, 1));
    assert_eq!(exit(&report), Exit::No);
}

#[test]
fn a_list_of_the_examined_makes_any_other_one_pending() {
    let nine = of(DEMO, &Options::default()).consumers;
    let examined = nine.iter().map(|one| format!("{}/shop/{}", one.kind, one.name)).collect();
    let options = Options { examined: Some(examined), ..Options::default() };
    assert_eq!(exit(&of(DEMO, &options)), Exit::Done);
    let ten = of(&format!("{DEMO}---\n{}", manifest("Deployment", "", "")), &options);
    assert_eq!((ten.summary.pending, ten.consumers[0].name.as_str(), exit(&ten)), (1, "x", Exit::No));
}

#[rstest]
#[case::deployment("Deployment", "", State::Covered)]
#[case::with_reason("Deployment", "uptake.dev/rollout: 'off', uptake.dev/reason: by hand", State::OptedOut)]
#[case::without("Deployment", "uptake.dev/rollout: 'off'", State::Pending)]
#[case::lost_quotes("Deployment", "uptake.dev/rollout: off, uptake.dev/reason: by hand", State::Pending)]
#[case::reported("Deployment", "uptake.dev/rollout: report", State::Pending)]
#[case::ignored("Deployment", "uptake.dev/ignore-secrets: db", State::Pending)]
#[case::pod("Pod", "", State::CantRoll)]
#[case::job("Job", "", State::CantRoll)]
#[case::cron_job("CronJob", "", State::CantRoll)]
#[case::replica_set("ReplicaSet", "", State::CantRoll)]
#[case::custom("Rollout", "", State::Pending)]
#[case::custom_with_reason(
    "Rollout",
    "uptake.dev/rollout: 'off', uptake.dev/reason: by hand",
    State::OptedOut
)]
fn each_template_has_its_state(#[case] kind: &str, #[case] annotations: &str, #[case] state: State) {
    let report = of(&manifest(kind, annotations, ""), &Options::default());
    assert_eq!(report.consumers[0].state, state, "{}", report.consumers[0].reason);
}

#[test]
fn a_custom_kind_that_is_named_is_covered() {
    let workloads = vec!["argoproj.io/v1alpha1/Rollout".parse().unwrap()];
    let options = Options { workloads, ..Options::default() };
    assert_eq!(of(&manifest("Rollout", "", ""), &options).consumers[0].state, State::Covered);
}

#[rstest]
#[case("", State::Pending)]
#[case("checksum/secret: abc", State::Covered)]
#[case("uptake.dev/secret-version: db@1", State::Covered)]
#[case("checksum/secret: ''", State::Pending)]
#[case("prometheus.io/scrape: 'true'", State::Pending)]
fn without_the_operator_only_a_version_or_checksum_covers(#[case] annotations: &str, #[case] state: State) {
    let options = Options { without_operator: true, ..Options::default() };
    let report = of(&manifest("Deployment", "", annotations), &options);
    assert_eq!(report.consumers[0].state, state, "{}", report.consumers[0].reason);
}

#[test]
fn what_a_service_account_and_a_class_say_counts() {
    let text = "\
apiVersion: v1
kind: ServiceAccount
metadata: {name: default}
imagePullSecrets: [{name: registry}]
---
apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata: {name: vault}
spec: {secretObjects: [{secretName: synced, data: [{key: token}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers: [{name: c, volumeMounts: [{name: v, mountPath: /v}]}]
      volumes: [{name: v, csi: {driver: secrets-store.csi.k8s.io, volumeAttributes: {secretProviderClass: vault}}}]
";
    let report = of(text, &Options::default());
    let secrets: Vec<&str> = report.consumers[0].references.iter().map(|one| &*one.secret).collect();
    assert_eq!(secrets, ["registry", "secretproviderclass/vault", "synced"]);
}

#[test]
fn bad_yaml_fails_with_its_place() {
    let report = of("kind: Pod\nspec: [\n", &Options::default());
    assert_eq!((report.errors[0].file.as_str(), exit(&report)), ("f.yaml", Exit::No));
    assert!(report.errors[0].line >= 2, "{:?}", report.errors);
}

#[test]
fn sarif_names_the_place_of_what_is_pending() {
    let report = of(&format!("{DEMO}---\n{}", manifest("Rollout", "", "")), &Options::default());
    let sarif = sarif::sarif(&report);
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["ruleId"], "pending");
    let region = &results[0]["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"], DEMO.lines().count() + 2);
}

#[test]
fn who_consumes_nothing_is_not_listed() {
    let text = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {template: {spec: {containers: [{name: c}]}}}}";
    assert_eq!(of(text, &Options::default()).summary.consumers, 0);
}

#[test]
fn a_folder_is_read_once_whatever_links_lead_to_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), DEMO).unwrap();
    for link in ["back", "again"] {
        std::os::unix::fs::symlink(folder.path(), folder.path().join(link)).unwrap();
    }
    let mut texts = Vec::new();
    read(folder.path(), &mut BTreeSet::new(), &mut texts).unwrap();
    assert_eq!(texts.len(), 1, "{:?}", texts.iter().map(|(file, _)| file).collect::<Vec<_>>());
}
