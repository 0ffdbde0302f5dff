{{/* Names and labels. */}}

{{- define "uptake.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name says enough where it has the chart's in it. */}}
{{- define "uptake.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "uptake.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "uptake.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Objects of the whole cluster: two releases of one name in two namespaces must not share them. */}}
{{- define "uptake.clusterName" -}}
{{- if eq .Release.Namespace (include "uptake.fullname" .) -}}
{{- include "uptake.fullname" . -}}
{{- else -}}
{{- printf "%s-%s" .Release.Namespace (include "uptake.fullname" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "uptake.selector" -}}
app.kubernetes.io/name: {{ include "uptake.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "uptake.labels" -}}
{{ include "uptake.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* An object's metadata but for its name: (list $ NAMESPACE LABELS ANNOTATIONS); no namespace for the cluster's. */}}
{{- define "uptake.metadata" -}}
{{- $root := index . 0 -}}
{{- with index . 1 -}}
namespace: {{ . }}
{{ end -}}
labels:
  {{- include "uptake.labels" $root | nindent 2 }}
  {{- with index . 2 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (index . 3) $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "uptake.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "uptake.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "uptake.image" -}}
{{- with .Values.image -}}
{{- if .registry }}{{ .registry }}/{{ end -}}
{{- .repository }}:{{ default $.Chart.AppVersion .tag -}}
{{- if .digest }}@{{ .digest }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "uptake.priorityClassName" -}}
{{- if .Values.priorityClass.create -}}
{{- default (include "uptake.clusterName" .) .Values.priorityClassName -}}
{{- else -}}
{{- .Values.priorityClassName -}}
{{- end -}}
{{- end -}}
