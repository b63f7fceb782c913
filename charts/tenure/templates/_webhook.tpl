{{/* The configuration that API servers follow, and the Secret with the certificates. */}}
{{- define "tenure.webhookName" -}}
{{- .Values.settings.webhookName | default (printf "%s-webhook" (include "tenure.name" .)) }}
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
