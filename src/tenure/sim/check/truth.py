"""What is true: the objects of the store and the instances of the cloud themselves, not Tenure's view.

NodePoolPolicies are part of it, by arithmetic of its own: nothing here knows how Tenure does it. A value
that the API server has written by itself says nothing, and a policy speaks in its place. Of two policies
that select a pool in the same way none applies, and nothing that they protect may go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.routes import Route
from tenure.sim.apiserver.store.store import Store
from tenure.sim.check import read
from tenure.sim.check.read import State
from tenure.sim.cloud.cloud import SimulatedCloud

_POOL: Final = "karpenter.sh/nodepool"
_DEFAULT_BUDGETS: Final = [{"nodes": "10%"}]
_TTL: Final = "15m"
Policies = Mapping[str, Obj]


class Truth:
    def __init__(self, store: Store, cloud: SimulatedCloud) -> None:
        self._store, self._cloud = store, cloud

    def stored(self, target: Route) -> Obj | None:
        return self._store.find(target.resource, target.namespace, target.name)

    def pool_of(self, obj: Obj) -> Obj | None:
        """Of a claim or a Node, by its label."""
        name = read.labels(obj).get("karpenter.sh/nodepool", "")
        return settled_pool(self._store.find(r.NODE_POOLS, "", name), self.policies())

    def pools(self) -> list[Obj]:
        """As policies make them."""
        policies, records = self.policies(), self._store.shelf(r.NODE_POOLS).records.values()
        settled = (settled_pool(one.obj, policies) for one in records)
        return [pool for pool in settled if pool is not None]

    def policies(self) -> dict[str, Obj]:
        records = self._store.shelf(r.NODE_POOL_POLICIES).records
        return {name: one.obj for name, one in records.items()}

    def node(self, name: str) -> Obj | None:
        """The Node; when it is gone, as it was last: it may have gone a moment ago."""
        shelf = self._store.shelf(r.NODES)
        record = shelf.records.get(name)
        if record is None:
            past = (event.record for event in reversed(shelf.history.since(shelf.history.floor)))
            record = next((one for one in past if one.obj["metadata"]["name"] == name), None)
        return record.obj if record is not None else None

    def nodes(self) -> dict[str, Obj]:
        """By name."""
        return {name: one.obj for name, one in self._store.shelf(r.NODES).records.items()}

    def nodes_of(self, claim: Obj) -> list[Obj]:
        return list(read.nodes_of(claim, self.nodes()))

    def pods(self) -> Iterator[Obj]:
        return (record.obj for record in self._store.shelf(r.PODS).records.values())

    def claim_of(self, node: Obj) -> Obj | None:
        return self.claim_where(("status", "providerID"), dig(node, "spec", "providerID") or "")

    def claim_where(self, path: tuple[str, str], value: str) -> Obj | None:
        records = self._store.shelf(r.NODE_CLAIMS).records.values() if value else ()
        return next((one.obj for one in records if dig(one.obj, *path) == value), None)

    def has_instance(self, resource: Resource, obj: Obj) -> bool:
        """Whether the cloud still knows an instance of that claim, or of that Node's claim."""
        uid = obj["metadata"]["uid"]
        if resource == r.NODES:
            claim = self.claim_of(obj)
            if claim is None:
                return False  # Its instance went with its claim, or was never ours.
            uid = claim["metadata"]["uid"]
        return any(instance.claim_uid == uid for instance in self._cloud.instances())

    def is_terminated(self, node: Obj) -> bool:
        """Whether the cloud no longer knows the instance of a Node."""
        provider_id = dig(node, "spec", "providerID")
        return all(one.provider_id != provider_id for one in self._cloud.instances())


# -- policies --------------------------------------------------------------------------


def settled_pool(pool: Obj | None, policies: Policies) -> Obj | None:
    """The pool as its policy makes it; the same where none applies."""
    found = _most_specific(pool, policies) if pool is not None and policies else []
    if pool is None or not found:
        return pool
    spec = {**pool["spec"]}
    block = spec["disruption"] = {**(spec.get("disruption") or {})}
    own = block.get("budgets")
    kept = [] if own is None or own == _DEFAULT_BUDGETS else own
    if any("budgets" in one for one in found):
        theirs = [{"nodes": "0"}] if len(found) > 1 else found[0]["budgets"]
        block["budgets"] = [*kept, *theirs]
    if "repair" not in spec and any("repair" in one for one in found):
        off = {"defaultTolerationDuration": "Never", "terminationMode": "Graceful"}
        spec["repair"] = off if len(found) > 1 else found[0]["repair"]
    if len(found) == 1 and "maxPodProtection" in found[0]:
        block.setdefault("maxPodProtection", found[0]["maxPodProtection"])
    if len(found) == 1 and "expireAfter" in found[0] and _never_expires(pool):
        block["expirationPolicy"] = "WhenAllowed"
    return {**pool, "spec": spec}


def settled_claim(claim: Obj, state: State) -> Obj:
    """The claim with the times of its pool's policy."""
    policies = state.get(r.NODE_POOL_POLICIES) or {}
    pool = state[r.NODE_POOLS].get(read.labels(claim).get(_POOL, "")) if policies else None
    found = _most_specific(pool, policies) if pool is not None else []
    if pool is None or not found:
        return claim
    spec = {**claim["spec"]}
    template = dig(pool, "spec", "template", "spec") or {}
    if spec.get("readinessTTL", _TTL) == template.get("readinessTTL", _TTL) == _TTL:
        spec["readinessTTL"] = _readiness(found)
    if len(found) == 1 and "initializationTTL" not in template and "initializationTTL" in found[0]:
        spec.setdefault("initializationTTL", found[0]["initializationTTL"])
    expires = len(found) == 1 and "expireAfter" in found[0] and _never_expires(pool)
    if expires and spec.get("expireAfter") == "Never":
        spec["expireAfter"] = found[0]["expireAfter"]
    return {**claim, "spec": spec}


def has_own_ttl(claim: Obj, state: State) -> bool:
    """Whether a user has written its readinessTTL: there, or in the one policy for its pool."""
    if claim["spec"].get("readinessTTL", _TTL) != _TTL:
        return True
    pool = state[r.NODE_POOLS].get(read.labels(claim).get(_POOL, ""))
    found = _most_specific(pool, state.get(r.NODE_POOL_POLICIES) or {}) if pool is not None else []
    template = dig(pool, "spec", "template", "spec") or {}
    overruled = template.get("readinessTTL", _TTL) != _TTL
    return len(found) == 1 and "readinessTTL" in found[0] and not overruled


def _readiness(found: list[Obj]) -> str:
    """Of several, the longest counts."""
    given: list[str] = [one["readinessTTL"] for one in found if "readinessTTL" in one]
    if len(found) == 1:
        return given[0] if given else _TTL
    return max((_TTL, *given), key=lambda text: read.span(text) or timedelta())


def _never_expires(pool: Obj) -> bool:
    return bool(dig(pool, "spec", "template", "spec", "expireAfter") == "Never")


def _most_specific(pool: Obj, policies: Policies) -> list[Obj]:
    """The specs of the policies that select it, of the highest rank."""
    specs = [policy.get("spec") or {} for _, policy in sorted(policies.items())]
    found = [spec for spec in specs if _is_selected(pool, spec.get("nodePools") or {})]
    highest = max((_rank(spec) for spec in found), default=0)
    return [spec for spec in found if _rank(spec) == highest]


def _rank(spec: Obj) -> int:
    selector = spec.get("nodePools") or {}
    by_label = bool(selector.get("matchLabels") or selector.get("matchExpressions"))
    return 2 if selector.get("names") else int(by_label)


def _is_selected(pool: Obj, selector: Any) -> bool:
    names: Iterable[str] = selector.get("names") or ()
    if names and pool["metadata"]["name"] not in names:
        return False
    labels = read.labels(pool)
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return read.is_selected(selector, labels)
