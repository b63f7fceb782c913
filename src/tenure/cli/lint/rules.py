"""Everything there is to say about manifests, before they are applied.

In order: what is wrong with each object, as ``tenure simulate`` and the webhook would say it; what
is probably not meant; then what they mean for each other: grace and protection of the pods against
the pools where they may run, and what PDBs can allow. Where a workload will run cannot be known
from manifests: every pool counts whose labels and taints it can do with, or else all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tenure.cli.lint.annotations import duration_on_pod, durations_on
from tenure.cli.lint.costs import cost_findings, misplaced_costs
from tenure.cli.lint.ignores import without_ignored
from tenure.cli.lint.known import Known, known_by
from tenure.cli.lint.nodeselectors import node_selector_findings
from tenure.cli.lint.oldannotations import old_annotation, old_annotations
from tenure.cli.lint.policies import (
    did_you_mean,
    dropped_findings,
    launched_by_karpenter,
    policy_findings,
)
from tenure.cli.lint.remarks import Remark, Report
from tenure.cli.lint.source import Source, Sources
from tenure.cli.lint.windows import (
    calendar_findings,
    lever_findings,
    pool_findings,
    selector_findings,
)
from tenure.cli.lint.workloads import (
    TEMPLATES,
    CannotBeRead,
    converted,
    grounds_for,
    pdb_in,
    places,
    scaled,
    workload_in,
)
from tenure.core.protect.protection import readable_protection
from tenure.core.terminate.workloads import Workload, all_findings, invalid_protection
from tenure.errors import KNOWN_FIELD, SpecError, shown
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import DO_NOT_DISRUPT, DO_NOT_REPAIR
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.resource import NODE_POOL_POLICIES, NODE_POOLS
from tenure.model.api.window import MaintenanceWindow
from tenure.model.api.workload import PodDisruptionBudget
from tenure.model.snapshot.kinds import type_for
from tenure.providers.registry import usable
from tenure.schema.advice import (
    advice_for,
    by_force,
    foreign_class,
    missing_statuses,
)
from tenure.schema.fields import used_fields
from tenure.schema.findings import Code, Finding
from tenure.schema.semantics.labels import is_object_name
from tenure.schema.structure import fielderror
from tenure.schema.structure.validate import schema_for
from tenure.sim.apiserver.objects.tree import dig, without_nulls
from tenure.sim.scenario.manifests import check_shape
from tenure.sim.scenario.read.fields import Reader

#: Objects whose own annotation is read; on a pool it is in the template.
_ANNOTATED: Final = {
    ("", "Node"): "metadata",
    ("karpenter.sh", "NodeClaim"): "metadata",
    ("karpenter.sh", "NodePool"): "spec.template.metadata",
}


def report_on(
    sources: Sources, now: datetime, known: Known | None = None, *, beside: bool = False
) -> Report:
    """Everything about manifests, less what their comments ignore."""
    found = all_remarks(sources.found, now, known, beside=beside)
    remarks, ignored = without_ignored(sources.found, found)
    return Report(
        remarks=remarks,
        objects=len(sources.found),
        ignored=ignored,
        notes=sources.notes,
        problems=[str(problem) for problem in sources.problems],
    )


def all_remarks(
    sources: Sequence[Source],
    now: datetime,
    known: Known | None = None,
    *,
    beside: bool = False,
) -> list[tuple[int, Remark]]:
    """In the order in which the objects stand, each with the place of its object. ``known``: of the providers that
    are installed. ``beside``: Karpenter, whose CRD the NodePools meet, and which has levers for some actions alone."""
    known = known if known is not None else known_by(usable())
    found: dict[int, list[Finding]] = {id(source): [] for source in sources}
    workloads: list[tuple[Source, Workload]] = []
    pdbs: list[tuple[Source, PodDisruptionBudget]] = []
    pools: list[ApiObject] = []
    policies: list[tuple[Source, NodePoolPolicy]] = []
    valid: list[tuple[Source, ApiObject]] = []
    unread = False
    for source in sources:
        wrong = list(_wrong(source, known))
        found[id(source)] += [*wrong, *_annotations(source, beside=beside)]
        try:
            if (custom := _typed(source, known)) is not None:
                pools.append(custom)
                policies += [(source, custom)] if isinstance(custom, NodePoolPolicy) else []
                on_it = _on_custom(custom, sources, now, known, valid=not wrong)
                found[id(source)] += launched_by_karpenter(on_it) if beside else on_it
                found[id(source)] += () if wrong else _as_written(source, beside=beside)
                found[id(source)] += () if wrong else _fields(source, custom, known, beside=beside)
                if not wrong:
                    valid.append((source, custom))
            elif (workload := workload_in(source)) is not None:
                workloads.append((source, workload))
                found[id(source)] += node_selector_findings(workload)
            elif (pdb := pdb_in(source)) is not None:
                pdbs.append((source, pdb))
        except CannotBeRead as error:
            unread |= source.kind == NODE_POOLS.group_kind
            found[id(source)] += () if wrong else [Finding(Code.INVALID, error.field, str(error))]
        except SpecError as error:
            found[id(source)] += () if wrong else [Finding(Code.INVALID, "", str(error))]
    for owner, finding in _together(workloads, pdbs, pools, sources):
        found[id(owner)].append(finding)
    about_pools = (*_policies(policies, pools, beside=beside), *_windows(valid, pools))
    for owner, finding in about_pools:
        # A pool that cannot be read may be the one that is meant.
        if not (unread and finding.code is Code.SELECTS_NO_POOL):
            found[id(owner)].append(finding)
    for owner, finding in _classes(valid, sources, known):
        found[id(owner)].append(finding)
    for owner, finding in _beside(valid, pools) if beside else ():
        found[id(owner)].append(finding)
    return [
        (index, remark)
        for index, source in enumerate(sources)
        for remark in sorted(
            (_remark(source, finding) for finding in found[id(source)]),
            key=lambda remark: remark.line,
        )
    ]


def _on_custom(
    custom: ApiObject, sources: Sequence[Source], now: datetime, known: Known, *, valid: bool
) -> Iterator[Finding]:
    """``valid``: the API server takes it, so that it means something."""
    watched = known.watched_by(custom)
    if isinstance(custom, NodePool | NodeClaim):
        yield from foreign_class(custom, known.ours)
    if not valid:
        yield from missing_statuses(custom, watched)
        return
    yield from advice_for(custom, now, watched)
    if isinstance(custom, MaintenanceWindow):
        yield from calendar_findings(custom, now)
        yield from selector_findings(custom, _labels(sources), ())


def _remark(source: Source, finding: Finding) -> Remark:
    place = source.position(finding.at)
    return Remark(
        about=source.name,
        finding=finding,
        file=source.document.file,
        line=place.line,
        column=place.column,
    )


# -- each for itself ---------------------------------------------------------------------


def _wrong(source: Source, of: Known) -> Iterator[Finding]:
    group, kind = source.kind
    version, schema = source.value["apiVersion"], schema_for(group, kind, of.kinds)
    if schema is not None and version != schema.resource.api_version:
        wanted = schema.resource.api_version
        yield Finding(Code.INVALID, "apiVersion", f"got {version!r}, expected {wanted}")
        return
    siblings = [one.resource.kind for one in of.kinds if one.resource.group == group]
    if siblings and schema is None:
        elsewhere = [one.resource.api_version for one in of.kinds if one.resource.kind == kind]
        if elsewhere:
            wanted = " or ".join(elsewhere)
            yield Finding(Code.INVALID, "apiVersion", f"got {version!r}, expected {wanted}")
            return
        expected = f"expected one of {', '.join(siblings)}"
        expected += "; tenure convert makes a NodePool of it" if kind == "Provisioner" else ""
        yield Finding(Code.INVALID, "kind", f"got {kind!r}, {expected}")
        return
    problems: list[SpecError] = []
    if siblings:
        yield from _name(source)
    check_shape(Reader(source.document, problems), source.value, source.at, of.kinds)
    for problem in problems:
        unknown = problem.expected == KNOWN_FIELD
        code = Code.UNKNOWN_FIELD if unknown else Code.INVALID
        field = problem.at.removeprefix(f"{source.document.file}:").partition(": ")[2]
        field = field.removeprefix(source.at).lstrip(".") if source.at else field
        name = field.rpartition(".")[2] if unknown else ""
        example = of.example(kind, field) if problem.got is fielderror.NOTHING else ""
        hint = f"{problem.hint} For example {example}." if example else problem.hint
        said = SpecError(name, problem.got, problem.expected, hint)
        yield Finding(code, field, str(said).removeprefix(": "))


def _name(source: Source) -> Iterator[Finding]:
    """As the API server takes it; only of kinds whose names are told here anyway."""
    name = dig(source.value, "metadata", "name")
    if isinstance(name, str) and not is_object_name(name):
        said = f"got {shown(repr(name))}, expected lowercase letters, digits, dashes and dots"
        yield Finding(Code.INVALID, "metadata.name", f"{said}, with a letter or digit at both ends")


def _annotations(source: Source, *, beside: bool) -> Iterator[Finding]:
    """Of what is no pod; pods are evaluated with where they may run."""
    yield from (old_annotation(at, name) for at, name in old_annotations(source.value))
    if source.kind in _ANNOTATED:
        at = _ANNOTATED[source.kind]
        for name in (DO_NOT_DISRUPT, DO_NOT_REPAIR):
            value = dig(source.value, *at.split("."), "annotations", name)
            if isinstance(value, str) and not readable_protection(value):
                yield invalid_protection(value, f"{at}.annotations.{name}")
        yield from durations_on(dig(source.value, *at.split("."), "annotations"), at)
    elif TEMPLATES.get(source.kind):
        value = dig(source.value, "metadata", "annotations", DO_NOT_DISRUPT)
        if value is not None:
            at = f"metadata.annotations.{DO_NOT_DISRUPT}"
            message = f"protects no pod on a {source.value['kind']}: its pods do not inherit it"
            yield Finding(Code.ANNOTATION_MISPLACED, at, message)
    yield from _on_pods(source, beside=beside)


def _on_pods(source: Source, *, beside: bool) -> Iterator[Finding]:
    """Karpenter, beside which Tenure runs, reads the annotations of pods itself."""
    path = TEMPLATES.get(source.kind)
    if path is None:
        return
    own = dig(source.value, "metadata", "annotations")
    if path and isinstance(own, dict):
        yield from misplaced_costs(own, source.value["kind"])
    at = f"{path}.metadata.annotations".lstrip(".")
    written = dig(source.value, *at.split(".")) if path else own
    if isinstance(written, dict):
        yield from cost_findings(written, at)
        yield from () if beside else duration_on_pod(written, at.removesuffix(".annotations"))


def _as_written(source: Source, *, beside: bool) -> Iterator[Finding]:
    """What only a manifest tells: a default that may surprise."""
    if source.kind in (("karpenter.sh", "NodePool"), NODE_POOL_POLICIES.group_kind):
        block = dig(source.value, "spec", "repair")
        if isinstance(block, dict) and block.get("terminationMode") is None:
            yield by_force(beside=beside)


def _fields(source: Source, custom: ApiObject, known: Known, *, beside: bool) -> Iterator[Finding]:
    """What is ignored, or differs from Karpenter; not of what Karpenter or another provider acts upon."""
    if isinstance(custom, NodePool | NodeClaim):
        ref = custom.node_class_ref
        if beside or (ref.group, ref.kind) not in known.ours:
            return
    (kind,) = (one for one in known.kinds if one.resource.group_kind == source.kind)
    yield from (one.finding for one in used_fields(source.value.get("spec") or {}, kind))


def _labels(sources: Sequence[Source]) -> list[dict[str, str]]:
    """Of the Nodes among the manifests; without any it is not known what a selector selects."""
    nodes = (source.value for source in sources if source.kind == ("", "Node"))
    found = (dig(node, "metadata", "labels") for node in nodes)
    return [
        {key: str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}
        for labels in found
    ]


def _typed(source: Source, known: Known) -> ApiObject | None:
    """An object of one of the known kinds, with the defaults that the API would write."""
    schema = schema_for(*source.kind, known.kinds)
    if schema is None:
        return None
    stored = schema.default(schema.prune(without_nulls(source.value)))
    return converted(stored, type_for(schema.resource))


# -- together ----------------------------------------------------------------------------


def _windows(
    valid: Sequence[tuple[Source, ApiObject]], customs: Sequence[ApiObject]
) -> Iterator[tuple[Source, Finding]]:
    """Which of them are for no pool there."""
    pools = [one for one in customs if isinstance(one, NodePool)]
    for source, custom in valid:
        if isinstance(custom, MaintenanceWindow):
            yield from ((source, finding) for finding in pool_findings(custom, pools))


def _classes(
    valid: Sequence[tuple[Source, ApiObject]], sources: Sequence[Source], known: Known
) -> Iterator[tuple[Source, Finding]]:
    """Of which node class there is none here. Without one of its kind here they may all be in the cluster."""
    for source, custom in valid:
        if not isinstance(custom, NodePool | NodeClaim):
            continue
        ref = custom.node_class_ref
        there = [
            str(dig(one.value, "metadata", "name"))
            for one in sources
            if one.kind == (ref.group, ref.kind)
        ]
        if (ref.group, ref.kind) in known.ours and there and ref.name not in there:
            meant = did_you_mean([ref.name], there)
            message = f"no {ref.kind} {ref.name} is here: without it nothing is launched{meant}"
            at = "spec.template.spec" if isinstance(custom, NodePool) else "spec"
            yield source, Finding(Code.NODE_CLASS_ELSEWHERE, f"{at}.nodeClassRef.name", message)


def _beside(
    valid: Sequence[tuple[Source, ApiObject]], customs: Sequence[ApiObject]
) -> Iterator[tuple[Source, Finding]]:
    """What Karpenter drops, and which actions of windows it has no lever for, by all pools and policies there."""
    pools = [one for one in customs if isinstance(one, NodePool)]
    soft = any(
        one.spec.expire_after is not None for one in customs if isinstance(one, NodePoolPolicy)
    )
    for source, custom in valid:
        found: Iterable[Finding] = ()
        if isinstance(custom, NodePool):
            found = dropped_findings(custom)
        elif isinstance(custom, MaintenanceWindow):
            found = lever_findings(custom, pools, soft=soft)
        yield from ((source, finding) for finding in found)


def _policies(
    policies: Sequence[tuple[Source, NodePoolPolicy]],
    customs: Sequence[ApiObject],
    *,
    beside: bool,
) -> Iterator[tuple[Source, Finding]]:
    owners = {id(policy): source for source, policy in policies}
    pools = [one for one in customs if isinstance(one, NodePool)]
    for policy, finding in policy_findings(
        [policy for _, policy in policies], pools, beside=beside
    ):
        yield owners[id(policy)], finding


def _together(
    workloads: Sequence[tuple[Source, Workload]],
    pdbs: Sequence[tuple[Source, PodDisruptionBudget]],
    pools: Sequence[ApiObject],
    sources: Sequence[Source],
) -> Iterator[tuple[Source, Finding]]:
    everywhere = places(pools)
    placed = [
        msgspec.structs.replace(one, grounds=grounds_for(one.template, everywhere))
        for one in scaled((one for _, one in workloads), sources)
    ]
    owners: dict[int, Source] = {
        id(one): source for one, (source, _) in zip(placed, workloads, strict=True)
    }
    owners |= {id(pdb): source for source, pdb in pdbs}
    for about, finding in all_findings(placed, [pdb for _, pdb in pdbs]):
        yield owners[id(about)], finding
