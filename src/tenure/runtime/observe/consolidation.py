"""Consolidation: the last plan, and when pods left their Nodes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from tenure.core.decision import Subject
from tenure.core.disrupt.consolidation.subject import PLAN, PLANNED_NODE
from tenure.model.api.node import Node
from tenure.model.api.pod import Pod
from tenure.model.snapshot.consolidation import ConsolidationPlan
from tenure.model.snapshot.snapshot import Change
from tenure.runtime.observe.noted import Noted, move_all, moved


class ConsolidationObservations:
    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self.plan: ConsolidationPlan | None = None
        #: By the name of a Node: when a pod last left it, or ended there.
        self.pods_left: dict[str, datetime] = {}

    def planned(self, plan: ConsolidationPlan) -> None:
        if not plan.says_the_same(self.plan):
            self._replace(plan)

    def forget(self) -> None:
        """No plan could be made: the last one is out of date."""
        if self.plan is not None:
            self._replace(None)

    def _replace(self, plan: ConsolidationPlan | None) -> None:
        """Of most nodes the next plan says the same: only the others are evaluated again."""
        before = self.plan.by_node if self.plan is not None else {}
        after = plan.by_node if plan is not None else {}
        self.plan = plan
        self._noted.note(PLAN)
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                self._noted.note(Subject(PLANNED_NODE, name))

    def see_left(self, changes: Iterable[Change], now: datetime) -> None:
        for change in changes:
            old, new = change.old, change.new
            if isinstance(old, Node) and new is None:
                self.pods_left.pop(old.name, None)
            elif isinstance(old, Pod) and _counts(old) and (new is None or _has_ended(new)):
                self.pods_left[old.spec.node_name] = now

    def clock_stepped(self, step: timedelta) -> None:
        move_all(self.pods_left, step)
        if self.plan is not None:
            self.plan = moved(self.plan, step)


def _counts(pod: Pod) -> bool:
    """Whether it was there, and its end makes room that another pod of its kind does not take."""
    return bool(pod.spec.node_name) and not (pod.finished or pod.daemon or pod.mirror)


def _has_ended(pod: object) -> bool:
    return isinstance(pod, Pod) and pod.finished
