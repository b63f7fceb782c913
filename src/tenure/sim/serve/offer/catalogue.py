"""What is served, and its names: one row per kind, as a real server has it.

Discovery tells clients of it; ``kubectl get no`` and ``kubectl get all`` work because of
the short names and categories here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects import storedkinds as stored
from tenure.sim.apiserver.objects.customkinds import SERVED_KINDS
from tenure.sim.apiserver.objects.definition import DEFINITIONS, Definition
from tenure.sim.apiserver.objects.kinds import ALL, KINDS
from tenure.sim.apiserver.scaling import scaled

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_CHANGE: Final = ("get", "patch", "update")
_CALL: Final = ("create", "get")
_READ: Final = ("get", "list")


class Subresource(msgspec.Struct, frozen=True):
    name: str
    kind: str
    verbs: tuple[str, ...]
    #: Of another group than its parent's.
    group: str | None = None
    version: str = "v1"


class Served(msgspec.Struct, frozen=True, kw_only=True):
    resource: Resource
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    subresources: tuple[Subresource, ...] = ()
    singular: str = ""


_SCALE: Final = Subresource("scale", "Scale", _CHANGE, group="autoscaling")
_SHORT: Final[dict[Resource, tuple[str, ...]]] = {
    r.NAMESPACES: ("ns",),
    r.PODS: ("po",),
    r.NODES: ("no",),
    r.EVENTS: ("ev",),
    r.SERVICES: ("svc",),
    r.CONFIG_MAPS: ("cm",),
    r.PERSISTENT_VOLUMES: ("pv",),
    r.PERSISTENT_VOLUME_CLAIMS: ("pvc",),
    r.LIMIT_RANGES: ("limits",),
    r.DAEMON_SETS: ("ds",),
    r.DEPLOYMENTS: ("deploy",),
    r.REPLICA_SETS: ("rs",),
    r.STATEFUL_SETS: ("sts",),
    r.POD_DISRUPTION_BUDGETS: ("pdb",),
    r.PRIORITY_CLASSES: ("pc",),
    r.STORAGE_CLASSES: ("sc",),
    DEFINITIONS: ("crd", "crds"),
    stored.SERVICE_ACCOUNTS: ("sa",),
    stored.ENDPOINTS: ("ep",),
    stored.CRON_JOBS: ("cj",),
    stored.POD_AUTOSCALERS: ("hpa",),
    stored.AUTOSCALERS_V1: ("hpa",),
    stored.EVENTS_V1: ("ev",),
    stored.REPLICATION_CONTROLLERS: ("rc",),
    stored.RESOURCE_QUOTAS: ("quota",),
    stored.COMPONENT_STATUSES: ("cs",),
    stored.INGRESSES: ("ing",),
    stored.NETWORK_POLICIES: ("netpol",),
    **{kind.resource: kind.short_names for kind in SERVED_KINDS},
}
_ALL: Final = frozenset(
    {
        *(r.PODS, r.SERVICES, r.DAEMON_SETS, r.DEPLOYMENTS, r.REPLICA_SETS, r.STATEFUL_SETS),
        *(r.JOBS, stored.CRON_JOBS, stored.POD_AUTOSCALERS, stored.AUTOSCALERS_V1),
        stored.REPLICATION_CONTROLLERS,
    }
)
_EXTENSIONS: Final = frozenset(
    {
        *(DEFINITIONS, stored.API_SERVICES, stored.VALIDATING_WEBHOOKS, stored.MUTATING_WEBHOOKS),
        *(stored.ADMISSION_POLICIES, stored.ADMISSION_POLICY_BINDINGS),
    }
)
_OF_PODS: Final = (
    Subresource("attach", "PodAttachOptions", _CALL),
    Subresource("binding", "Binding", ("create",)),
    Subresource("eviction", "Eviction", ("create",), group="policy"),
    Subresource("exec", "PodExecOptions", _CALL),
    Subresource("log", "Pod", ("get",)),
    Subresource("portforward", "PodPortForwardOptions", _CALL),
)


def _served(resource: Resource) -> Served:
    categories: tuple[str, ...] = ("all",) if resource in _ALL else ()
    categories = ("api-extensions",) if resource in _EXTENSIONS else categories
    return Served(
        resource=resource,
        singular=resource.kind.lower(),
        short_names=_SHORT.get(resource, ()),
        categories=("karpenter",) if KINDS[resource].custom else categories,
        verbs=_verbs(resource),
        subresources=tuple(_subresources(resource)),
    )


def _verbs(resource: Resource) -> tuple[str, ...]:
    if KINDS[resource].read_only:
        return _READ
    # A namespace is never deleted along with others.
    return tuple(v for v in VERBS if (resource, v) != (r.NAMESPACES, "deletecollection"))


def _subresources(resource: Resource) -> Iterator[Subresource]:
    if resource == r.PODS:
        yield from _OF_PODS
    if scaled(KINDS[resource]):
        yield _SCALE
    if KINDS[resource].status:
        yield Subresource("status", resource.kind, _CHANGE)


def defined(definition: Definition) -> Served:
    """A kind that a client has defined."""
    status = Subresource("status", definition.resource.kind, _CHANGE)
    subresources = [
        *([_SCALE] if definition.scale else ()),
        *([status] if definition.status else ()),
    ]
    return Served(
        resource=definition.resource,
        singular=definition.singular,
        short_names=definition.short_names,
        categories=definition.categories,
        subresources=tuple(subresources),
    )


#: What is served from the start.
SERVED: Final = tuple(_served(resource) for resource in ALL)
