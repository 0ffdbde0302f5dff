{{/* The spec of a pod that runs the program once. */}}
{{- define "uptake.once" -}}
{{- $root := index . 0 -}}
restartPolicy: {{ index . 1 }}
serviceAccountName: {{ index . 2 }}
enableServiceLinks: false
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: uptake
    image: {{ include "uptake.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args:
      {{- toYaml (index . 3) | nindent 6 }}
    {{- with $root.Values.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $root.Values.securityContext }}
    securityContext:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end -}}

{{/* Labels of a hook's pod: not the selector's, or the Service and the budget would count it. */}}
{{- define "uptake.hookLabels" -}}
app.kubernetes.io/part-of: {{ include "uptake.name" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
