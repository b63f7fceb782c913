"""Find workloads whose settings a drain will not respect, or that block a drain without end.

Known before any drain, from the manifests: a pod's grace period and protection compared with the
``terminationGracePeriod`` of the pools where it may run, and what PDBs can allow at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from tenure.core.facts import Fact
from tenure.core.marks.deadline import grace_in
from tenure.core.protect.protection import positive
from tenure.core.terminate.facts.workloads import (
    CoveredTwice,
    GracePeriodCut,
    NeverEvicted,
    ProtectionCut,
    ProtectionEndless,
    ProtectionInvalid,
)
from tenure.core.terminate.pdb import never_allows, setting_of
from tenure.errors import SpecError, shown
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.workload import PodDisruptionBudget, PodTemplate
from tenure.model.matching.selectors import matches
from tenure.model.values.duration import compact, parse_duration, read_loosely
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


class Found(msgspec.Struct, frozen=True):
    """A finding before it is put into words."""

    code: Code
    #: The path of the field.
    at: str
    fact: Fact

    def told(self) -> Finding:
        return Finding(self.code, self.at, str(self.fact))


def workload_findings(workload: Workload) -> Iterator[Found]:
    yield from _grace(workload)
    yield from _protection(workload)


def _grace(workload: Workload) -> Iterator[Found]:
    grace = grace_in(workload.template.spec)
    for ground in workload.grounds:
        if (span := ground.span) is not None and grace > span:
            left = max(span, timedelta(seconds=1))
            fact = GracePeriodCut(grace, ground.period or "", ground.name, left)
            yield Found(
                Code.GRACE_LONGER, workload.field("spec.terminationGracePeriodSeconds"), fact
            )


def _protection(workload: Workload) -> Iterator[Found]:
    value = workload.template.metadata.annotations.get(DO_NOT_DISRUPT)
    if value is None or value == "false":
        return
    at = workload.field(f"metadata.annotations.{DO_NOT_DISRUPT}")
    asked = positive(value) if value != "true" else None
    if asked is None and value != "true":
        yield Found(Code.INVALID_DO_NOT_DISRUPT, at, _invalid(value))
        return
    for ground in workload.grounds:
        lasts = min(filter(None, (asked, _span(ground.cap))), default=None)
        found = _against(ground, value, lasts, grace_in(workload.template.spec))
        if found is not None:
            yield Found(found[0], at, found[1])


def _against(
    ground: Ground, value: str, lasts: timedelta | None, grace: timedelta
) -> tuple[Code, Fact] | None:
    """What is wrong with a protection of that duration (for ever if None) on that ground."""
    span = ground.span
    if span is None:
        endless = ProtectionEndless(shown(value), ground.name)
        return (Code.PROTECTED_FOR_EVER, endless) if lasts is None else None
    if lasts is not None and lasts <= span:
        return None
    after = max(span - grace, timedelta())
    cut = ProtectionCut(shown(value), lasts, ground.period or "", ground.name, after)
    return (Code.PROTECTION_BOUNDED if lasts is None else Code.PROTECTION_LONGER), cut


def invalid_protection(value: str, at: str) -> Finding:
    """What the value of ``karpenter.sh/do-not-disrupt`` should have been."""
    return Finding(Code.INVALID_DO_NOT_DISRUPT, at, str(_invalid(value)))


def _invalid(value: str) -> ProtectionInvalid:
    return ProtectionInvalid(shown(value), _meant(value))


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


# -- PDBs --------------------------------------------------------------------------------


def pdb_finding(pdb: PodDisruptionBudget, covered: Sequence[Workload]) -> Found | None:
    """The finding that it can never allow an eviction of the workloads that it selects."""
    field = "minAvailable" if pdb.spec.max_unavailable is None else "maxUnavailable"
    pods = pdb.status.expected_pods or _replicas(covered)
    if not covered or not _never(pdb, pods):
        return None
    names = tuple(workload.name for workload in covered)
    fact = NeverEvicted(setting_of(pdb), pods, names, _bounded(covered))
    return Found(Code.BUDGET_NEVER_ALLOWS, f"spec.{field}", fact)


def _replicas(covered: Sequence[Workload]) -> int | None:
    counts = [workload.replicas for workload in covered]
    return sum(filter(None, counts)) if None not in counts else None


def _never(pdb: PodDisruptionBudget, pods: int | None) -> bool:
    """By its status if it has one, else by its spec."""
    if pdb.status.expected_pods:
        return never_allows(pdb)
    spec = pdb.spec
    if pods == 0:
        return False
    if spec.max_unavailable is not None:
        return _share(spec.max_unavailable, 100) == 0
    least = 1 if spec.min_available is None else spec.min_available
    return str(least) == "100%" or (pods is not None and _share(least, pods) >= pods)


def several_pdbs(pdbs: Sequence[PodDisruptionBudget], workload: Workload) -> Found:
    keys = tuple(pdb.key for pdb in pdbs)
    fact = CoveredTwice(keys, workload.name, _bounded([workload]))
    return Found(Code.SEVERAL_BUDGETS, "spec.selector", fact)


def _bounded(covered: Sequence[Workload]) -> bool:
    """Whether a deadline ends every drain that the PDB blocks."""
    grounds = {ground for workload in covered for ground in workload.grounds}
    return bool(grounds) and all(ground.span is not None for ground in grounds)


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


# -- all together ------------------------------------------------------------------------


def all_findings(
    workloads: Sequence[Workload], pdbs: Sequence[PodDisruptionBudget]
) -> Iterator[tuple[Workload | PodDisruptionBudget, Finding]]:
    """Each finding with its workload or PDB."""
    for workload in workloads:
        yield from ((workload, found.told()) for found in workload_findings(workload))
        if len(covering := [one for one in pdbs if covers(one, workload)]) > 1:
            yield covering[-1], several_pdbs(covering, workload).told()
    for pdb in pdbs:
        covered = [workload for workload in workloads if covers(pdb, workload)]
        if (found := pdb_finding(pdb, covered)) is not None:
            yield pdb, found.told()


def covers(pdb: PodDisruptionBudget, workload: Workload) -> bool:
    if pdb.namespace != workload.namespace:
        return False
    try:
        return matches(pdb.spec.selector, workload.template.metadata.labels)
    except SpecError:
        return False  # An invalid operator: it selects no pods.
