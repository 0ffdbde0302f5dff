{{/* What Uptake may do. The tests run it under exactly these rules, and show that it uses each. */}}

{{/* Where it watches: in the whole cluster, or in each watched namespace. */}}
{{- define "uptake.rules.watched" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [apps]
  resources: [deployments, statefulsets, daemonsets]
  verbs: [get, list, watch, patch]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list]
- apiGroups: [secrets-store.csi.x-k8s.io]
  resources: [secretproviderclasses, secretproviderclasspodstatuses]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- range .Values.workloads }}
{{- $kind := include "uptake.workload" . | fromYaml }}
- apiGroups: [{{ $kind.group }}]
  resources: [{{ $kind.plural }}]
  verbs: [get, list, watch, patch]
{{- if eq $kind.group "apps.openshift.io" }}
- apiGroups: [""]
  resources: [replicationcontrollers]
  verbs: [list]
{{- else if eq $kind.group "serving.knative.dev" }}
- apiGroups: [serving.knative.dev]
  resources: [configurations, revisions]
  verbs: [list]
{{- end }}
{{- end }}
{{- end -}}

{{/* A custom kind; those that the program knows by name are spelt out. */}}
{{- define "uptake.workload" -}}
{{- if kindIs "string" . -}}
{{- $known := dict
      "Rollout" (dict "group" "argoproj.io" "plural" "rollouts")
      "CloneSet" (dict "group" "apps.kruise.io" "plural" "clonesets")
      "AdvancedStatefulSet" (dict "group" "apps.kruise.io" "plural" "statefulsets")
      "DeploymentConfig" (dict "group" "apps.openshift.io" "plural" "deploymentconfigs")
      "KnativeService" (dict "group" "serving.knative.dev" "plural" "services") -}}
{{- merge (dict "flag" .) (get $known .) | toYaml -}}
{{- else -}}
{{- $path := .template | default "" -}}
{{- $flag := printf "%s/%s/%s%s" .group .version .kind (ternary "" (printf "=%s" $path) (empty $path)) -}}
{{- dict "group" .group "plural" .plural "flag" $flag | toYaml -}}
{{- end -}}
{{- end -}}

{{/* In its own namespace: the ledger and the digest key, its identity, the Lease; and what a ClusterRole would give. */}}
{{- define "uptake.rules.own" -}}
{{- if .Values.namespaces -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, create, update]
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [{{ .Release.Namespace }}]
  verbs: [get, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- else -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create, update, delete]
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [{{ .Release.Namespace }}]
  verbs: [get]
{{- end }}
{{- if .Values.leaderElection.enabled }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [uptake]
  verbs: [get, update]
{{- end }}
{{- end -}}
