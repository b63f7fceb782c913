{{/* What everything is called: the release, with "tenure" in it once. */}}
{{- define "tenure.name" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" }}
{{- else if contains "tenure" .Release.Name }}
{{- .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-tenure" .Release.Name | trunc 53 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* By these the Deployment finds its pods: they must never change. */}}
{{- define "tenure.selector" -}}
app.kubernetes.io/name: tenure
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tenure.labels" -}}
{{ include "tenure.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tenure.metadata" -}}
name: {{ include "tenure.name" . }}
labels:
  {{- include "tenure.labels" . | nindent 2 }}
{{- with .Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "tenure.account" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "tenure.name" .) }}
{{- else }}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* Where the provider keeps what it needs in the cluster: nothing else is there. */}}
{{- define "tenure.providerNamespace" -}}
{{- .Values.settings.providerNamespace | default (printf "%s-%s" (include "tenure.name" .) .Values.settings.provider) }}
{{- end }}

{{/* Where the Lease is. */}}
{{- define "tenure.leaseNamespace" -}}
{{- .Values.settings.leaderElectionNamespace | default .Release.Namespace }}
{{- end }}

{{/* Beside Karpenter both act, each under a Lease of its own. */}}
{{- define "tenure.leaseName" -}}
{{- $karpenters := "karpenter-leader-election" }}
{{- $name := .Values.settings.leaderElectionName | default (ternary $karpenters "tenure-beside-karpenter" (eq .Values.mode "full")) }}
{{- if and (ne .Values.mode "full") (eq $name $karpenters) }}
{{- fail "settings.leaderElectionName: beside Karpenter that Lease is Karpenter's; leave it empty" }}
{{- end }}
{{- $name }}
{{- end }}

{{- define "tenure.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ $tag }}
{{- end -}}
{{- end }}
