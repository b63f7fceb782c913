"""Answers about one node: as ``tenure explain`` gives them, and its pods."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.cluster.question import Question
from tenure.cli.explain.explanation import explanation
from tenure.cli.explain.text import as_text
from tenure.cli.view.columns import paragraph
from tenure.dashboard.board.source import PodLine
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, PODS
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.quantity import UNIT
from tenure.packing.demand.requests import pod_requests

_MILLI = UNIT // 1000


def explained(subject: str, evaluated: EvaluatedCluster, width: int) -> str:
    """No line wider than that, but for names. Raises ``SpecError`` for what is no subject."""
    question = Question.parse([subject]).in_namespace()
    answer = explanation(question, evaluated)
    text = question.not_found(evaluated) if answer is None else as_text(answer, width)
    return "\n".join(paragraph(text, width))


def pods_of(key: str, evaluated: EvaluatedCluster) -> tuple[PodLine, ...]:
    """By namespace and name. ``key``: of a node's view."""
    snapshot = evaluated.snapshot
    there = (pod for name in _nodes(key, snapshot) for pod in snapshot.pods_on(name).values())
    return tuple(_line(pod, evaluated) for pod in sorted(there, key=lambda pod: pod.key))


def _nodes(key: str, snapshot: Snapshot) -> Iterator[str]:
    kind, _, name = key.partition("/")
    if kind != NODE_CLAIMS.kind:
        yield name
    elif (claim := snapshot.claims.get(name)) is not None:
        yield from snapshot.nodes_with_provider(claim.provider_id)


def _line(pod: Pod, evaluated: EvaluatedCluster) -> PodLine:
    verdict = next(iter(evaluated.about(PODS, pod)), None)
    try:
        asked = pod_requests(pod)
    except Exception:  # noqa: BLE001  # a quantity that is none: shown without its requests
        asked = {}
    return PodLine(
        namespace=pod.namespace,
        name=pod.name,
        phase="Terminating" if pod.deleting else pod.status.phase,
        reason=str(verdict.reason) if verdict is not None else "",
        because=verdict.message if verdict is not None else "",
        cpu=asked.get("cpu", 0) // _MILLI,
        memory=asked.get("memory", 0) // UNIT,
    )
