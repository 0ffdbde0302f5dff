{{/* The program's arguments. */}}
{{- define "uptake.args" -}}
- controller
{{- with .Values.config }}
- --settle={{ .settle }}
- --settle-max={{ .settleMax }}
- --max-concurrent-rollouts={{ int .maxConcurrentRollouts }}
- --canary={{ .canary }}
- --default-rollout={{ .defaultRollout }}
- --first-sight={{ .firstSight }}
- --trigger={{ .trigger }}
- --roll-volumes={{ .rollVolumes }}
- --rollout-timeout={{ .rolloutTimeout }}
- --log-format={{ .logFormat }}
- --log-level={{ .logLevel }}
{{- end }}
- --leader-elect={{ .Values.leaderElection.enabled }}
- --http-addr=[::]:{{ int .Values.containerPort }}
- --own-namespace={{ .Release.Namespace }}
{{- range .Values.workloads }}
- --workload={{ (include "uptake.workload" . | fromYaml).flag }}
{{- end }}
{{- if .Values.namespaces }}
{{- range .Values.namespaces }}
- --namespace={{ . }}
{{- end }}
- --ignore-namespace=
{{- else }}
{{- range .Values.ignoreNamespaces }}
- --ignore-namespace={{ . }}
{{- else }}
- --ignore-namespace=
{{- end }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}
