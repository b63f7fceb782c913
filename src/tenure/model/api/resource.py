"""Where each kind lives in the API: group, version, plural, scope.

This is the one table that client, informers and the embedded store share.
"""

from __future__ import annotations

from typing import Final

import msgspec


class Resource(msgspec.Struct, frozen=True, cache_hash=True):
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> tuple[str, str]:
        """What a reference names it by."""
        return (self.group, self.kind)

    @property
    def prefix(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The request path of the collection, an object in it, or its subresource."""
        parts = [self.prefix]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


NAMESPACES: Final = Resource("", "v1", "Namespace", "namespaces", False)
PODS: Final = Resource("", "v1", "Pod", "pods", True)
NODES: Final = Resource("", "v1", "Node", "nodes", False)
EVENTS: Final = Resource("", "v1", "Event", "events", True)
SERVICES: Final = Resource("", "v1", "Service", "services", True)
CONFIG_MAPS: Final = Resource("", "v1", "ConfigMap", "configmaps", True)
PERSISTENT_VOLUMES: Final = Resource("", "v1", "PersistentVolume", "persistentvolumes", False)
PERSISTENT_VOLUME_CLAIMS: Final = Resource(
    "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True
)
LIMIT_RANGES: Final = Resource("", "v1", "LimitRange", "limitranges", True)
DAEMON_SETS: Final = Resource("apps", "v1", "DaemonSet", "daemonsets", True)
DEPLOYMENTS: Final = Resource("apps", "v1", "Deployment", "deployments", True)
REPLICA_SETS: Final = Resource("apps", "v1", "ReplicaSet", "replicasets", True)
STATEFUL_SETS: Final = Resource("apps", "v1", "StatefulSet", "statefulsets", True)
JOBS: Final = Resource("batch", "v1", "Job", "jobs", True)
POD_DISRUPTION_BUDGETS: Final = Resource(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True
)
PRIORITY_CLASSES: Final = Resource(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False
)
STORAGE_CLASSES: Final = Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", False)
VOLUME_ATTACHMENTS: Final = Resource(
    "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", False
)
CSI_NODES: Final = Resource("storage.k8s.io", "v1", "CSINode", "csinodes", False)
LEASES: Final = Resource("coordination.k8s.io", "v1", "Lease", "leases", True)
#: These three the embedded cluster does not serve, so they are not among ALL.
SECRETS: Final = Resource("", "v1", "Secret", "secrets", True)
VALIDATING_WEBHOOK_CONFIGURATIONS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    False,
)
CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)
NODE_POOLS: Final = Resource("karpenter.sh", "v1", "NodePool", "nodepools", False)
NODE_CLAIMS: Final = Resource("karpenter.sh", "v1", "NodeClaim", "nodeclaims", False)
MAINTENANCE_WINDOWS: Final = Resource(
    "karpenter.sh", "v1alpha1", "MaintenanceWindow", "maintenancewindows", False
)
NODE_POOL_POLICIES: Final = Resource(
    "tenure.dev", "v1alpha1", "NodePoolPolicy", "nodepoolpolicies", False
)

ALL: Final = (
    NAMESPACES,
    PODS,
    NODES,
    EVENTS,
    SERVICES,
    CONFIG_MAPS,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    LIMIT_RANGES,
    DAEMON_SETS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    JOBS,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    CSI_NODES,
    LEASES,
    NODE_POOLS,
    NODE_CLAIMS,
    MAINTENANCE_WINDOWS,
    NODE_POOL_POLICIES,
)

BY_KIND: Final = {(resource.api_version, resource.kind): resource for resource in ALL}
