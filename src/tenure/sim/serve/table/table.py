"""Objects as tables: what a server sends to a client that asks for ``as=Table``.

Every kind has its columns; those of the custom kinds are in their CRDs. Ages are by the
cluster's own clock. In a watch only the first table carries the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.schema.structure.crd import Column
from tenure.sim.apiserver.objects import storedkinds as stored
from tenure.sim.apiserver.objects.customkinds import SERVED_KINDS
from tenure.sim.apiserver.objects.definition import DEFINITIONS
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.serve.table import cells as c
from tenure.sim.serve.table import storedcells as s
from tenure.sim.serve.table.ages import age
from tenure.sim.serve.table.jsonpath import NotUnderstood, find
from tenure.sim.serve.table.nodecells import event_cells, node_cells
from tenure.sim.serve.table.podcells import pod_cells

API_VERSION: Final = "meta.k8s.io/v1"
Cells = Callable[[Obj, datetime], list[Any]]


class Heading(msgspec.Struct, frozen=True):
    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    #: 1: only with ``-o wide``.
    priority: int = 0


class Columns(msgspec.Struct, frozen=True):
    headings: tuple[Heading, ...]
    cells: Cells


def _columns(cells: Cells, *names: str) -> Columns:
    """``Age`` is a column, ``#Desired`` one of numbers, ``?Attached`` of yes or no, ``(IP)`` wide."""
    return Columns(tuple(_heading(name) for name in names), cells)


def _heading(name: str) -> Heading:
    wide = name.startswith("(") and name.endswith(")")
    name = name[1:-1] if wide else name
    type_ = {"#": "integer", "?": "boolean"}.get(name[0], "string")
    name = name.lstrip("#?")
    return Heading(name, type_, "name" if name == "Name" else "", "", int(wide))


_TEMPLATE: Final = ("(Containers)", "(Images)", "(Selector)")
_BINDING: Final = ("Name", "Role", "Age", "(Users)", "(Groups)", "(ServiceAccounts)")
_BUILT_IN: Final[dict[Resource, Columns]] = {
    r.NAMESPACES: _columns(c.namespace_cells, "Name", "Status", "Age"),
    r.PODS: _columns(
        pod_cells,
        *("Name", "Ready", "Status", "Restarts", "Age"),
        *("(IP)", "(Node)", "(Nominated Node)", "(Readiness Gates)"),
    ),
    r.NODES: _columns(
        node_cells,
        *("Name", "Status", "Roles", "Age", "Version"),
        *("(Internal-IP)", "(External-IP)", "(OS-Image)", "(Kernel-Version)"),
        "(Container-Runtime)",
    ),
    r.EVENTS: _columns(
        event_cells,
        *("Last Seen", "Type", "Reason", "Object", "(Subobject)", "(Source)", "Message"),
        *("(First Seen)", "(Count)", "(Name)"),
    ),
    r.SERVICES: _columns(
        c.service_cells,
        *("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "(Selector)"),
    ),
    r.CONFIG_MAPS: _columns(c.config_map_cells, "Name", "Data", "Age"),
    r.PERSISTENT_VOLUMES: _columns(
        c.volume_cells,
        *("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim"),
        *("StorageClass", "VolumeAttributesClass", "Reason", "Age", "(VolumeMode)"),
    ),
    r.PERSISTENT_VOLUME_CLAIMS: _columns(
        c.volume_claim_cells,
        *("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass"),
        *("VolumeAttributesClass", "Age", "(VolumeMode)"),
    ),
    r.LIMIT_RANGES: _columns(c.limit_range_cells, "Name", "Created At"),
    r.DAEMON_SETS: _columns(
        c.daemon_set_cells,
        *("Name", "#Desired", "#Current", "#Ready", "#Up-to-date", "#Available"),
        *("Node Selector", "Age", *_TEMPLATE),
    ),
    r.DEPLOYMENTS: _columns(
        c.deployment_cells, "Name", "Ready", "Up-to-date", "Available", "Age", *_TEMPLATE
    ),
    r.REPLICA_SETS: _columns(
        c.replica_set_cells, "Name", "#Desired", "#Current", "#Ready", "Age", *_TEMPLATE
    ),
    r.STATEFUL_SETS: _columns(c.stateful_set_cells, "Name", "Ready", "Age", *_TEMPLATE[:2]),
    r.JOBS: _columns(c.job_cells, "Name", "Status", "Completions", "Duration", "Age", *_TEMPLATE),
    r.POD_DISRUPTION_BUDGETS: _columns(
        c.budget_cells, "Name", "Min Available", "Max Unavailable", "#Allowed Disruptions", "Age"
    ),
    r.PRIORITY_CLASSES: _columns(
        c.priority_class_cells, "Name", "#Value", "?Global-Default", "Age", "PreemptionPolicy"
    ),
    r.STORAGE_CLASSES: _columns(
        c.storage_class_cells,
        *("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode"),
        *("AllowVolumeExpansion", "Age"),
    ),
    r.VOLUME_ATTACHMENTS: _columns(
        c.attachment_cells, "Name", "Attacher", "PV", "Node", "?Attached", "Age"
    ),
    r.CSI_NODES: _columns(c.csi_node_cells, "Name", "#Drivers", "Age"),
    r.LEASES: _columns(c.lease_cells, "Name", "Holder", "Age"),
    stored.SECRETS: _columns(s.secret_cells, "Name", "Type", "#Data", "Age"),
    stored.SERVICE_ACCOUNTS: _columns(s.service_account_cells, "Name", "Secrets", "Age"),
    stored.ENDPOINTS: _columns(s.endpoints_cells, "Name", "Endpoints", "Age"),
    stored.CRON_JOBS: _columns(
        s.cron_job_cells,
        *("Name", "Schedule", "Timezone", "?Suspend", "#Active", "Last Schedule", "Age"),
        *_TEMPLATE,
    ),
    stored.POD_AUTOSCALERS: _columns(
        s.autoscaler_cells,
        *("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"),
    ),
    stored.AUTOSCALERS_V1: _columns(
        s.old_autoscaler_cells,
        *("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"),
    ),
    stored.EVENTS_V1: _columns(
        s.new_event_cells,
        *("Last Seen", "Type", "Reason", "Object", "(Subobject)", "(Source)", "Message"),
        *("(First Seen)", "(Count)", "(Name)"),
    ),
    stored.REPLICATION_CONTROLLERS: _columns(
        s.replication_controller_cells,
        *("Name", "#Desired", "#Current", "#Ready", "Age", *_TEMPLATE),
    ),
    stored.RESOURCE_QUOTAS: _columns(s.quota_cells, "Name", "Request", "Limit", "Age"),
    stored.POD_TEMPLATES: _columns(s.template_cells, "Name", "Containers", "Images", "Pod Labels"),
    stored.COMPONENT_STATUSES: _columns(s.component_cells, "Name", "Status", "Message", "Error"),
    stored.CONTROLLER_REVISIONS: _columns(
        s.revision_cells, "Name", "Controller", "#Revision", "Age"
    ),
    stored.INGRESSES: _columns(
        s.ingress_cells, "Name", "Class", "Hosts", "Address", "Ports", "Age"
    ),
    stored.INGRESS_CLASSES: _columns(
        s.ingress_class_cells, "Name", "Controller", "Parameters", "Age"
    ),
    stored.NETWORK_POLICIES: _columns(s.network_policy_cells, "Name", "Pod-Selector", "Age"),
    stored.ENDPOINT_SLICES: _columns(
        s.slice_cells, "Name", "AddressType", "Ports", "Endpoints", "Age"
    ),
    stored.RUNTIME_CLASSES: _columns(s.runtime_class_cells, "Name", "Handler", "Age"),
    stored.VALIDATING_WEBHOOKS: _columns(s.webhook_cells, "Name", "#Webhooks", "Age"),
    stored.MUTATING_WEBHOOKS: _columns(s.webhook_cells, "Name", "#Webhooks", "Age"),
    stored.ADMISSION_POLICIES: _columns(
        s.admission_policy_cells, "Name", "#Validations", "ParamKind", "Age"
    ),
    stored.ADMISSION_POLICY_BINDINGS: _columns(
        s.policy_binding_cells, "Name", "PolicyName", "ParamRef", "Age"
    ),
    stored.API_SERVICES: _columns(s.api_service_cells, "Name", "Service", "Available", "Age"),
    stored.CSI_DRIVERS: _columns(
        s.driver_cells,
        *("Name", "?AttachRequired", "?PodInfoOnMount", "?StorageCapacity", "TokenRequests"),
        *("?RequiresRepublish", "Modes", "Age"),
    ),
    stored.CSI_CAPACITIES: _columns(s.capacity_cells, "Name", "StorageClass", "Capacity", "Age"),
    DEFINITIONS: _columns(c.limit_range_cells, "Name", "Created At"),
    stored.ROLES: _columns(c.limit_range_cells, "Name", "Created At"),
    stored.CLUSTER_ROLES: _columns(c.limit_range_cells, "Name", "Created At"),
    stored.ROLE_BINDINGS: _columns(s.binding_cells, *_BINDING),
    stored.CLUSTER_ROLE_BINDINGS: _columns(s.binding_cells, *_BINDING),
}

#: Of a scale, which is a part of another object.
SCALE_COLUMNS: Final = _columns(s.scale_cells, "Name", "#Desired", "#Available", "Age")


def custom_columns(columns: tuple[Column, ...]) -> Columns:
    """Those of a custom kind, as its definition says them."""
    headings = [Heading("Name", "string", "name")]
    headings += [Heading(col.name, col.type, "", "", int(col.wide)) for col in columns]

    def cells(obj: Obj, now: datetime) -> list[Any]:
        return [c.name(obj), *(_cell(column, obj, now) for column in columns)]

    return Columns(tuple(headings), cells)


def _cell(column: Column, obj: Obj, now: datetime) -> Any:
    try:
        value = find(column.path, obj)
    except NotUnderstood:
        return None  # One column that stays empty must not hide the others.
    if value is None:
        return None
    if column.type == "date":
        return age(value, now)
    if column.type == "string" and not isinstance(value, str):
        return msgspec.json.encode(value).decode()
    return value


COLUMNS: Final = {
    **_BUILT_IN,
    **{kind.resource: custom_columns(kind.columns) for kind in SERVED_KINDS},
}


def table(
    resource: Resource,
    objects: Sequence[Obj],
    now: datetime,
    *,
    metadata: Obj,
    include: str = "",
    headings: bool = True,
    columns: Columns | None = None,
) -> Obj:
    """``include``: what each row carries beside its cells: ``Metadata``, ``Object`` or ``None``.

    ``columns``: of a kind that is not built in.
    """
    columns = columns or COLUMNS[resource]
    return {
        "kind": "Table",
        "apiVersion": API_VERSION,
        "metadata": metadata,
        "columnDefinitions": columns.headings if headings else None,
        "rows": [
            {"cells": _cells(columns, obj, now), **_carried(resource, obj, include)}
            for obj in objects
        ],
    }


def _cells(columns: Columns, obj: Obj, now: datetime) -> list[Any]:
    try:
        return columns.cells(obj, now)
    except (AttributeError, LookupError, TypeError, ValueError):
        # One object with invalid parts that are not validated must not hide the others.
        return [c.name(obj), *(None for _ in columns.headings[1:])]


def _carried(resource: Resource, obj: Obj, include: str) -> Obj:
    if include == "None":
        return {"object": None}
    if include == "Object":
        typed = {"kind": resource.kind, "apiVersion": resource.api_version}
        return {"object": {**typed, **obj}}
    return {"object": partial(obj)}


def partial(obj: Obj) -> Obj:
    """Only the metadata of an object, as clients that need no more ask for it."""
    kind = {"kind": "PartialObjectMetadata", "apiVersion": API_VERSION}
    return {**kind, "metadata": obj["metadata"]}
