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
from tenure.sim.apiserver.scaling import SCALED

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_CHANGE: Final = ("get", "patch", "update")
_CALL: Final = ("create", "get")


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
    **{kind.resource: kind.short_names for kind in SERVED_KINDS},
}
_ALL: Final = frozenset(
    {
        *(r.PODS, r.SERVICES, r.DAEMON_SETS, r.DEPLOYMENTS, r.REPLICA_SETS, r.STATEFUL_SETS),
        *(r.JOBS, stored.CRON_JOBS, stored.POD_AUTOSCALERS),
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
    categories = ("api-extensions",) if resource == DEFINITIONS else categories
    return Served(
        resource=resource,
        singular=resource.kind.lower(),
        short_names=_SHORT.get(resource, ()),
        categories=("karpenter",) if KINDS[resource].custom else categories,
        # A namespace is never deleted along with others.
        verbs=tuple(v for v in VERBS if (resource, v) != (r.NAMESPACES, "deletecollection")),
        subresources=tuple(_subresources(resource)),
    )


def _subresources(resource: Resource) -> Iterator[Subresource]:
    if resource == r.PODS:
        yield from _OF_PODS
    if resource in SCALED:
        yield _SCALE
    if KINDS[resource].status:
        yield Subresource("status", resource.kind, _CHANGE)


def defined(definition: Definition) -> Served:
    """A kind that a client has defined."""
    status = Subresource("status", definition.resource.kind, _CHANGE)
    return Served(
        resource=definition.resource,
        singular=definition.singular,
        short_names=definition.short_names,
        categories=definition.categories,
        subresources=(status,) if definition.status else (),
    )


#: What is served from the start.
SERVED: Final = tuple(_served(resource) for resource in ALL)
