"""Find workloads whose settings a drain will not respect, or that block a drain without end.

Known before any drain, from the manifests: a pod's grace period and protection compared with the
``terminationGracePeriod`` of the pools where it may run, and what PDBs can allow at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from tenure.core.marks.deadline import grace_in
from tenure.core.protect.protection import positive
from tenure.core.terminate.pdb import arithmetic, never_allows
from tenure.errors import SpecError, shown
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.workload import PodDisruptionBudget, PodTemplate
from tenure.model.matching.selectors import matches
from tenure.model.values.duration import Duration, compact, parse_duration, read_loosely
from tenure.model.values.text import PARSED_MAX
from tenure.schema.findings import Code, Finding

_DIGITS_MAX: Final = 20


class Ground(msgspec.Struct, frozen=True):
    """The claim or pool where a pod runs, or may run, and what a drain there grants it."""

    #: For messages: ``NodePool general``.
    name: str
    #: The ``terminationGracePeriod``.
    period: str | None = None
    #: The pool's ``maxPodProtection``.
    cap: str | None = None

    @property
    def span(self) -> timedelta | None:
        return _span(self.period)


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that are all alike."""

    #: For messages: ``Deployment/team-a/web``.
    name: str
    namespace: str
    template: PodTemplate
    #: The path of the template in its object; empty for a pod.
    at: str = ""
    #: How many pods; None when that is unknown.
    replicas: int | None = None
    grounds: tuple[Ground, ...] = ()

    def field(self, path: str) -> str:
        return f"{self.at}.{path}" if self.at else path


def workload_findings(workload: Workload) -> Iterator[Finding]:
    yield from _grace(workload)
    yield from _protection(workload)


def _grace(workload: Workload) -> Iterator[Finding]:
    grace = grace_in(workload.template.spec)
    for ground in workload.grounds:
        if (span := ground.span) is not None and grace > span:
            left = _in_short(max(span, timedelta(seconds=1)))
            yield Finding(
                Code.GRACE_LONGER,
                workload.field("spec.terminationGracePeriodSeconds"),
                f"{_in_short(grace)} is longer than terminationGracePeriod {ground.period} of "
                f"{ground.name}: the pod is deleted as soon as its Node terminates, with "
                f"a grace period of {left}",
            )


def _protection(workload: Workload) -> Iterator[Finding]:
    value = workload.template.metadata.annotations.get(DO_NOT_DISRUPT)
    if value is None or value == "false":
        return
    at = workload.field(f"metadata.annotations.{DO_NOT_DISRUPT}")
    asked = positive(value) if value != "true" else None
    if asked is None and value != "true":
        yield invalid_protection(value, at)
        return
    for ground in workload.grounds:
        lasts = min(filter(None, (asked, _span(ground.cap))), default=None)
        if (found := _against(ground, value, lasts, grace_in(workload.template.spec))) is not None:
            yield Finding(found.code, at, found.message)


def _against(
    ground: Ground, value: str, lasts: timedelta | None, grace: timedelta
) -> Finding | None:
    """The finding about a protection of that duration (for ever if None) on that ground."""
    span = ground.span
    if span is None:
        if lasts is not None:
            return None
        message = (
            f'"{shown(value)}" protects for ever, and {ground.name} has neither a terminationGracePeriod '
            f"nor maxPodProtection: a drain of its Node waits for ever"
        )
        return Finding(Code.PROTECTED_FOR_EVER, "", message)
    begins = f"{_in_short(span - grace)} after the drain begins" if span > grace else "at once"
    then = f"on a terminating Node the pod is deleted {begins} despite its protection"
    if lasts is None:
        message = (
            f'"{shown(value)}" is ended by terminationGracePeriod {ground.period} of {ground.name}'
        )
        return Finding(Code.PROTECTION_BOUNDED, "", f"{message}: {then}")
    if lasts > span:
        message = f"{_in_short(lasts)} is longer than terminationGracePeriod {ground.period}"
        return Finding(Code.PROTECTION_LONGER, "", f"{message} of {ground.name}: {then}")
    return None


def invalid_protection(value: str, at: str) -> Finding:
    """What the value of ``karpenter.sh/do-not-disrupt`` should have been."""
    message = (
        f'"{shown(value)}" protects for ever, for it is neither "true", "false" nor a duration'
    )
    return Finding(Code.INVALID_DO_NOT_DISRUPT, at, f"{message}; {_meant(value)}")


def _meant(value: str) -> str:
    text = value[: PARSED_MAX + 1].strip().lower()
    if text in ("true", "false"):
        return f'write "{text}"'
    if text in ("yes", "on", "always", "forever", "never", "indefinite"):
        return 'write "true" to protect the pod for ever'
    if text in ("no", "off", "none", "") or _is_nothing(text):
        return 'write "false", or remove the annotation, to leave the pod unprotected'
    if text.isdecimal() and len(text) < PARSED_MAX:
        return f'add a unit: "{text}s", "{text}m" or "{text}h"'
    if (meant := read_loosely(text.removeprefix("-"))) is not None:
        return f'write "{compact(meant)}"'
    return 'write a duration such as "30m", "4h" or "1h30m"'


def _is_nothing(text: str) -> bool:
    try:
        return parse_duration(text).nanoseconds == 0
    except SpecError:
        return False


# -- disruption budgets ------------------------------------------------------------------


def budget_finding(budget: PodDisruptionBudget, covered: Sequence[Workload]) -> Finding | None:
    """The finding that it can never allow an eviction of the workloads that it selects."""
    field = "minAvailable" if budget.spec.max_unavailable is None else "maxUnavailable"
    if not covered or not (numbers := _never(budget, covered)):
        return None
    names = ", ".join(workload.name for workload in covered)
    message = f"{numbers} of {names}: {_then(covered)}"
    return Finding(Code.BUDGET_NEVER_ALLOWS, f"spec.{field}", message)


def _never(budget: PodDisruptionBudget, covered: Sequence[Workload]) -> str:
    """By its status if it has one, else by its spec; empty when it may allow an eviction."""
    if budget.status.expected_pods:
        return arithmetic(budget) if never_allows(budget) else ""
    counts = [workload.replicas for workload in covered]
    pods = sum(filter(None, counts)) if None not in counts else None
    spec = budget.spec
    if spec.max_unavailable is not None:
        wish, never = (
            f"maxUnavailable {spec.max_unavailable}",
            _share(spec.max_unavailable, 100) == 0,
        )
    else:
        least = 1 if spec.min_available is None else spec.min_available
        wish, never = f"minAvailable {least}", str(least) == "100%"
        never = never or (pods is not None and _share(least, pods) >= pods)
    if not never or pods == 0:
        return ""
    counted = "" if pods is None else " of 1 pod" if pods == 1 else f" of {pods} pods"
    return f"{wish}{counted} can never allow an eviction"


def several_budgets(budgets: Sequence[PodDisruptionBudget], workload: Workload) -> Finding:
    names = " and ".join(budget.key for budget in budgets)
    message = f"{names} cover {workload.name}, and the API never evicts such a pod: "
    return Finding(Code.SEVERAL_BUDGETS, "spec.selector", message + _then([workload]))


def _then(covered: Sequence[Workload]) -> str:
    """What happens to a drain that such a PDB blocks."""
    grounds = {ground for workload in covered for ground in workload.grounds}
    bounded = sorted(ground.name for ground in grounds if ground.span is not None)
    if grounds and len(bounded) == len(grounds):
        return "a drain deletes its pods despite the PDB, each in time before the deadline"
    return "a drain waits until the PDB or the number of pods changes"


def _share(wish: int | str, pods: int) -> int:
    """The number of pods that it means; percentages are rounded up, as the API does."""
    text = str(wish)
    per_cent, text = text.endswith("%"), text.removesuffix("%")
    if not text.isdecimal():
        return 1
    # More digits than any cluster has pods: int() refuses thousands of them.
    number = int(text) if len(text) < _DIGITS_MAX else 10**_DIGITS_MAX
    return -(-number * pods // 100) if per_cent else number


def _span(text: str | None) -> timedelta | None:
    """The duration; None if there is none, or if it is invalid and so has no effect."""
    try:
        return parse_duration(text).timedelta if text is not None else None
    except (SpecError, OverflowError):
        return None


def _in_short(span: timedelta) -> str:
    return compact(Duration.of(span))


# -- all together ------------------------------------------------------------------------


def all_findings(
    workloads: Sequence[Workload], budgets: Sequence[PodDisruptionBudget]
) -> Iterator[tuple[Workload | PodDisruptionBudget, Finding]]:
    """Each finding with its workload or PDB."""
    for workload in workloads:
        yield from ((workload, finding) for finding in workload_findings(workload))
        if len(covering := [one for one in budgets if covers(one, workload)]) > 1:
            yield covering[-1], several_budgets(covering, workload)
    for budget in budgets:
        covered = [workload for workload in workloads if covers(budget, workload)]
        if (found := budget_finding(budget, covered)) is not None:
            yield budget, found


def covers(budget: PodDisruptionBudget, workload: Workload) -> bool:
    if budget.namespace != workload.namespace:
        return False
    try:
        return matches(budget.spec.selector, workload.template.metadata.labels)
    except SpecError:
        return False  # An invalid operator: it selects no pods.
