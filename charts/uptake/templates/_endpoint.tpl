{{/* A scrape of the metrics page. The labels `namespace`, `kind` and `name` of uptake_stale_pods are the workload's, so
that the target's must not take their place. */}}
{{- define "uptake.endpoint" -}}
port: http
path: /metrics
honorLabels: true
{{- with .interval }}
interval: {{ . }}
{{- end }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- with .relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
