{{/* Settings become environment variables; _environment.tpl has their names. */}}

{{/* Numbers without an exponent; gates as Name=true,Name=false. */}}
{{- define "tenure.environmentValue" -}}
{{- if kindIs "map" . -}}
  {{- $gates := list -}}
  {{- range $gate, $on := . -}}
    {{- $gates = append $gates (printf "%s%s=%v" (substr 0 1 $gate | upper) (substr 1 -1 $gate) $on) -}}
  {{- end -}}
  {{- join "," $gates -}}
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}
  {{- int64 . -}}
{{- else -}}
  {{- . -}}
{{- end -}}
{{- end }}

{{- define "tenure.environment" -}}
{{- $found := dict "leaderElectionNamespace" (include "tenure.leaseNamespace" .) -}}
{{- $settings := dict -}}
{{- if .Values.ui.enabled -}}
  {{- $_ := set $found "uiPort" .Values.ui.port -}}
  {{- $_ := set $found "uiAddress" .Values.ui.address -}}
{{- end -}}
{{- if eq .Values.mode "full" -}}
  {{- $_ := set $found "webhookName" (include "tenure.webhookName" .) -}}
  {{- if eq .Values.settings.provider "kwok" -}}
    {{- $_ := set $found "providerNamespace" (include "tenure.providerNamespace" .) -}}
  {{- end -}}
  {{- $settings = merge $found .Values.settings -}}
{{- else -}}
  {{- /* Neither a cloud nor a webhook. */ -}}
  {{- $_ := set $found "besideKarpenter" true -}}
  {{- $_ := set $found "leaderElectionName" (include "tenure.leaseName" .) -}}
  {{- $settings = omit (merge $found .Values.settings) "provider" "providerNamespace" "instanceTypesFile" "webhookPort" "webhookName" -}}
{{- end -}}
{{- range $key, $value := $settings }}
{{- $text := include "tenure.environmentValue" $value }}
{{- if ne $text "" }}
- name: {{ include "tenure.environmentName" $key }}
  value: {{ $text | quote }}
{{- end }}
{{- end }}
{{- end }}
