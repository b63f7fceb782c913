{{/* The configuration that API servers follow, and the Secret with the certificates. */}}
{{- define "tenure.webhookName" -}}
{{- .Values.settings.webhookName | default (printf "%s-webhook" (include "tenure.name" .)) }}
{{- end }}

{{/* Its port; empty: there is none. Beside Karpenter there is none, as its kinds are not ours to refuse. */}}
{{- define "tenure.webhookPort" -}}
{{- if and (eq .Values.mode "full") .Values.settings.webhookPort }}{{ .Values.settings.webhookPort }}{{ end }}
{{- end }}

{{- define "tenure.webhookMetadata" -}}
name: {{ include "tenure.webhookName" . }}
labels:
  {{- include "tenure.labels" . | nindent 2 }}
{{- with .Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
