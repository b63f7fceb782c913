"""Verdicts that say the same of several objects, together.

Messages name the object that they are about, and say since when it is so: twelve drifted nodes have
twelve messages, and one cause. What differs only in that is printed once, for example of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from tenure.core.decision import Subject, Verdict
from tenure.core.disrupt.facts.candidates import NodeDrifted, NodeExpired, NodeIsEmpty
from tenure.core.facts import Fact, told
from tenure.core.reasons import Reason
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.snapshot.snapshot import Snapshot

#: A candidate's verdict says why it is one: the condition that made it one is not told again.
_CANDIDATE: Final[Mapping[Reason, type[Fact]]] = {
    Reason.DRIFTED: NodeDrifted,
    Reason.EXPIRED: NodeExpired,
    Reason.NODE_EMPTY: NodeIsEmpty,
}

#: Things are as they should be, or none of our business: counted, not told.
SETTLED: Final = frozenset(
    {
        Reason.IN_SERVICE,
        Reason.NOT_EXPIRED,
        Reason.NODE_NOT_EMPTY,
        Reason.UNCONSOLIDATABLE,
        Reason.CONSOLIDATES_LATER,
        Reason.CONSOLIDATION_CANDIDATE,
        Reason.NOT_OURS,
        Reason.NODE_CLASS_NOT_SERVED,
        Reason.INSTANCE_KNOWN,
        Reason.POOL_CURRENT,
        Reason.WINDOW_CURRENT,
        Reason.POOL_POLICY_CURRENT,
        Reason.LEFT_ALONE,
    }
)
#: So many that differ in instants alone are told one by one.
APART: Final = 3
_END: Final = datetime.max.replace(tzinfo=UTC)


def claims_by_node(snapshot: Snapshot) -> dict[str, str]:
    """The claim of each Node, by name."""
    return {
        node.name: claim.name
        for node in snapshot.nodes.values()
        if (claim := snapshot.claim_of(node)) is not None
    }


def alike(
    verdicts: Iterable[Verdict],
    claims: Mapping[str, str],
    now: datetime,
    *,
    key: Callable[[Verdict], object],
    due: Callable[[Verdict], datetime | None],
) -> list[list[Verdict]]:
    """By ``key``, by when they are ``due``, and by what is said without the object's own names and what is past.

    Where many differ in instants alone, as after an outage, instants to come do not tell them apart: the one
    that is due first stands for all.
    """
    nodes = {claim: node for node, claim in claims.items()}
    alike_but_for_instants: dict[object, dict[object, list[Verdict]]] = {}
    for one in verdicts:
        own = _names_of(one.subject, claims, nodes)
        said = (one.facts, one.blockers)
        loose = (one.subject.kind, _general(said, own, _END), key(one))
        exact = (_general(said, own, now), due(one))
        alike_but_for_instants.setdefault(loose, {}).setdefault(exact, []).append(one)
    found: list[list[Verdict]] = []
    for groups in alike_but_for_instants.values():
        if len(groups) > APART:
            every = (one for group in groups.values() for one in group)
            found.append(sorted(every, key=lambda one: due(one) or _END))
        else:
            found += groups.values()
    return found


def is_example(verdicts: Iterable[Verdict]) -> bool:
    """Whether the message of the first is not word for word that of the others."""
    return len({one.facts for one in verdicts}) > 1


def without_conditions(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Without what another verdict on the same object gives as the reason of its disruption."""
    every = list(verdicts)
    why = {
        (v.subject, type(fact))
        for v in every
        if v.reason not in _CANDIDATE
        for fact in told(v.facts)
    }
    return [v for v in every if (v.subject, _CANDIDATE.get(v.reason)) not in why or v.action]


def _names_of(
    subject: Subject, claims: Mapping[str, str], nodes: Mapping[str, str]
) -> frozenset[str]:
    others = {NODES.kind: claims, NODE_CLAIMS.kind: nodes}.get(subject.kind, {})
    full = f"{subject.namespace}/{subject.name}"
    return frozenset((subject.name, full, subject.uid, others.get(subject.name, ""))) - {""}


def _general(value: object, own: frozenset[str], now: datetime) -> object:
    match value:
        case str():
            return None if value in own else value
        case datetime():
            return None if value <= now else value
        case msgspec.Struct():
            fields = msgspec.structs.astuple(value)
            return (type(value), *(_general(field, own, now) for field in fields))
        case tuple():
            return tuple(_general(one, own, now) for one in value)
        case _:
            return value
