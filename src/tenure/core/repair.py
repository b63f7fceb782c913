"""Which claims are judged together for repair, and on what: everything of one pool.

What becomes of each is in ``repairround``. Claims of which there is nothing to say, initialized
with a Node that is well, are left out of the view: they are nearly all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from tenure.core.claims import is_ours
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.repairround import LOST, HealthView, Member, Round
from tenure.core.sickness import Rules
from tenure.model.names import NODEPOOL
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.resource import NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.settings import Settings
from tenure.model.snapshot import Change, Snapshot
from tenure.schema.problems import in_words, problems_of_pool

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
        elif change.resource == NODES:
            for node in change.versions():
                assert isinstance(node, Node)
                yield node.labels.get(NODEPOOL, "")
                for claim in snapshot.claims_with_provider(node.spec.provider_id).values():
                    yield _key(claim)
        elif change.resource == NODE_POOLS:
            yield change.key

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> HealthView | None:
        if key.startswith(_ALONE):
            return _view_of_one(snapshot, key.removeprefix(_ALONE))
        return health_of(key, snapshot)

    def decide(self, view: HealthView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        return list(Round(view, settings, now).verdicts())


def rules_of(pool: str, snapshot: Snapshot) -> Rules:
    """What means sick in that pool, and what is done about it."""
    found = snapshot.pools.get(pool)
    repair = found.spec.repair if found is not None else None
    return Rules(repair=repair, statements=snapshot.observations.repair_statements)


def health_of(name: str, snapshot: Snapshot) -> HealthView | None:
    """The claims of a pool of which there may be something to say; None if there are none."""
    pool, rules = snapshot.pools.get(name), rules_of(name, snapshot)
    members = tuple(_members(name, rules, snapshot))
    if not members:
        return None
    watched = {statement.condition_type for statement in rules.statements}
    broken = in_words(problems_of_pool(pool, watched).repair) if pool is not None else ""
    return HealthView(
        pool=pool,
        rules=rules,
        broken=broken,
        total=len(snapshot.nodes_of_pool(name)),
        members=members,
    )


def _key(claim: NodeClaim) -> str:
    return claim.pool_name or _ALONE + claim.name


def _members(pool: str, rules: Rules, snapshot: Snapshot) -> Iterator[Member]:
    claims = snapshot.claims_of_pool(pool)
    for name in sorted(claims):
        if is_ours(claims[name], snapshot):
            member = _member(claims[name], snapshot)
            if not _is_well(member, rules):
                yield member


def _is_well(member: Member, rules: Rules) -> bool:
    claim, node = member.claim, member.node
    if node is None or not claim.initialized or claim.termination_stamp is not None:
        return False
    if claim.is_true(LOST):
        return False
    return not any((c.type, c.status) in rules.sick for c in node.status.conditions)


def _member(claim: NodeClaim, snapshot: Snapshot) -> Member:
    found = snapshot.nodes_with_provider(claim.provider_id)
    return Member(claim, tuple(found[name] for name in sorted(found)))


def _view_of_one(snapshot: Snapshot, name: str) -> HealthView | None:
    claim = snapshot.claims.get(name)
    if claim is None or claim.pool_name or not is_ours(claim, snapshot):
        return None
    rules = Rules(statements=snapshot.observations.repair_statements)
    return HealthView(pool=None, rules=rules, members=(_member(claim, snapshot),))
