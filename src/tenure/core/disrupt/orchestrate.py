"""Carry a command through until everything is there, or give it up.

What a command is, and where it stands, is in ``command``. Of each claim, the first of these:

1. cancelled   nothing is wrong any more, or a person vetoes it: the mark is taken off;
2. failed      a replacement is gone or leaving, or has been Ready for long and is not
               initialized, or cannot be read for as long as that may take in all: the mark is
               taken off, and the failure noted, in one write;
3. stale       a deadline is stamped on it: taken off, because it is not being deleted yet. The
               stamp that it goes with is written once all its replacements are there;
4. closed      its Node is tainted, so that no new pod comes, and the claim says why;
5. waiting     for the replacements, and for whom until when. Once all of them are there,
               ``disruption`` looks whether its pods still have their places, and lets it go.

A taint or a ``DisruptionReason`` that no command stands behind is taken off: that is how one
which was given up leaves the old node as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.core.claim.ownership import claim_status, claims_touched, is_ours, is_replaced, listed
from tenure.core.conditions import Wanted
from tenure.core.decision import (
    Action,
    Concern,
    Subject,
    Verdict,
)
from tenure.core.disrupt.command import Command, command_of, is_readable
from tenure.core.reasons import Reason
from tenure.core.reboot.history import DISRUPTION_REASON
from tenure.core.repair.readiness import initialized_until
from tenure.core.taints import is_closed, is_disrupted, taint_disrupted, untaint_disrupted
from tenure.core.terminate.stamp import stale_stamp, take_off_stamp
from tenure.core.verdicts import also_of, say
from tenure.core.writes import patch
from tenure.model.api import names
from tenure.model.api.meta import format_time, later, read_instant
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot


class ReplacementDecider:
    concern = Concern.REPLACEMENT

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        yield from claims_touched(change, snapshot)
        if change.resource == NODE_CLAIMS:
            for claim in change.versions():
                for uid in listed(claim.annotations.get(names.REPLACES, "")):
                    yield from snapshot.claims_with_uid(uid)
        elif change.resource == NODE_POOLS:
            for name, claim in snapshot.claims_of_pool(change.key).items():
                if is_replaced(claim):
                    yield name

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> Command | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting:
            return None
        nodes = snapshot.nodes_with_provider(claim.provider_id)
        if not _is_marked(claim, nodes.values()) or not is_ours(claim, snapshot):
            return None
        command = command_of(claim, snapshot)
        return command if is_readable(command, snapshot) else None

    def decide(self, view: Command, settings: Settings, now: datetime) -> Sequence[Verdict]:
        progress = _Progress(view, settings, now)
        verdict = progress.next_step() if is_replaced(view.claim) else progress.forgotten()
        if verdict is None:
            return ()
        if view.node is None or verdict.reason is Reason.DISRUPTION_FORGOTTEN:
            return (verdict,)
        return verdict, also_of(view.node, verdict)


def _is_marked(claim: NodeClaim, nodes: Iterable[Node]) -> bool:
    if is_replaced(claim) or claim.is_true(DISRUPTION_REASON):
        return True
    return any(not node.deleting and is_disrupted(node) for node in nodes)


class _Progress:
    """One claim that goes, at one instant."""

    def __init__(self, command: Command, settings: Settings, now: datetime) -> None:
        self._command, self._claim = command, command.claim
        self._settings, self._now = settings, now

    def next_step(self) -> Verdict | None:
        instants = (at for at in self._command.instants() if at > self._now)
        recheck_at = min(instants, default=None)
        if why := self._command.pointless(self._settings, self._now):
            message = f"{why}; it stays, and takes pods again"
            return self._say(Reason.DISRUPTION_CANCELLED, message, self._unmark(), recheck_at)
        if why := self._command.failure(self._now):
            return self._failed(why)
        if self._claim.termination_stamp is not None and not self._command.complete:
            message = f"{stale_stamp(self._claim)}; it stays until its replacements are initialized"
            action = take_off_stamp(self._claim)
            return self._say(Reason.STALE_DEADLINE, message, action, recheck_at)
        node = self._command.node
        assert node is not None, "else it is pointless"
        closing = self._close(node) or self._reasoned()
        return self._say(Reason.REPLACING, self._progress(), closing, recheck_at)

    def forgotten(self) -> Verdict | None:
        """Marks that nobody stands behind."""
        if self._claim.rebooting:
            return None
        node = self._command.node
        if node is not None and not node.deleting and is_disrupted(node):
            message = f"Node {node.name} is not being disrupted; its taint is taken off"
            return self._say(Reason.DISRUPTION_FORGOTTEN, message, untaint_disrupted(node))
        said = claim_status(self._claim, drop=(DISRUPTION_REASON,))
        if said is None:
            return None
        message = "it is not being disrupted; its condition is taken off"
        return self._say(Reason.DISRUPTION_FORGOTTEN, message, said)

    def _failed(self, why: str) -> Verdict:
        known = failures_of(self._claim)
        forgotten_at = later(known.at, FORGOTTEN_AFTER) if known.at is not None else self._now
        times = known.times + 1 if self._now < forgotten_at else 1
        unmark = self._unmark({names.REPLACEMENT_FAILED: str(times)})
        action = msgspec.structs.replace(unmark, dated=names.REPLACEMENT_FAILED)
        message = f"{why}; it stays, and takes pods again until the next try"
        recheck_at = forgotten_at if self._now < forgotten_at else None
        return self._say(Reason.REPLACEMENT_FAILED, message, action, recheck_at)

    def _unmark(self, also: dict[str, Any] | None = None) -> Any:
        marks = (names.REPLACED_BY, names.DISRUPTION_REASON, names.TERMINATION_TIMESTAMP)
        gone = {mark: None for mark in marks if mark in self._claim.annotations}
        return patch(self._claim, {"annotations": {**gone, **(also or {})}})

    # -- step by step ------------------------------------------------------------------

    def _close(self, node: Node) -> Action | None:
        if is_closed(node):
            return None
        return taint_disrupted(node)

    def _reasoned(self) -> Action | None:
        why = self._claim.annotations[names.DISRUPTION_REASON]
        return claim_status(self._claim, Wanted(DISRUPTION_REASON, "True", why))

    def _progress(self) -> str:
        awaited = list(self._awaited())
        if awaited:
            return f"waiting until replacement NodeClaim {', '.join(awaited)} is initialized"
        return "everything that was launched for its pods is there; it is closed for new ones"

    def _awaited(self) -> Iterator[str]:
        for name, replacement in self._command.replacements:
            if replacement is not None and not replacement.initialized:
                until = initialized_until(replacement)
                at = f" (by {format_time(until)} at the latest)" if until is not None else ""
                yield f"{name}{at}"

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


#: A failure that is so long ago is none in a row with the next.
FORGOTTEN_AFTER: Final = timedelta(hours=2)


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
