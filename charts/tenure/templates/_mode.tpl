{{/* Refuses half a mode. Helm applies CRDs before it reads a template, over those that are there (since helm 4):
so Karpenter's kinds come only where a user says so. */}}
{{- define "tenure.checkMode" -}}
{{- $live := lookup "v1" "Namespace" "" "kube-system" }}
{{- $pools := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "nodepools.karpenter.sh" }}
{{- if and (ne .Values.mode "full") .Values.karpenterCRDs.install }}
{{- fail "karpenterCRDs.install: beside Karpenter the CRDs of Karpenter's kinds are Karpenter's; leave it false" }}
{{- else if and $live (not $pools) (not .Values.karpenterCRDs.install) }}
{{- fail (ternary "this cluster has no NodePools: set karpenterCRDs.install=true" "this cluster has no NodePools: install Karpenter first" (eq .Values.mode "full")) }}
{{- end }}
{{- if and (ne .Values.mode "full") (eq (.Values.settings.takeOver | toString | lower) "true") }}
{{- fail "settings.takeOver: beside Karpenter Tenure has a Lease of its own; leave it false" }}
{{- end }}
{{- $release := .Values.settings.karpenterVersion | default "" | toString }}
{{- if and $release (not (regexMatch "^v?[0-9]{1,4}[.][0-9]{1,4}([.][0-9A-Za-z.+_-]{1,64})?$" $release)) }}
{{- fail (printf "settings.karpenterVersion: got %q, expected a release of Karpenter such as %q" $release "1.15") }}
{{- end }}
{{- end }}
