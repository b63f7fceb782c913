"""Repair and time-outs beside Karpenter: what ``core.repair`` decides, and what is Karpenter's of it.

In the order in which the rules bite:

1. while it is not known which Karpenter is in charge, or that it acts, nothing is done: each verdict says what
   would be;
2. while Karpenter repairs nodes itself, or may (feature gate ``NodeRepair``), repair for conditions is
   Karpenter's. Time-outs go on: Karpenter has none for a Node that has registered;
3. a pool without a repair block is not repaired (``core.gates``), and a ``readinessTTL`` that no user has
   written terminates nothing (``core.health.readiness``);
4. a reboot is Karpenter's: Tenure calls no cloud.

The rest is as without Karpenter: vetoes, windows, both breakers, stamp, then delete on that version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from tenure.core.beside.karpenter import karpenter_of, repairs_nodes
from tenure.core.decision import Action, Concern, Patch, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.health.health import HealthView
from tenure.core.reasons import Reason
from tenure.core.repair.decider import RepairDecider
from tenure.core.repair.evaluate import diagnose
from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.model.api.resource import CRDS, DEPLOYMENTS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot


class RepairBesideView(msgspec.Struct, frozen=True):
    health: HealthView
    #: Why nothing ends now; None: it may.
    problem: Fact | None = None
    #: Which Karpenter is in charge; it may not act all the same.
    known: bool = True


class RepairBesideDecider:
    concern = Concern.REPAIR

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        #: For pools whose repair is Karpenter's: no failure domain gets a probe for a condition.
        self._left = msgspec.structs.replace(settings, node_repair=False)
        self._repair = RepairDecider()

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return self._repair.keys(snapshot)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource in (CRDS, DEPLOYMENTS):
            return self._repair.keys(snapshot)
        return self._repair.touched(change, snapshot)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> RepairBesideView | None:
        health = self._repair.view(snapshot, key)
        if health is None:
            return None
        karpenter = karpenter_of(snapshot, self._settings)
        left = repairs_nodes(karpenter) if karpenter.problem is None else None
        health = msgspec.structs.replace(health, left=left)
        return RepairBesideView(health, karpenter.ends_nothing, known=karpenter.problem is None)

    def decide(
        self, view: RepairBesideView, settings: Settings, now: datetime
    ) -> Sequence[Verdict]:
        asked = settings if view.health.left is None else self._left
        verdicts = diagnose(view.health, asked, now).verdicts
        if view.problem is None:
            return verdicts
        # A deadline of ours would force what a user deletes meanwhile: one that is stale goes.
        return tuple(
            one if view.known and _takes_off_stamp(one.action) else _only_said(one, view.problem)
            for one in verdicts
        )


def _takes_off_stamp(action: Action | None) -> bool:
    if not isinstance(action, Patch):
        return False
    annotations = action.body["metadata"].get("annotations") or {}
    return annotations.get(TERMINATION_TIMESTAMP, "") is None


def _only_said(verdict: Verdict, problem: Fact) -> Verdict:
    if verdict.action is None:
        return verdict
    return msgspec.structs.replace(
        verdict,
        reason=Reason.LEVER_WAITS,
        facts=(*verdict.facts, problem),
        action=None,
        commits=None,
    )
