"""Which claims are evaluated together for repair, and on what: everything of one pool.

What becomes of each is in ``evaluate``. Claims of which there is nothing to say, initialized
with a healthy Node, are left out of the view: they are nearly all of them.

Where a failure domain may be in outage (``domains``), unhealthy nodes of other pools matter, too:
then a change of any node's health touches every pool that has a claim to evaluate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.health.domains import Domains
from tenure.core.health.health import HealthView, Member, unusable
from tenure.core.health.outage import domains_in, domains_of, unhealthy_nodes_in
from tenure.core.health.poolcount import PoolCount, count_nodes
from tenure.core.health.rules import Rules, rules_of
from tenure.core.marks.ownership import is_our_node, is_ours
from tenure.core.marks.repaired import has_stray_marks
from tenure.core.marks.timeout import lost
from tenure.core.repair.evaluate import diagnose
from tenure.core.unreadable.decider import in_the_way
from tenure.core.windows.windows import REPAIR_ACTIONS, windows_naming
from tenure.model.api.names import NODEPOOL
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.settings import Settings
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.values.unreadable import UnreadableObject

#: Keys of claims without a pool; a pool's name cannot contain a slash.
_ALONE: Final = "claim/"


class RepairDecider:
    concern = Concern.REPAIR

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return map(_key, snapshot.claims.values())

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_CLAIMS:
            for claim in change.versions():
                assert isinstance(claim, NodeClaim)
                yield _key(claim)
                yield from map(_key, snapshot.claims_with_provider(claim.provider_id).values())
        elif change.resource == NODES:
            for node in change.versions():
                assert isinstance(node, Node)
                yield node.labels.get(NODEPOOL, "")
                for claim in snapshot.claims_with_provider(node.spec.provider_id).values():
                    yield _key(claim)
        elif change.resource == NODE_POOLS:
            yield change.key
        if _matters_to_others(change):
            yield from snapshot.once(_keys_to_evaluate)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> HealthView | None:
        if key.startswith(_ALONE):
            return _view_of_one(snapshot, key.removeprefix(_ALONE))
        return health_of(key, snapshot)

    def decide(self, view: HealthView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        return diagnose(view, settings, now).verdicts


def view_of_claim(claim: NodeClaim, snapshot: Snapshot) -> HealthView | None:
    """The view that the claim is evaluated in; None where there is nothing to say."""
    return RepairDecider().view(snapshot, _key(claim))


def health_of(name: str, snapshot: Snapshot) -> HealthView | None:
    """The claims of a pool of which there may be something to say; None if there are none.

    Repair and disruption both ask for it in the same turn.
    """
    known = snapshot.once(_healths)
    if name not in known:
        known[name] = _health_of(name, snapshot)
    return known[name]


def _healths(_: Snapshot) -> dict[str, HealthView | None]:
    """By pool, filled as they are asked for."""
    return {}


def _health_of(name: str, snapshot: Snapshot) -> HealthView | None:
    pool, rules = snapshot.pools.get(name), rules_of(name, snapshot)
    members = tuple(_members(name, rules, snapshot))
    if not members:
        return None
    return HealthView(
        pool=pool,
        rules=rules,
        broken=unusable(pool),
        windows=windows_naming(REPAIR_ACTIONS, snapshot),
        count=count_nodes(name, rules, snapshot),
        unreadable=_unreadable(members, pool, snapshot),
        members=members,
        domains=_domains_of(members, snapshot),
    )


def _domains_of(members: Iterable[Member], snapshot: Snapshot) -> Domains:
    shared = (domain for m in members if m.node for domain in domains_of(m.claim, m.node))
    return domains_in(snapshot).about(shared)


def _matters_to_others(change: Change) -> bool:
    """Whether it may change which nodes of a domain count as unhealthy, or which is the probe."""
    if change.resource != NODES:
        return change.resource in (NODE_CLAIMS, NODE_POOLS, MAINTENANCE_WINDOWS)
    old, new = change.old, change.new
    if not isinstance(old, Node) or not isinstance(new, Node):
        return True
    return (
        old.status.conditions != new.status.conditions
        or old.deleting != new.deleting
        or old.spec.provider_id != new.spec.provider_id
        or old.labels != new.labels
        or old.annotations != new.annotations
    )


def _keys_to_evaluate(snapshot: Snapshot) -> frozenset[str]:
    """Where an outage of a domain may block a claim."""
    suspect = (
        claim
        for node in snapshot.suspect_nodes().values()
        for claim in snapshot.claims_with_provider(node.spec.provider_id).values()
    )
    return frozenset(map(_key, (*suspect, *snapshot.new_claims().values())))


def _key(claim: NodeClaim) -> str:
    return claim.pool_name or _ALONE + claim.name


def _members(pool: str, rules: Rules, snapshot: Snapshot) -> Iterator[Member]:
    claims, derived = snapshot.claims_of_pool(pool), snapshot.derived
    for name in sorted(claims):
        claim = claims[name]
        nodes = snapshot.nodes_with_provider(claim.provider_id)
        if len(nodes) == 1:
            (node,) = nodes.values()
            if derived.of(_HEALTHY, node, claim, rules):
                continue
        if is_ours(claim, snapshot):
            yield _member(claim, snapshot)


def _is_healthy(node: Node, claim: NodeClaim, rules: Rules) -> bool:
    stamped = claim.termination_stamp is not None or has_stray_marks(claim)
    if not claim.initialized or stamped or lost(claim) is not None:
        return False
    return not any((c.type, c.status) in rules.watched for c in node.status.conditions)


_HEALTHY: Final = Derivation("healthy for repair", _is_healthy)


def _member(claim: NodeClaim, snapshot: Snapshot) -> Member:
    found = snapshot.nodes_with_provider(claim.provider_id)
    shared = len(snapshot.claims_with_provider(claim.provider_id)) > 1
    return Member(claim, tuple(found[name] for name in sorted(found)), shared)


def _unreadable(
    members: Iterable[Member], pool: NodePool | None, snapshot: Snapshot
) -> dict[str, UnreadableObject]:
    """Of its pool, the claim, its Nodes and their pods, the first that cannot be read."""
    if not snapshot.unreadable():
        return {}  # Nearly always.
    found: dict[str, UnreadableObject] = {}
    for member in members:
        if why := in_the_way(member.claim, member.nodes, pool, snapshot):
            found[member.claim.name] = why
    return found


def _view_of_one(snapshot: Snapshot, name: str) -> HealthView | None:
    claim = snapshot.claims.get(name)
    if claim is None or claim.pool_name or not is_ours(claim, snapshot):
        return None
    statements = snapshot.observations.repair_statements
    rules = Rules(statements=statements, beside=snapshot.beside_karpenter)
    members = (_member(claim, snapshot),)
    others = tuple(
        unhealthy_node
        for unhealthy_node in unhealthy_nodes_in(snapshot)
        if unhealthy_node.claim != name
    )
    return HealthView(
        pool=None,
        rules=rules,
        windows=windows_naming(REPAIR_ACTIONS, snapshot),
        count=PoolCount(sum(is_our_node(node, snapshot) for node in snapshot.nodes.values())),
        unreadable=_unreadable(members, None, snapshot),
        members=members,
        others=others,
        domains=_domains_of(members, snapshot),
    )
