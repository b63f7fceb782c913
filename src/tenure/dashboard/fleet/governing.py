"""Which verdict says most about a node, and what happens next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, Protocol

from tenure.core.decision import Blocker, Verdict
from tenure.core.reasons import Reason
from tenure.core.repair.urgency import OF_HEALTH, is_choice_not_begun, urgent_first
from tenure.dashboard.fleet.phases import AT_RECHECK, AWAITED
from tenure.dashboard.fleet.tones import tells_phase
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS

#: What happens next is said by the verdicts on the pods.
EVICTS: Final = frozenset({Reason.DRAINING, Reason.EVICTION_WAITS, Reason.EVICTION_REFUSED})


class Verdicts(Protocol):
    """The verdicts in force: of an evaluator, for example."""

    def about(self, kind: str, name: str, namespace: str = "", /) -> list[Verdict]:
        """Those on one subject, the governing one first."""
        ...

    def touched_subjects(self, since: int) -> tuple[list[str] | None, int]:
        """Subjects whose verdicts have changed after this change; None: any may have. And the last change."""
        ...


def governing(claim: NodeClaim | None, node: Node | None, verdicts: Verdicts) -> Verdict | None:
    """The verdict that says most about a node: a terminating Node's own, else its claim's."""
    about_claim = (
        [] if claim is None else urgent_first(verdicts.about(NODE_CLAIMS.kind, claim.name))
    )
    if node is not None and (node.deleting or not about_claim):
        # Beside Karpenter all verdicts are on the Node: the one that tells its phase comes before those on levers.
        about_node = urgent_first(verdicts.about(NODES.kind, node.name))
        if about_node and (node.deleting or claim is None):
            return about_node[0]
        if about_node:
            return next((one for one in about_node if tells_phase(one.reason)), about_node[0])
    return about_claim[0] if about_claim else None


def beside(governing: Verdict, claim: NodeClaim | None, verdicts: Verdicts) -> Verdict | None:
    """What else is to be said of a node that is unhealthy: it is to go by choice as well, and something blocks that."""
    if governing.reason not in OF_HEALTH or claim is None:
        return None
    about = verdicts.about(NODE_CLAIMS.kind, claim.name)
    return next((one for one in about if is_choice_not_begun(one)), None)


def next_step(
    verdict: Verdict, pods: Iterable[Pod], verdicts: Verdicts
) -> tuple[datetime | None, str, str]:
    """The earliest instant that a verdict names, the pod it is about, and what happens then.

    Without an instant: what the node waits for; or nothing. Of a node that gates block: when the last of them ends.
    """
    if verdict.gate and verdict.blockers:
        last = verdict.blockers[0]
        return last.until, "", _ends(last)
    dated = [(verdict, "")]
    if verdict.reason in EVICTS:
        dated = list(_about_pods(pods, verdicts))
    named = [
        (about.recheck_at, pod, what)
        for about, pod in dated
        if about.recheck_at is not None and (what := AT_RECHECK.get(about.reason)) is not None
    ]
    if named:
        return min(named)
    awaited = AWAITED.get(verdict.reason)
    return None, "", f"waits for {awaited}" if awaited else ""


def _ends(last: Blocker) -> str:
    if last.lasting:
        return f"blocked until {last.subject} is changed"
    return f"{last.subject} no longer blocks" if last.until is not None else "waits for others"


def _about_pods(pods: Iterable[Pod], verdicts: Verdicts) -> Iterator[tuple[Verdict, str]]:
    for pod in pods:
        for about in verdicts.about(PODS.kind, pod.name, pod.namespace):
            yield about, pod.name
