"""Which nodes become candidates of voluntary disruption within the horizon, and from when on.

Asked are the methods of the pipeline themselves. What depends on the future of pods is not known: a
node that is not empty now does not become empty, and one that has not drifted does not drift.

A pod that blocks is taken to stay as it is. A PDB that allows no eviction at the moment is taken to
allow one soon; one that can never allow one blocks for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.disrupt.expiration import expires_at, expires_softly
from tenure.core.disrupt.methods import METHODS
from tenure.core.disrupt.methods.voluntary import PoolRules, VoluntaryMethod
from tenure.core.facts import Fact
from tenure.core.gates.operations import Operation
from tenure.core.gates.podblockers import blockers_of, is_eventual
from tenure.core.gates.reasons import Disruption
from tenure.core.gates.traits import Traits
from tenure.core.marks.candidacy import is_open, node_of
from tenure.core.marks.command import is_replaced, replacements_by_uid
from tenure.core.provision.demand import is_reschedulable
from tenure.core.terminate.drain import drain_until
from tenure.core.terminate.facts.pods import PdbAllowsNoMore
from tenure.core.terminate.pods import DrainView
from tenure.model.api.meta import FOR_EVER, Condition
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

#: In the order of the pipeline, with their index in it.
VOLUNTARY: Final = tuple(
    (order, method)
    for order, method in enumerate(METHODS)
    if isinstance(method, VoluntaryMethod) and method.traits.voluntary
)

#: The claims that will say so in a moment, by the type of the condition: no replica has acted yet.
Unsaid = Mapping[str, frozenset[str]]


class Candidacy(msgspec.Struct, frozen=True, kw_only=True):
    """A method wants a node from an instant on."""

    claim: NodeClaim
    node: Node
    method: VoluntaryMethod
    #: The index of the method in the list.
    order: int
    operation: Operation
    due_at: datetime
    #: Whether it comes before all others of its method.
    first: bool = False
    #: A replacement of it exists already, launched before a crash.
    launched: bool = False

    @property
    def traits(self) -> Traits:
        return self.method.traits


class Blockers(msgspec.Struct, frozen=True):
    """What of a node and its pods is in the way from an instant on."""

    #: How many pods the node has, and whether some have to be placed elsewhere.
    pods: int
    reschedulable: bool
    #: Until when it must not start, and why; ``FOR_EVER``: nothing ends that.
    until: datetime | None = None
    why: Fact | None = None
    #: Until when its pods block the drain.
    drains_until: datetime | None = None


def candidacies_in(
    snapshot: Snapshot, now: datetime, until: datetime, unsaid: Unsaid, *, beside: bool = False
) -> Iterator[Candidacy]:
    """``beside``: Karpenter, to which all is left but expiration by a NodePoolPolicy."""
    came = snapshot.once(replacements_by_uid)
    for order, method in VOLUNTARY:
        if beside and method.traits.reason != Disruption.EXPIRED:
            continue
        for claim, node, rules in _watched(method, snapshot, unsaid):
            if beside and not expires_softly(claim):
                continue
            at = _due_at(method, claim, rules, now)
            if at is None or at > until or claim.deleting or is_replaced(claim):
                continue
            yield Candidacy(
                claim=claim,
                node=node,
                method=method,
                order=order,
                operation=method.operation(rules),
                due_at=at,
                first=claim.name in rules.first,
                launched=bool(came.get(claim.uid)),
            )


def _watched(
    method: VoluntaryMethod, snapshot: Snapshot, unsaid: Unsaid
) -> Iterator[tuple[NodeClaim, Node, PoolRules]]:
    if method.traits.reason == Disruption.EXPIRED:
        # From its claim alone: the condition comes with the instant.
        yield from _open_nodes(snapshot, snapshot.claims)
        return
    said: set[str] = set()
    for watch in method.watch(snapshot):
        said |= {claim.name for claim, _ in watch.nodes}
        yield from ((claim, node, watch.facts) for claim, node in watch.nodes)
    more = sorted(unsaid.get(method.condition, frozenset()) - said)
    yield from _open_nodes(
        snapshot, {name: snapshot.claims[name] for name in more if name in snapshot.claims}
    )


def _open_nodes(
    snapshot: Snapshot, claims: Mapping[str, NodeClaim]
) -> Iterator[tuple[NodeClaim, Node, PoolRules]]:
    for _, claim in sorted(claims.items()):
        pool = snapshot.pools.get(claim.pool_name)
        if is_open(pool) and (node := node_of(claim, snapshot)) is not None:
            yield claim, node, PoolRules(pool.name, pool.spec.disruption)


def _due_at(
    method: VoluntaryMethod, claim: NodeClaim, rules: PoolRules, now: datetime
) -> datetime | None:
    if method.traits.reason == Disruption.EXPIRED:
        return expires_at(claim, rules.block.expiration_policy)
    if claim.is_true(method.condition):
        return method.due_at(claim, rules)
    return method.due_at(as_if_said(claim, method.condition, now), rules)


def as_if_said(claim: NodeClaim, type_: str, now: datetime) -> NodeClaim:
    """The claim, with the condition True from now on."""
    wanted = Condition(type=type_, status="True", last_transition_time=now)
    others = tuple(one for one in claim.status.conditions if one.type != type_)
    status = msgspec.structs.replace(claim.status, conditions=(*others, wanted))
    return msgspec.structs.replace(claim, status=status)


def blockers_at(
    candidacy: Candidacy, snapshot: Snapshot, settings: Settings, at: datetime
) -> Blockers:
    """As the gate of pods and protections sees it at that instant, if the pods stay as they are."""
    drain = drain_until(candidacy.node, None, snapshot)
    placed = any(is_reschedulable(item.pod) for item in drain.pods)
    if candidacy.operation is Operation.EXPIRATION:
        return Blockers(len(drain.pods), placed)
    strict = msgspec.structs.replace(candidacy.traits, eventual=False)
    drains_until: datetime | None = None
    if is_eventual(candidacy.traits, candidacy.claim):
        drains_until, _ = _last(strict, candidacy, drain, settings, at)
    until, why = _last(candidacy.traits, candidacy, drain, settings, at)
    return Blockers(len(drain.pods), placed, until, why, drains_until)


def _last(
    traits: Traits, candidacy: Candidacy, drain: DrainView, settings: Settings, at: datetime
) -> tuple[datetime | None, Fact | None]:
    """The blocker that ends last."""
    found = [
        (one.until or FOR_EVER, one.fact)
        for one in blockers_of(traits, candidacy.claim, drain, settings, at)
        if not isinstance(one.fact, PdbAllowsNoMore)
    ]
    return max(found, key=lambda one: one[0], default=(None, None))
