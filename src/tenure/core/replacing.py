"""Carry a replacement through: the old node stays until the new ones are initialized.

A command is what the cluster says: on the claim that goes, ``karpenter.sh/replaced-by`` names its
replacements, all of which exist by then, and ``karpenter.sh/disruption-reason`` says why; on each
replacement ``karpenter.sh/replaces`` has that claim's UID. Of each claim, the first of these:

1. cancelled   nothing is wrong any more, or a person vetoes it: the mark is taken off;
2. failed      a replacement is gone or leaving, or has been Ready for long and is not
               initialized: the mark is taken off, and the failure noted, in one write;
3. closed      its Node is tainted, so that nobody new comes, and the claim says why;
4. waiting     for the replacements, and for whom until when;
5. leaving     all of them are initialized: stamped with the deadline where its drain is bounded,
               then deleted on that version.

A taint or a ``DisruptionReason`` that no command stands behind is taken off: that is how a
command which was given up leaves the old node as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.core.cause import merged
from tenure.core.claims import claim_status, is_ours, is_replaced
from tenure.core.conditions import Wanted
from tenure.core.deadline import hurried_until, hurry
from tenure.core.decision import (
    Action,
    Commitment,
    Concern,
    Delete,
    Patch,
    Subject,
    Verdict,
)
from tenure.core.obstacles import Disruption
from tenure.core.pools import rules_of
from tenure.core.protection import protection_on
from tenure.core.readiness import READY_ONCE, Stage, boot_of, initialization_ttl
from tenure.core.reasons import Reason
from tenure.core.reboots import DISRUPTION_REASON, rebooted_at
from tenure.core.saying import also_of, say
from tenure.core.sickness import Illness, Rules, illnesses
from tenure.core.writes import as_judged, close, delete_claim, open_again, patch, stamp_claim
from tenure.model import names
from tenure.model.duration import Duration
from tenure.model.meta import format_time, read_instant
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.resource import NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.settings import Settings
from tenure.model.snapshot import Change, Snapshot

#: How long a replacement may be Ready without being initialized, where it does not say.
INITIALIZES_WITHIN: Final = timedelta(minutes=10)


class ReplacementView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    nodes: tuple[Node, ...]
    #: By the names that the claim's mark has; None is gone.
    replacements: tuple[tuple[str, NodeClaim | None], ...]
    rules: Rules

    @property
    def node(self) -> Node | None:
        return self.nodes[0] if len(self.nodes) == 1 else None


class ReplacementDecider:
    concern = Concern.REPLACEMENT

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_CLAIMS:
            yield change.key
            for claim in change.versions():
                for uid in _listed(claim.annotations.get(names.REPLACES, "")):
                    yield from snapshot.claims_with_uid(uid)
        elif change.resource == NODES:
            for node in change.versions():
                assert isinstance(node, Node)
                yield from snapshot.claims_with_provider(node.spec.provider_id)
        elif change.resource == NODE_POOLS:
            for name, claim in snapshot.claims_of_pool(change.key).items():
                if is_replaced(claim):
                    yield name

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> ReplacementView | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting:
            return None
        nodes = snapshot.nodes_with_provider(claim.provider_id)
        if not _is_marked(claim, nodes.values()) or not is_ours(claim, snapshot):
            return None
        named = _listed(claim.annotations.get(names.REPLACED_BY, ""))
        return ReplacementView(
            claim=claim,
            nodes=tuple(nodes[name] for name in sorted(nodes)),
            replacements=tuple((name, _standing_in(name, claim, snapshot)) for name in named),
            rules=rules_of(claim.pool_name, snapshot),
        )

    def decide(self, view: ReplacementView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        command = _Command(view, now)
        verdict = command.next_step() if is_replaced(view.claim) else command.forgotten()
        if verdict is None:
            return ()
        if view.node is None or verdict.reason is Reason.DISRUPTION_FORGOTTEN:
            return (verdict,)
        return verdict, also_of(view.node, verdict)


def _is_marked(claim: NodeClaim, nodes: Iterable[Node]) -> bool:
    if is_replaced(claim) or claim.is_true(DISRUPTION_REASON):
        return True
    return any(not node.deleting and node.has_taint(names.DISRUPTED_TAINT) for node in nodes)


def _listed(value: str) -> list[str]:
    return [part for part in value.split(",") if part]


def _standing_in(name: str, claim: NodeClaim, snapshot: Snapshot) -> NodeClaim | None:
    """The replacement of that name; another claim that got its name later is none."""
    found = snapshot.claims.get(name)
    if found is None or claim.uid not in _listed(found.annotations.get(names.REPLACES, "")):
        return None
    return found


class _Command:
    """One claim that goes, at one instant."""

    def __init__(self, view: ReplacementView, now: datetime) -> None:
        self._view, self._claim, self._now = view, view.claim, now

    def next_step(self) -> Verdict | None:
        if why := self._pointless():
            message = f"{why}; it stays, and takes pods again"
            return self._say(Reason.DISRUPTION_CANCELLED, message, self._unmark())
        if why := self._failure():
            return self._failed(why)
        node = self._view.node
        assert node is not None, "else it is pointless"
        awaited = list(self._awaited())
        closing = self._close(node) or self._reasoned()
        if closing is not None or awaited:
            return self._say(Reason.REPLACING, self._progress(awaited), closing, self._fails_at())
        return self._leaving(node)

    def forgotten(self) -> Verdict | None:
        """Marks that nobody stands behind."""
        if self._claim.rebooting:
            return None
        node = self._view.node
        if node is not None and not node.deleting and node.has_taint(names.DISRUPTED_TAINT):
            message = f"Node {node.name} is not being disrupted; its taint is taken off"
            return self._say(
                Reason.DISRUPTION_FORGOTTEN, message, open_again(node, names.DISRUPTED_TAINT)
            )
        said = claim_status(self._claim, drop=(DISRUPTION_REASON,))
        if said is None:
            return None
        message = "it is not being disrupted; its condition is taken off"
        return self._say(Reason.DISRUPTION_FORGOTTEN, message, said)

    # -- whether to go on --------------------------------------------------------------

    def _pointless(self) -> str:
        node = self._view.node
        if node is None:
            return "it has no Node any more, or several"
        if self._claim.annotations.get(names.DISRUPTION_REASON) != Disruption.UNHEALTHY:
            return "nobody knows why it is being replaced"
        for thing in (node, self._claim):
            veto = protection_on(thing, names.DO_NOT_REPAIR)
            if veto is not None and self._now < veto.until:
                return f"{names.DO_NOT_REPAIR} vetoes its repair"
        if not self._illnesses(node) and not self._timed_out(node):
            return f"Node {node.name} has recovered"
        return ""

    def _illnesses(self, node: Node) -> list[Illness]:
        """Tolerated or not: one that changes its status meanwhile is no better for it."""
        found = illnesses(node, self._view.rules, rebooted_at=rebooted_at(self._claim))
        return [one for one in found if one.counts]

    def _timed_out(self, node: Node) -> bool:
        boot = None if self._claim.initialized else boot_of(self._claim, node)
        return boot is not None and boot.stage is Stage.INITIALIZATION

    def _failure(self) -> str:
        for name, replacement in self._view.replacements:
            if replacement is None:
                return f"its replacement {name} is gone"
            if replacement.deleting:
                return f"its replacement {name} did not come up, or was deleted"
            until = _initialized_until(replacement)
            if until is not None and until <= self._now:
                at = format_time(until)
                return f"its replacement {name} was Ready, but not initialized by {at}"
        return ""

    def _fails_at(self) -> datetime | None:
        """When the first replacement takes too long; before it is Ready its own TTL counts."""
        found = (_initialized_until(r) for _, r in self._view.replacements if r is not None)
        return min((at for at in found if at is not None), default=None)

    def _failed(self, why: str) -> Verdict:
        times = failures_of(self._claim).times + 1
        unmark = self._unmark({names.REPLACEMENT_FAILED: str(times)})
        action = msgspec.structs.replace(unmark, dated=names.REPLACEMENT_FAILED)
        message = f"{why}; it stays, and takes pods again until the next try"
        return self._say(Reason.REPLACEMENT_FAILED, message, action)

    def _unmark(self, also: dict[str, Any] | None = None) -> Any:
        marks = (names.REPLACED_BY, names.DISRUPTION_REASON, names.TERMINATION_TIMESTAMP)
        gone = {mark: None for mark in marks if mark in self._claim.annotations}
        return patch(self._claim, {"annotations": {**gone, **(also or {})}})

    # -- step by step ------------------------------------------------------------------

    def _close(self, node: Node) -> Action | None:
        if node.has_taint(names.DISRUPTED_TAINT, "NoSchedule"):
            return None
        return close(node, names.DISRUPTED_TAINT)

    def _reasoned(self) -> Action | None:
        why = self._claim.annotations[names.DISRUPTION_REASON]
        return claim_status(self._claim, Wanted(DISRUPTION_REASON, "True", why))

    def _awaited(self) -> Iterator[str]:
        for name, replacement in self._view.replacements:
            if replacement is not None and not replacement.initialized:
                until = _initialized_until(replacement)
                at = f" (by {format_time(until)} at the latest)" if until is not None else ""
                yield f"{name}{at}"

    def _progress(self, awaited: list[str]) -> str:
        if awaited:
            return f"its pods need {', '.join(awaited)}: it stays until that is initialized"
        return "everything that its pods need is there; it is closed for new ones"

    def _leaving(self, node: Node) -> Verdict:
        bounds = [one.bound for one in self._illnesses(node) if one.bound is not None]
        bound = min(bounds, default=None)
        there = ", ".join(name for name, _ in self._view.replacements)
        message = f"its pods have {there} to go to" if there else "its pods fit elsewhere"
        span = hurry(self._claim, bound, self._now)
        action: Delete | Patch = delete_claim(self._claim)
        recheck_at = None
        if span is not None:
            action = stamp_claim(self._claim, span)
            recheck_at = hurried_until(self._claim, span)
        within = f" within {Duration.of(bound)}" if bound is not None else ""
        verdict = self._say(
            Reason.REPLACED,
            f"{message}; it leaves{within}",
            msgspec.structs.replace(action, witness=as_judged(node)),
            recheck_at,
        )
        if isinstance(action, Patch):
            return verdict
        return msgspec.structs.replace(verdict, commits=self._commitment(node, bound))

    def _commitment(self, node: Node, bound: timedelta | None) -> Commitment:
        found = self._illnesses(node)
        if not found:
            return Commitment(reason=Stage.INITIALIZATION, bound=bound)
        cause = merged(found, (one.priority for one in self._view.rules.statements))
        return Commitment(reason="unhealthy", condition=cause.condition, bound=bound)

    def _say(
        self,
        reason: Reason,
        message: str,
        action: Action | None,
        recheck_at: datetime | None = None,
    ) -> Verdict:
        return say(
            Concern.REPLACEMENT,
            self._claim,
            reason,
            message,
            action=action,
            recheck_at=recheck_at,
        )


def _initialized_until(replacement: NodeClaim) -> datetime | None:
    """Once it is Ready: by when it has to be initialized."""
    once = replacement.condition(READY_ONCE)
    if replacement.initialized or replacement.rebooting:
        return None
    if once is None or once.status != "True":
        return None
    if once.last_transition_time is None:
        return None
    return once.last_transition_time + (initialization_ttl(replacement) or INITIALIZES_WITHIN)


class Failures(msgspec.Struct, frozen=True):
    """How often in a row a claim's replacement has failed, and when last."""

    times: int = 0
    at: datetime | None = None


def failures_of(claim: NodeClaim) -> Failures:
    """What cannot be read is none."""
    times, _, at = claim.annotations.get(names.REPLACEMENT_FAILED, "").partition(" ")
    instant = read_instant(at)
    if instant is None or not times.isdecimal() or len(times) > 3:
        return Failures()
    return Failures(int(times), instant)
