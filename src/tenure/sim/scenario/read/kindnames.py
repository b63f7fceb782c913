"""Names of kinds that users write: ``node``, ``no``, ``claims``, ``NodePool``, ``np`` …"""

from __future__ import annotations

from typing import Final

from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.sim.apiserver.objects.kinds import ALL, KINDS
from tenure.sim.scenario.read.fields import closest

_SHORT: Final = {
    r.NODES: ("no",),
    r.PODS: ("po",),
    r.NODE_CLAIMS: ("claim", "claims", "nc"),
    r.NODE_POOLS: ("pool", "pools", "np"),
    r.MAINTENANCE_WINDOWS: ("window", "windows", "mw"),
    r.NODE_POOL_POLICIES: ("policy", "policies", "npp"),
    KWOK_NODE_CLASSES: ("nodeclass", "class"),
    r.DEPLOYMENTS: ("deploy",),
    r.DAEMON_SETS: ("ds",),
    r.REPLICA_SETS: ("rs",),
    r.STATEFUL_SETS: ("sts",),
    r.PERSISTENT_VOLUME_CLAIMS: ("pvc",),
    r.PERSISTENT_VOLUMES: ("pv",),
    r.STORAGE_CLASSES: ("sc",),
    r.VOLUME_ATTACHMENTS: ("attachment",),
    r.POD_DISRUPTION_BUDGETS: ("pdb", "budget"),
    r.NAMESPACES: ("ns",),
}

_WORDS: Final = {
    word: resource
    for resource in ALL
    if KINDS[resource].stored_as is None  # A kind has one name, whatever its versions.
    for word in (resource.kind.lower(), resource.plural, *_SHORT.get(resource, ()))
}

#: The words that a scenario may use as the name of a field.
KIND_WORDS: Final = (
    *("node", "claim", "pod", "pool", "window", "policy", "budget"),
    *("deployment", "statefulset", "job"),
)


def resource_called(word: str) -> Resource | None:
    """The kind that the word means, also with its group as ``kubectl get -o name`` writes it; None
    when it is unknown."""
    short, dot, group = word.lower().partition(".")
    found = _WORDS.get(short)
    return found if found is not None and (not dot or group == found.group) else None


def nearest_kind(word: str) -> str:
    """A guess where there is one. Sixty kinds, each with short names, are no help."""
    close = closest(word.lower(), tuple(_WORDS))
    return f'Did you mean "{_WORDS[close].kind}"?' if close else "For example Node, claim or pdb."
