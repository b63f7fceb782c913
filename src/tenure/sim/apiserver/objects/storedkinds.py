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
