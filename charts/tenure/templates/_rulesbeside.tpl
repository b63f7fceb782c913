{{/* What Tenure reads and writes beside Karpenter: annotations of Nodes and NodeClaims, claims, and the
     status of its own kinds. Without: status of Karpenter's kinds, deletion of Nodes, pods. */}}
{{- define "tenure.rulesBeside" -}}
# Karpenter's version and feature gates are on its Deployment. Its namespace and name are not known, so no
# Role and no resourceNames can be given; only Deployments with its label are asked for.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch]
# Which fields Karpenter's kinds have.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [nodepools.karpenter.sh, nodeclaims.karpenter.sh]
  verbs: [get]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
# An annotation says which claim was repaired as the probe of a failure domain; never the spec or the status.
- apiGroups: [karpenter.sh]
  resources: [nodepools]
  verbs: [get, list, watch, patch]
# The levers: annotations with their marks.
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch, patch]
# A claim that is created, Karpenter launches; one that is deleted, Karpenter drains and terminates.
- apiGroups: [karpenter.sh]
  resources: [nodeclaims]
  verbs: [get, list, watch, create, patch, delete]
# Tenure's own kinds.
- apiGroups: [karpenter.sh]
  resources: [maintenancewindows]
  verbs: [list, watch]
- apiGroups: [karpenter.sh]
  resources: [maintenancewindows/status]
  verbs: [patch]
- apiGroups: [tenure.dev]
  resources: [nodepoolpolicies]
  verbs: [list, watch]
- apiGroups: [tenure.dev]
  resources: [nodepoolpolicies/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, get, patch]
# The name of the cluster, where none is set.
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
# Whether another release of Tenure holds the Lease, or a Tenure that is in charge has Karpenter's, in any
# namespace: listed by name. Written in one
# namespace alone, by the Role.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "tenure.leaseName" . }}, karpenter-leader-election]
  verbs: [list]
{{- end }}
