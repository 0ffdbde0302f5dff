{{/* A duration such as 1m30s in milliseconds. */}}
{{- define "uptake.milliseconds" -}}
{{- $all := 0 -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 -}}
{{- range regexFindAll "[0-9]+[a-z]+" . -1 -}}
{{- $all = add $all (mul (regexFind "[0-9]+" . | int) (get $units (regexFind "[a-z]+" .))) -}}
{{- end -}}
{{- $all -}}
{{- end -}}

{{/* What the program would refuse is refused here, before its pods fail. */}}
{{- define "uptake.checks" -}}
{{- if and (gt (int .Values.replicaCount) 1) (not .Values.leaderElection.enabled) }}
{{- fail "leaderElection.enabled must be true with a replicaCount of more than 1: two operators would roll the same workloads" }}
{{- end }}
{{- with .Values.config }}
{{- if gt (include "uptake.milliseconds" .settle | int) (include "uptake.milliseconds" .settleMax | int) }}
{{- fail (printf "config.settle (%s) is longer than config.settleMax (%s): raise that too" .settle .settleMax) }}
{{- end }}
{{- if lt (include "uptake.milliseconds" .rolloutTimeout | int) 1000 }}
{{- fail (printf "config.rolloutTimeout (%s) is less than 1s: every rollout would have failed" .rolloutTimeout) }}
{{- end }}
{{- end }}
{{- end -}}

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
