"""What a PersistentVolumeClaim asks of a volume, and a volume or its class of a node.

Read by the scheduler, and by the controller that gives claims their volumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tenure.model.api.pod import LabelSelector, NodeSelectorTerm
from tenure.model.api.resource import PERSISTENT_VOLUMES, STORAGE_CLASSES
from tenure.model.matching.selectors import matches
from tenure.model.values.quantity import parse_quantity
from tenure.sim.actors.scheduling.matching import matches_term
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store

#: Set by the scheduler on a claim that waits: the node of its first consumer.
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_WAITS: Final = "WaitForFirstConsumer"


class ClaimUse(msgspec.Struct, frozen=True):
    """A claim that a pod's volume stands for."""

    name: str
    #: It is made for the pod, and goes with it.
    ephemeral: bool = False


def claims_used(pod: Obj) -> tuple[ClaimUse, ...]:
    """The claims of the pod, each once, in the order of its volumes."""
    found: dict[ClaimUse, None] = {}
    for volume in pod["spec"].get("volumes") or ():
        if name := dig(volume, "persistentVolumeClaim", "claimName"):
            found[ClaimUse(name)] = None
        elif volume.get("ephemeral"):
            found[ClaimUse(f"{pod['metadata']['name']}-{volume['name']}", ephemeral=True)] = None
    return tuple(found)


def is_bound(claim: Obj) -> bool:
    return bool(dig(claim, "status", "phase") == "Bound")


def class_of(store: Store, claim: Obj) -> Obj | None:
    """None: it is missing, or the claim asks for none."""
    name = claim["spec"].get("storageClassName")
    return store.find(STORAGE_CLASSES, "", name) if name else None


def waits_for_consumer(storage_class: Obj | None) -> bool:
    """A claim whose class is missing does not wait for a pod: it waits for the class."""
    return storage_class is not None and storage_class.get("volumeBindingMode") == _WAITS


def provisions(storage_class: Obj | None) -> bool:
    return storage_class is not None and storage_class["provisioner"] != NO_PROVISIONER


def reaches(volume: Obj, node: str, labels: Mapping[str, str]) -> bool:
    """Whether the volume can be used from the node, by its node affinity."""
    terms = dig(volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
    if terms is None:
        return True
    return any(
        matches_term(msgspec.convert(term, NodeSelectorTerm), node, labels) for term in terms
    )


def allows(storage_class: Obj, labels: Mapping[str, str]) -> bool:
    """Whether the class makes volumes for nodes with these labels."""
    terms = storage_class.get("allowedTopologies") or ()
    return not terms or any(
        all(
            labels.get(one["key"]) in (one.get("values") or ())
            for one in term.get("matchLabelExpressions") or ()
        )
        for term in terms
    )


def free_volumes(store: Store, claim: Obj) -> list[Obj]:
    """The volumes that the claim can have, the smallest first."""
    free = [volume for volume in store.list(PERSISTENT_VOLUMES) if _fits(volume, claim)]
    return sorted(free, key=lambda volume: (_size(volume), volume["metadata"]["name"]))


def _fits(volume: Obj, claim: Obj) -> bool:
    spec, wanted = volume["spec"], claim["spec"]
    if "claimRef" in spec or "deletionTimestamp" in volume["metadata"]:
        return False
    if (spec.get("storageClassName") or "") != (wanted.get("storageClassName") or ""):
        return False
    if not set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
        return False
    if selector := wanted.get("selector"):
        labels = volume["metadata"].get("labels") or {}
        if not matches(msgspec.convert(selector, LabelSelector), labels):
            return False
    asked = dig(wanted, "resources", "requests", "storage")
    return _size(volume) >= (parse_quantity(asked) if asked else 0)


def _size(volume: Obj) -> int:
    capacity = dig(volume, "spec", "capacity", "storage")
    return parse_quantity(capacity) if capacity else 0
