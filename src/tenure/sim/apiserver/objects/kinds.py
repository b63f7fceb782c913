"""How the kinds differ in the eyes of an API server: one row each, nothing else.

``status``: has a status subresource, so the main resource cannot write it, and vice versa.
``generation``: counts changes of everything but metadata and status.
``overwrite``: an update may leave out the resourceVersion (the last write wins).
``keeps_status``: a status given on create is kept (a kubelet registers its node that way).
``orphans``: a deletion that does not say so leaves dependents behind.
``fields``: what a field selector may ask about, beside metadata.name and metadata.namespace.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.sim.apiserver.objects import storedkinds as stored
from tenure.sim.apiserver.objects.definition import DEFINITIONS, Definition
from tenure.sim.apiserver.objects.foreignclasses import FOREIGN_NODE_CLASSES


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    resource: Resource
    status: bool = True
    generation: bool = True
    overwrite: bool = True
    keeps_status: bool = False
    custom: bool = False
    orphans: bool = False
    #: Deletion waits for the kubelet to finish it.
    graceful: bool = False
    #: The name must do as a DNS label, not only as a DNS subdomain.
    label_name: bool = False
    fields: frozenset[str] = frozenset()
    #: Of a kind that a client has defined.
    definition: Definition | None = None
    #: Of one more version of a kind: the version in which its objects are stored.
    stored_as: Resource | None = None
    #: The cluster writes it, clients only read it.
    read_only: bool = False
    #: Its shape, where another version of the kind has that name.
    shape: str = ""


_POD_FIELDS: Final = frozenset(
    {
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    }
)
_EVENT_FIELDS: Final = frozenset(
    {
        *(
            f"involvedObject.{field}"
            for field in (
                "kind",
                "namespace",
                "name",
                "uid",
                "apiVersion",
                "resourceVersion",
                "fieldPath",
            )
        ),
        "reason",
        "reportingComponent",
        "source",
        "type",
    }
)
_NEW_EVENT_FIELDS: Final = frozenset(
    {
        *(
            f"regarding.{field.removeprefix('involvedObject.')}"
            for field in _EVENT_FIELDS
            if field.startswith("involvedObject.")
        ),
        *("reason", "reportingController", "type"),
    }
)

ROWS: Final = (
    Kind(
        resource=r.NAMESPACES,
        generation=False,
        label_name=True,
        fields=frozenset({"status.phase"}),
    ),
    Kind(resource=r.PODS, graceful=True, fields=_POD_FIELDS),
    Kind(
        resource=r.NODES,
        generation=False,
        keeps_status=True,
        fields=frozenset({"spec.unschedulable"}),
    ),
    Kind(resource=r.EVENTS, status=False, generation=False, fields=_EVENT_FIELDS),
    Kind(resource=r.SERVICES, generation=False, label_name=True),
    Kind(resource=r.CONFIG_MAPS, status=False, generation=False),
    Kind(resource=r.PERSISTENT_VOLUMES, generation=False),
    Kind(resource=r.PERSISTENT_VOLUME_CLAIMS, generation=False),
    Kind(resource=r.LIMIT_RANGES, status=False, generation=False),
    Kind(resource=r.DAEMON_SETS),
    Kind(resource=r.DEPLOYMENTS),
    Kind(resource=r.REPLICA_SETS, fields=frozenset({"status.replicas"})),
    Kind(resource=r.STATEFUL_SETS),
    Kind(resource=r.JOBS, orphans=True, fields=frozenset({"status.successful"})),
    Kind(resource=r.POD_DISRUPTION_BUDGETS, overwrite=False),
    Kind(resource=r.PRIORITY_CLASSES, status=False),
    Kind(resource=r.STORAGE_CLASSES, status=False, generation=False),
    Kind(resource=r.VOLUME_ATTACHMENTS, generation=False, overwrite=False),
    Kind(resource=r.CSI_NODES, status=False, generation=False, overwrite=False),
    Kind(resource=r.LEASES, status=False, generation=False, overwrite=False),
    Kind(resource=stored.SECRETS, status=False, generation=False, fields=frozenset({"type"})),
    Kind(resource=stored.SERVICE_ACCOUNTS, status=False, generation=False),
    Kind(resource=stored.ENDPOINTS, status=False, generation=False),
    Kind(resource=stored.CRON_JOBS),
    Kind(resource=stored.POD_AUTOSCALERS, generation=False),
    Kind(resource=stored.ROLES, status=False, generation=False),
    Kind(resource=stored.ROLE_BINDINGS, status=False, generation=False),
    Kind(resource=stored.CLUSTER_ROLES, status=False, generation=False),
    Kind(resource=stored.CLUSTER_ROLE_BINDINGS, status=False, generation=False),
    Kind(resource=DEFINITIONS),
    Kind(
        resource=stored.AUTOSCALERS_V1,
        generation=False,
        stored_as=stored.POD_AUTOSCALERS,
        shape="HorizontalPodAutoscalerV1",
    ),
    Kind(
        resource=stored.EVENTS_V1,
        status=False,
        generation=False,
        fields=_NEW_EVENT_FIELDS,
        stored_as=r.EVENTS,
        shape="EventV1",
    ),
    Kind(resource=stored.REPLICATION_CONTROLLERS, fields=frozenset({"status.replicas"})),
    Kind(resource=stored.RESOURCE_QUOTAS, generation=False),
    Kind(resource=stored.POD_TEMPLATES, status=False),
    Kind(resource=stored.COMPONENT_STATUSES, status=False, generation=False, read_only=True),
    Kind(resource=stored.CONTROLLER_REVISIONS, status=False, generation=False),
    Kind(resource=stored.INGRESSES),
    Kind(resource=stored.INGRESS_CLASSES, status=False),
    Kind(resource=stored.NETWORK_POLICIES, status=False),
    Kind(resource=stored.ENDPOINT_SLICES, status=False),
    Kind(resource=stored.RUNTIME_CLASSES, status=False, generation=False, overwrite=False),
    Kind(resource=stored.VALIDATING_WEBHOOKS, status=False, overwrite=False),
    Kind(resource=stored.MUTATING_WEBHOOKS, status=False, overwrite=False),
    Kind(resource=stored.ADMISSION_POLICIES, overwrite=False),
    Kind(resource=stored.ADMISSION_POLICY_BINDINGS, status=False, overwrite=False),
    Kind(resource=stored.API_SERVICES, generation=False, overwrite=False),
    Kind(resource=stored.CSI_DRIVERS, status=False),
    Kind(resource=stored.CSI_CAPACITIES, status=False, generation=False, overwrite=False),
    Kind(resource=r.NODE_POOLS, custom=True, overwrite=False),
    Kind(resource=r.NODE_CLAIMS, custom=True, overwrite=False),
    Kind(resource=r.MAINTENANCE_WINDOWS, custom=True, overwrite=False),
    Kind(resource=r.NODE_POOL_POLICIES, custom=True, overwrite=False),
    Kind(resource=KWOK_NODE_CLASSES, custom=True, overwrite=False),
    *(Kind(resource=one, custom=True, overwrite=False) for one in FOREIGN_NODE_CLASSES),
)

KINDS: Final = {row.resource: row for row in ROWS}
#: Every kind that is served.
ALL: Final = tuple(KINDS)
BY_KIND: Final = {(resource.api_version, resource.kind): resource for resource in ALL}
