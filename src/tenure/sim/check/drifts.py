"""Whether a claim differs from what is asked for now, from what it was truly made from.

What the pool's template was when Tenure created the claim is remembered here: neither the hash nor
the condition that Tenure writes is read. Where it is not known what a claim was made from, or the
node class was edited lately, the claim counts as different.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from tenure.errors import SpecError
from tenure.model.api import resource as r
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.check import read
from tenure.sim.check.read import State
from tenure.sim.cloud.cloud import SimulatedCloud
from tenure.sim.virtual.environment import Environment

_POOL: Final = "karpenter.sh/nodepool"
#: What the provider said of a claim may be so old.
_ASKED_WITHIN: Final = timedelta(hours=1)


class Drifts:
    def __init__(self, environment: Environment, store: Store, cloud: SimulatedCloud) -> None:
        self._environment, self._store, self._cloud = environment, store, cloud
        #: By the name of the claim: the templates that it may have been made from.
        self._made_from: dict[str, list[Any]] = {}
        #: By name: when a node class was edited last.
        self._edited: dict[str, datetime] = {}
        store.subscribe(r.NODE_CLAIMS, self._claim_changed)
        for resource in cloud.node_classes:
            store.subscribe(resource, self._class_changed)

    def creating(self, claim: Any, states: Iterable[State]) -> None:
        """Tenure is about to create it; ``states``: those that Tenure may have seen."""
        pool, name = dig(claim, "metadata", "labels", _POOL), dig(claim, "metadata", "name")
        seen = (state[r.NODE_POOLS].get(pool or "") for state in states)
        self._made_from.setdefault(name, [_hashed(one) for one in seen if one is not None])

    def differs(self, claim: Obj, state: State) -> bool:
        pool = state[r.NODE_POOLS].get(read.labels(claim).get(_POOL, ""))
        made_from = self._made_from.get(claim["metadata"]["name"])
        if pool is None or made_from is None:
            return True
        now = _hashed(pool)
        return (
            any(one != now for one in made_from)
            or not _matches(claim, pool)
            or self._has_other_image(claim)
            or not self._is_offered(claim)
        )

    def _has_other_image(self, claim: Obj) -> bool:
        name = dig(claim, "spec", "nodeClassRef", "name") or ""
        edited = self._edited.get(name)
        if edited is not None and self._environment.now() - edited < _ASKED_WITHIN:
            return True
        kind = dig(claim, "spec", "nodeClassRef", "kind")
        classes = [one for one in self._cloud.node_classes if one.kind == kind]
        wanted = dig(self._store.find(classes[0], "", name) if classes else None, "spec", "image")
        if wanted in (None, "", "latest"):
            wanted = self._cloud.newest_image
        uid = claim["metadata"]["uid"]
        return any(
            one.image_id != wanted for one in self._cloud.instances() if one.claim_uid == uid
        )

    def _is_offered(self, claim: Obj) -> bool:
        """The instance type, in the zone and as the capacity type of the claim, sold out or not."""
        labels = read.labels(claim)
        term = labels.get("karpenter.sh/capacity-type")
        terms = {term, "on-demand"} if term == "reserved" else {term}
        return any(
            one.zone == labels.get("topology.kubernetes.io/zone") and one.capacity_type in terms
            for kind in self._cloud.types
            if kind.name == labels.get("node.kubernetes.io/instance-type")
            for one in kind.offerings
        )

    def _claim_changed(self, type_: str, claim: Obj, _old: Obj | None) -> None:
        if type_ == DELETED:
            self._made_from.pop(claim["metadata"]["name"], None)

    def _class_changed(self, _type: str, new: Obj, old: Obj | None) -> None:
        if old is not None and dig(new, "spec") != dig(old, "spec"):
            self._edited[new["metadata"]["name"]] = self._environment.now()


def _hashed(pool: Obj) -> Any:
    """All of the template but its requirements, which are compared with labels."""
    template = pool["spec"]["template"]
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    parts = {**metadata, **spec}
    return {key: value for key, value in parts.items() if value and key != "requirements"}


def _matches(claim: Obj, pool: Obj) -> bool:
    wanted = {"matchExpressions": dig(pool, "spec", "template", "spec", "requirements")}
    try:
        return read.is_selected(wanted, read.labels(claim))
    except SpecError:
        return False
