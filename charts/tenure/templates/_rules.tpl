{{/* What Tenure reads and writes where it is in charge of the nodes. */}}
{{- define "tenure.rules" -}}
# What it decides from.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: [apps]
  resources: [daemonsets]
  verbs: [list, watch]
# How much room the pods of DaemonSets will take; without it their templates are believed.
- apiGroups: [""]
  resources: [limitranges]
  verbs: [list, watch]
# Their labels: pod affinity may select namespaces. Without it such pods get no new node.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [persistentvolumes, persistentvolumeclaims]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [volumeattachments, storageclasses, csinodes]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
# What it looks after.
- apiGroups: [karpenter.sh]
  resources: [nodepools]
  verbs: [list, watch, patch]
- apiGroups: [karpenter.sh]
  resources: [nodeclaims]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [karpenter.sh]
  resources: [maintenancewindows]
  verbs: [list, watch]
- apiGroups: [karpenter.sh]
  resources: [nodepools/status, nodeclaims/status, maintenancewindows/status]
  verbs: [patch]
- apiGroups: [tenure.dev]
  resources: [nodepoolpolicies]
  verbs: [list, watch]
- apiGroups: [tenure.dev]
  resources: [nodepoolpolicies/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
{{- if ne (toString .Values.settings.nominatePods) "false" }}
# The node that was launched for a pod: the scheduler keeps the room there for it.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
{{- end }}
# Only for a node whose deadline has come near.
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
# What it tells people; pods have their events in their own namespaces.
- apiGroups: [""]
  resources: [events]
  verbs: [create, get, patch]
# The name of the cluster, where none is set.
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
# Whether another program holds the Lease, or a Tenure runs beside Karpenter, in any namespace: listed by name.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "tenure.leaseName" . }}, tenure-beside-karpenter]
  verbs: [list]
{{- if eq .Values.settings.provider "kwok" }}
# The kwok provider: its instances are Nodes.
- apiGroups: [karpenter.kwok.sh]
  resources: [kwoknodeclasses]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [nodes]
  verbs: [create]
# What is rebooted has another boot id.
- apiGroups: [""]
  resources: [nodes/status]
  verbs: [patch]
{{- end }}
{{- end }}
