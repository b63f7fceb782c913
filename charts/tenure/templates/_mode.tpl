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
{{- end }}
