"""One node as a value: made of its claim, its Node, the pods there and the verdict that governs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.decision import Blocker, Verdict
from tenure.core.marks.deadline import deadline_of
from tenure.core.reasons import Reason
from tenure.dashboard.fleet.governing import Verdicts, beside, governing, next_step
from tenure.dashboard.fleet.phases import PHASES
from tenure.dashboard.fleet.prices import Prices
from tenure.dashboard.fleet.texts import NAME_MAX, cut
from tenure.dashboard.fleet.tones import (
    FOREIGN,
    UNREADABLE,
    phase_by_verdict,
    phase_without_verdict,
    tone_of,
)
from tenure.dashboard.fleet.values import BlockerView, NodeView, Share, Tone
from tenure.errors import SpecError
from tenure.model.api.meta import FOR_EVER, ApiObject
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.snapshot.amounts import ALLOCATABLE
from tenure.model.snapshot.derived import Derived
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable, unreadable_object
from tenure.model.values.quantity import UNIT
from tenure.packing.demand.requests import REQUESTS

#: How many blockers of a node are listed; the sentence of its verdict counts them all.
BLOCKERS_MAX: Final = 20
#: What a browser's numbers hold exactly: users write quantities of any size.
_NUMBER_MAX: Final = 2**53 - 1
_MILLI: Final = UNIT // 1000


class Shown(msgspec.Struct, frozen=True):
    """A node, with what totals need of it beside the view."""

    view: NodeView
    #: Pods there that are active and ready.
    running: int = 0
    #: It has an instance, which costs something.
    costs: bool = False


def key_of_claim(name: str) -> str:
    return f"{NODE_CLAIMS.kind}/{name}"


def key_of_node(name: str) -> str:
    return f"{NODES.kind}/{name}"


class _Said(msgspec.Struct, frozen=True, kw_only=True):
    """What verdicts, or the objects without them, say about a node."""

    phase: str
    tone: Tone
    reason: str = ""
    because: str = ""
    next: str = ""
    next_at: datetime | None = None
    blockers: tuple[BlockerView, ...] = ()
    more_blockers: int = 0


def shown_node(
    claim: NodeClaim | None,
    node: Node | None,
    snapshot: Snapshot,
    verdicts: Verdicts | None,
    prices: Prices,
) -> Shown:
    """Of a claim, a Node, or both. An object that makes this fail is shown as unreadable."""
    pods = [] if node is None else _there(node, snapshot)
    try:
        said = _said(claim, node, pods, verdicts)
        return _shown(claim, node, pods, said, snapshot.derived, prices)
    except Exception as error:  # noqa: BLE001  # whatever is wrong with it, it is that object's
        unreadable = _Said(
            phase=UNREADABLE,
            tone=tone_of(UNREADABLE, None),
            because=cut(f"{type(error).__name__}: {error}"),
        )
        return Shown(_bare_view(claim, node, unreadable))


def _there(node: Node, snapshot: Snapshot) -> list[Pod]:
    return [pod for pod in snapshot.pods_on(node.name).values() if not pod.finished]


def _shown(
    claim: NodeClaim | None,
    node: Node | None,
    pods: list[Pod],
    said: _Said,
    derived: Derived,
    prices: Prices,
) -> Shown:
    bare = _bare_view(claim, node, said)
    deadline = deadline_of(claim)
    cpu, memory = _shares(node, pods, derived)
    next_, next_at = said.next, said.next_at
    if not next_ and deadline is not None:
        next_, next_at = "the node is torn down by force", deadline.at
    view = msgspec.structs.replace(
        bare,
        deadline=None if deadline is None else known(deadline.at),
        next=next_,
        next_at=known(next_at),
        price=None if claim is None else prices.of(claim, node),
        pods=len(pods),
        cpu=cpu,
        memory=memory,
    )
    running = sum(pod.active and pod.ready for pod in pods)
    return Shown(view, running, node is not None or bool(claim and claim.provider_id))


def _bare_view(claim: NodeClaim | None, node: Node | None, said: _Said) -> NodeView:
    """Without what has to be worked out."""
    thing: ApiObject | None = claim if claim is not None else node
    assert thing is not None
    labels = {**thing.labels, **(node.labels if node is not None else {})}
    key = key_of_claim(thing.name) if claim is not None else key_of_node(thing.name)
    return NodeView(
        key=key,
        name=thing.name,
        node=node.name if node is not None else "",
        pool=_label(labels, NODEPOOL),
        zone=_label(labels, ZONE),
        instance_type=_label(labels, INSTANCE_TYPE),
        capacity_type=_label(labels, CAPACITY_TYPE),
        phase=said.phase,
        tone=said.tone,
        reason=said.reason,
        because=said.because,
        created_at=thing.created_at,
        blockers=said.blockers,
        more_blockers=said.more_blockers,
    )


def _label(labels: Mapping[str, str], key: str) -> str:
    return cut(labels.get(key, ""), NAME_MAX)


def _said(
    claim: NodeClaim | None, node: Node | None, pods: list[Pod], verdicts: Verdicts | None
) -> _Said:
    stand_in = next((one for one in (claim, node) if is_unreadable(one)), None)
    if stand_in is not None:
        why = cut(str(unreadable_object(stand_in)))
        reason = str(Reason.OBJECT_UNREADABLE)
        return _Said(phase=UNREADABLE, tone=tone_of(UNREADABLE, None), reason=reason, because=why)
    verdict = None if verdicts is None else governing(claim, node, verdicts)
    if verdict is None or verdicts is None:
        word = phase_without_verdict(claim, node)
        return _Said(phase=word, tone=tone_of(word, None))
    return _by_verdict(verdict, claim, node, pods, verdicts)


def _by_verdict(
    verdict: Verdict,
    claim: NodeClaim | None,
    node: Node | None,
    pods: list[Pod],
    verdicts: Verdicts,
) -> _Said:
    reason = verdict.reason
    if claim is None and PHASES.get(reason) != "unclear":
        word: str = FOREIGN
    else:
        word = phase_by_verdict(verdict) or phase_without_verdict(claim, node)
    at, pod, what = next_step(verdict, pods, verdicts)
    also = beside(verdict, claim, verdicts)
    because = verdict.message if also is None else f"{verdict.message}; also: {also.message}"
    blockers = (*verdict.blockers, *(also.blockers if also is not None else ()))
    return _Said(
        phase=word,
        tone=tone_of(word, reason),
        reason=str(reason),
        because=cut(because),
        next=f"{pod}: {what}" if pod else what,
        next_at=at,
        blockers=tuple(blocker_view(one) for one in blockers[:BLOCKERS_MAX]),
        more_blockers=max(0, len(blockers) - BLOCKERS_MAX),
    )


def blocker_view(blocker: Blocker) -> BlockerView:
    return BlockerView(
        subject=str(blocker.subject),
        message=cut(blocker.message),
        until=known(blocker.until),
        lasting=blocker.lasting,
    )


def known(at: datetime | None) -> datetime | None:
    """For ever is no instant."""
    return None if at is None or at >= FOR_EVER else at


def _shares(
    node: Node | None, pods: Iterable[Pod], derived: Derived
) -> tuple[Share | None, Share | None]:
    """CPU and memory, as provisioning counts them."""
    if node is None:
        return None, None
    there = derived.of(ALLOCATABLE, node)
    cpu = memory = 0
    for pod in pods:
        try:
            asked = derived.of(REQUESTS, pod)
        except SpecError:  # one after the other
            continue  # Nothing that the scheduler could place, either.
        cpu += asked.get("cpu", 0)
        memory += asked.get("memory", 0)
    return _share(cpu, there.get("cpu", 0), _MILLI), _share(memory, there.get("memory", 0), UNIT)


def _share(requested: int, allocatable: int, unit: int) -> Share:
    return Share(
        requested=min(-(-requested // unit), _NUMBER_MAX),
        allocatable=min(allocatable // unit, _NUMBER_MAX),
    )
