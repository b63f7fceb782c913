{{/* Whether others than the pod itself reach the page; then a token is required. Empty: no. */}}
{{- define "tenure.uiIsOpen" -}}
{{- if and .Values.ui.enabled (not (or (hasPrefix "127." .Values.ui.address) (eq "::1" .Values.ui.address))) }}true{{ end -}}
{{- end }}

{{/* Only then: whether a token is known, and what its user may list. */}}
{{- define "tenure.uiRules" -}}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
