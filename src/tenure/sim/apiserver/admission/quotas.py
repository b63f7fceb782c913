"""ResourceQuotas: what an object counts for, which objects a quota is about, and the refusal above it.

Pure: the sums are kept by ``tenure.sim.apiserver.store.quotas``. Names are those of
Kubernetes: ``pods``, ``requests.cpu`` (``cpu`` is the same), ``limits.memory``, ``services.loadbalancers``,
``requests.storage``, ``<class>.storageclass.storage.k8s.io/requests.storage``, and ``count/<plural>.<group>`` for every
kind. A pod that has ended counts for ``count/pods`` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tenure.errors import SpecError
from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.model.values.quantity import UNIT, add, format_resources, maximum, parse_resources
from tenure.sim.apiserver.objects import storedkinds as stored
from tenure.sim.apiserver.objects.refusals import forbidden
from tenure.sim.apiserver.objects.tree import Obj, dig

Amounts = Mapping[str, int]

#: Kinds that are counted under their plural, too.
_COUNTED: Final = frozenset(
    {
        r.CONFIG_MAPS,
        r.SERVICES,
        r.PERSISTENT_VOLUME_CLAIMS,
        stored.SECRETS,
        stored.REPLICATION_CONTROLLERS,
        stored.RESOURCE_QUOTAS,
    }
)
#: Of these a changed object is checked, too; of others a new one alone.
CHECKED_ON_UPDATE: Final = frozenset({r.SERVICES, r.PERSISTENT_VOLUME_CLAIMS})
#: What a quota on it makes every container say.
_TO_BE_SAID: Final = {
    "cpu": ("requests", "cpu"),
    "memory": ("requests", "memory"),
    "requests.cpu": ("requests", "cpu"),
    "requests.memory": ("requests", "memory"),
    "limits.cpu": ("limits", "cpu"),
    "limits.memory": ("limits", "memory"),
}
#: Counted under their own name as well as under ``requests.``.
_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES: Final = "hugepages-"
_STORAGE: Final = "requests.storage"
_OF_CLASS: Final = ".storageclass.storage.k8s.io/"


def hard_of(quota: Obj) -> dict[str, int]:
    """What is allowed. Nothing is, of what cannot be read: another cluster may have brought it along."""
    found: dict[str, int] = {}
    for name, amount in (dig(quota, "spec", "hard") or {}).items():
        try:
            found |= parse_resources({name: amount})
        except SpecError:
            found[name] = 0
    return found


def as_texts(amounts: Amounts) -> dict[str, str]:
    """Memory and storage with binary suffixes, under whichever name they are counted."""
    texts = {}
    for name, nano in amounts.items():
        kind = name.rpartition("/")[2] if _OF_CLASS in name else name
        kind = kind.removeprefix("requests.").removeprefix("limits.")
        texts[name] = format_resources({kind: nano})[kind]
    return texts


def usage(resource: Resource, obj: Obj) -> dict[str, int]:
    """What one object counts for."""
    group = f".{resource.group}" if resource.group else ""
    counts = {f"count/{resource.plural}{group}": UNIT}
    if resource in _COUNTED:
        counts[resource.plural] = UNIT
    if resource == r.PODS:
        counts |= _of_pod(obj)
    elif resource == r.SERVICES:
        counts |= _of_service(obj.get("spec") or {})
    elif resource == r.PERSISTENT_VOLUME_CLAIMS:
        counts |= _of_claim(obj.get("spec") or {})
    return counts


def _of_pod(pod: Obj) -> dict[str, int]:
    if dig(pod, "status", "phase") in ("Succeeded", "Failed"):
        return {}
    counts = {"pods": UNIT}
    for name, nano in _of_containers(pod["spec"], "requests").items():
        counts[f"requests.{name}"] = nano
        if name in _PLAIN or name.startswith(_HUGE_PAGES):
            counts[name] = nano
    for name, nano in _of_containers(pod["spec"], "limits").items():
        if name in _PLAIN:
            counts[f"limits.{name}"] = nano
    return counts


def _of_containers(spec: Obj, which: str) -> dict[str, int]:
    """Containers and sidecars together, or the largest init container if that is more."""
    try:
        running: dict[str, int] = {}
        peak: dict[str, int] = {}
        for container in spec.get("initContainers") or ():
            needs = _amounts(container, which)
            if container.get("restartPolicy") == "Always":
                running = add(running, needs)
                peak = maximum(peak, running)
            else:
                peak = maximum(peak, add(running, needs))
        for container in spec.get("containers") or ():
            running = add(running, _amounts(container, which))
        found = maximum(peak, running) | _amounts(spec, which)
        if overhead := spec.get("overhead"):
            more = parse_resources(overhead)
            found = add(found, more if which == "requests" else _shared(more, found))
    except SpecError:  # Another cluster may have brought it along.
        return {}
    return found


def _shared(amounts: Amounts, named: Amounts) -> dict[str, int]:
    return {name: nano for name, nano in amounts.items() if name in named}


def _amounts(part: Obj, which: str) -> dict[str, int]:
    return parse_resources(dig(part, "resources", which) or {})


def _of_service(spec: Obj) -> dict[str, int]:
    balanced = spec.get("type") == "LoadBalancer"
    counts = {"services.loadbalancers": UNIT} if balanced else {}
    ports = spec.get("ports") or ()
    if balanced and spec.get("allocateLoadBalancerNodePorts") is False:
        ports = [port for port in ports if port.get("nodePort")]
    if balanced or spec.get("type") == "NodePort":
        counts["services.nodeports"] = len(ports) * UNIT
    return counts


def _of_claim(spec: Obj) -> dict[str, int]:
    counts = {r.PERSISTENT_VOLUME_CLAIMS.plural: UNIT}
    try:
        asked = _amounts(spec, "requests")
    except SpecError:
        asked = {}
    if "storage" in asked:
        counts[_STORAGE] = asked["storage"]
    if class_ := spec.get("storageClassName"):
        counts |= {f"{class_}{_OF_CLASS}{name}": nano for name, nano in counts.items()}
    return counts


# What a quota is about.


def is_about(quota: Obj, resource: Resource, obj: Obj) -> bool:
    """Whether the object is in every scope of the quota; only pods have scopes."""
    scopes = [*_scopes(quota)]
    if not scopes:
        return True
    return resource == r.PODS and all(_in_scope(obj, *scope) for scope in scopes)


def _scopes(quota: Obj) -> Iterator[tuple[str, str, list[str]]]:
    spec = quota.get("spec") or {}
    for scope in spec.get("scopes") or ():
        yield scope, "Exists", []
    for one in dig(spec, "scopeSelector", "matchExpressions") or ():
        yield one.get("scopeName", ""), one.get("operator", ""), one.get("values") or []


def _in_scope(pod: Obj, scope: str, operator: str, values: list[str]) -> bool:
    if scope == "PriorityClass":
        name = pod["spec"].get("priorityClassName") or ""
        if operator == "In":
            return name in values
        if operator == "NotIn":
            return name not in values
        return bool(name) == (operator == "Exists")
    return scope in _SCOPES and _SCOPES[scope](pod)


def _terminating(pod: Obj) -> bool:
    return (pod["spec"].get("activeDeadlineSeconds") or -1) >= 0


def _best_effort(pod: Obj) -> bool:
    return bool(dig(pod, "status", "qosClass") == "BestEffort")


def _across_namespaces(pod: Obj) -> bool:
    affinity = pod["spec"].get("affinity") or {}
    return any(
        _names_namespaces(affinity.get(which)) for which in ("podAffinity", "podAntiAffinity")
    )


def _names_namespaces(affinity: Any) -> bool:
    required = dig(affinity, "requiredDuringSchedulingIgnoredDuringExecution") or ()
    preferred = dig(affinity, "preferredDuringSchedulingIgnoredDuringExecution") or ()
    terms = [*required, *(one.get("podAffinityTerm") or {} for one in preferred)]
    return any(term.get("namespaces") or "namespaceSelector" in term for term in terms)


_SCOPES: Final[Mapping[str, Callable[[Obj], bool]]] = {
    "Terminating": _terminating,
    "NotTerminating": lambda pod: not _terminating(pod),
    "BestEffort": _best_effort,
    "NotBestEffort": lambda pod: not _best_effort(pod),
    "CrossNamespacePodAffinity": _across_namespaces,
}


# The refusal.


def check_said(resource: Resource, pod: Obj, quota: str, hard: Amounts) -> None:
    """Raises 403 for a pod whose containers do not say what the quota limits."""
    if resource != r.PODS:
        return
    spec, missing = pod["spec"], dict[str, list[str]]()
    if _amounts(spec, "requests") or _amounts(spec, "limits"):
        return
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for name in sorted(_TO_BE_SAID.keys() & hard.keys()):
        which, what = _TO_BE_SAID[name]
        silent = [one["name"] for one in containers if what not in _amounts(one, which)]
        if silent:
            missing[name] = sorted(silent)
    if missing:
        told = "; ".join(f"{name} for: {','.join(silent)}" for name, silent in missing.items())
        why = f"failed quota: {quota}: must specify {told}"
        raise forbidden(resource, pod["metadata"]["name"], why)


def check_room(
    resource: Resource, name: str, quota: str, hard: Amounts, used: Amounts, more: Amounts
) -> None:
    """Raises 403 for what would take the namespace above its quota."""
    over = sorted(
        one for one, nano in more.items() if nano > 0 and used.get(one, 0) + nano > hard[one]
    )
    if not over:
        return
    requested, so_far, limited = (
        ",".join(f"{key}={text}" for key, text in as_texts({k: of.get(k, 0) for k in over}).items())
        for of in (more, used, hard)
    )
    why = f"exceeded quota: {quota}, requested: {requested}, used: {so_far}, limited: {limited}"
    raise forbidden(resource, name, why)
