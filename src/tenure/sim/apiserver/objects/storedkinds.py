"""Kinds that are stored and shown, and that nothing here acts on: charts and typed clients bring them along."""

from __future__ import annotations

from typing import Final

from tenure.model.api.resource import Resource

SECRETS: Final = Resource("", "v1", "Secret", "secrets", True)
SERVICE_ACCOUNTS: Final = Resource("", "v1", "ServiceAccount", "serviceaccounts", True)
ENDPOINTS: Final = Resource("", "v1", "Endpoints", "endpoints", True)
CRON_JOBS: Final = Resource("batch", "v1", "CronJob", "cronjobs", True)
POD_AUTOSCALERS: Final = Resource(
    "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True
)
_RBAC: Final = "rbac.authorization.k8s.io"
ROLES: Final = Resource(_RBAC, "v1", "Role", "roles", True)
ROLE_BINDINGS: Final = Resource(_RBAC, "v1", "RoleBinding", "rolebindings", True)
CLUSTER_ROLES: Final = Resource(_RBAC, "v1", "ClusterRole", "clusterroles", False)
CLUSTER_ROLE_BINDINGS: Final = Resource(
    _RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", False
)
AUTOSCALERS_V1: Final = Resource(
    "autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True
)
REPLICATION_CONTROLLERS: Final = Resource(
    "", "v1", "ReplicationController", "replicationcontrollers", True
)
RESOURCE_QUOTAS: Final = Resource("", "v1", "ResourceQuota", "resourcequotas", True)
POD_TEMPLATES: Final = Resource("", "v1", "PodTemplate", "podtemplates", True)
COMPONENT_STATUSES: Final = Resource("", "v1", "ComponentStatus", "componentstatuses", False)
CONTROLLER_REVISIONS: Final = Resource(
    "apps", "v1", "ControllerRevision", "controllerrevisions", True
)
_NETWORK: Final = "networking.k8s.io"
INGRESSES: Final = Resource(_NETWORK, "v1", "Ingress", "ingresses", True)
INGRESS_CLASSES: Final = Resource(_NETWORK, "v1", "IngressClass", "ingressclasses", False)
NETWORK_POLICIES: Final = Resource(_NETWORK, "v1", "NetworkPolicy", "networkpolicies", True)
ENDPOINT_SLICES: Final = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", True)
EVENTS_V1: Final = Resource("events.k8s.io", "v1", "Event", "events", True)
RUNTIME_CLASSES: Final = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False)
_ADMISSION: Final = "admissionregistration.k8s.io"
VALIDATING_WEBHOOKS: Final = Resource(
    _ADMISSION,
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    False,
)
MUTATING_WEBHOOKS: Final = Resource(
    _ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False
)
ADMISSION_POLICIES: Final = Resource(
    _ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", False
)
ADMISSION_POLICY_BINDINGS: Final = Resource(
    _ADMISSION,
    "v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    False,
)
API_SERVICES: Final = Resource("apiregistration.k8s.io", "v1", "APIService", "apiservices", False)
CSI_DRIVERS: Final = Resource("storage.k8s.io", "v1", "CSIDriver", "csidrivers", False)
CSI_CAPACITIES: Final = Resource(
    "storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", True
)
