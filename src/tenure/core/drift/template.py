"""Which fields of a pool's template have changed since a claim was created.

The claim records a number for each hashed field (``marks/templatehash``), so the fields are known exactly.
A claim that another program made has no such record: then its own copy of the template is
compared, which shows everything but a label or an annotation that was removed. That copy also shows
the values. Which entry was removed is found among the claim's own, by the recorded number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tenure.core.drift.facts import FieldChanged
from tenure.core.facts import NAMED_MAX
from tenure.core.marks.templatehash import (
    FIELDS,
    FieldHashes,
    HashedField,
    entries_of,
    recorded_hashes,
)
from tenure.errors import SpecError, shown
from tenure.model.api.names import GROUP, RESERVED_TAINT, WELL_KNOWN_LABELS
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodeClaimTemplate
from tenure.model.snapshot.governed import as_written


def changed_fields(
    claim: NodeClaim, template: NodeClaimTemplate, now: FieldHashes
) -> tuple[FieldChanged, ...]:
    """``now``: the hashes of the template's fields. Empty: the claim does not show which."""
    claim = as_written(claim)
    recorded = recorded_hashes(claim.annotations)
    changed = (
        field
        for field in FIELDS
        if (
            _differs(claim, template, field)
            if recorded is None
            else recorded[field.path] != now[field.path]
        )
    )
    return tuple(
        FieldChanged(field.path, _how(field, claim, template, recorded)) for field in changed
    )


def _how(
    field: HashedField,
    claim: NodeClaim,
    template: NodeClaimTemplate,
    recorded: FieldHashes | None,
) -> str:
    """What was removed is not seen at the claim's labels and annotations, because it has others of its own: the
    record tells it, in most cases.
    """
    if field.path not in _METADATA:
        return _HOW[field.path](claim, template)
    has, wanted = _METADATA[field.path](claim, template)
    then = recorded[field.path] if recorded is not None else None
    kept = {key: has[key] for key in wanted if key in has}
    others = {key: value for key, value in has.items() if key not in wanted and _may_be_users(key)}
    removed = entries_of(then, kept, others)
    return _entries(has, wanted, removed) or "an entry was removed"


def _may_be_users(key: str) -> bool:
    """What Karpenter and its providers (karpenter.k8s.aws) write on every claim is no entry of a template."""
    domain = key.rpartition("/")[0]
    reserved = domain.endswith(f".{GROUP}") or domain.startswith("karpenter.")
    return not reserved and key not in WELL_KNOWN_LABELS


def _differs(claim: NodeClaim, template: NodeClaimTemplate, field: HashedField) -> bool:
    """Whether the claim's own copy of the field says something else."""
    if field.path in _METADATA:
        return bool(_entries(*_METADATA[field.path](claim, template)))
    try:
        then = field.hash(NodeClaimTemplate(spec=claim.spec))
    except SpecError:
        return False
    # A claim has no empty lists, and an empty list hashes to zero.
    return (then or 0) != (field.hash(template) or 0)


def _entries(has: Mapping[str, str], wanted: Mapping[str, str], removed: Iterable[str] = ()) -> str:
    """Entries of the template that the claim has otherwise, or not at all, and those that are gone."""
    return _listed(
        [
            *(
                f"{shown(key)}: {shown(has[key])} → {shown(value)}"
                if key in has
                else f"{shown(key)}={shown(value)} added"
                for key, value in sorted(wanted.items())
                if has.get(key) != value
            ),
            *(f"{shown(key)}={shown(has[key])} removed" for key in removed),
        ]
    )


def _taints(claim: NodeClaim, template: NodeClaimTemplate) -> str:
    return _added_and_removed(claim.spec.taints, template.spec.taints)


def _startup_taints(claim: NodeClaim, template: NodeClaimTemplate) -> str:
    then = [taint for taint in claim.spec.startup_taints if taint.key != RESERVED_TAINT]
    return _added_and_removed(then, template.spec.startup_taints)


def _added_and_removed(then: Sequence[Taint], now: Sequence[Taint]) -> str:
    before, after = [set(map(_text, taints)) for taints in (then, now)]
    return _listed(
        [
            *(f"{shown(taint)} added" for taint in sorted(after - before)),
            *(f"{shown(taint)} removed" for taint in sorted(before - after)),
        ]
    )


def _text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _node_class(claim: NodeClaim, template: NodeClaimTemplate) -> str:
    then, now = claim.spec.node_class_ref, template.spec.node_class_ref
    return f"{then.kind} {then.name} → {now.kind} {now.name}"


def _grace_period(claim: NodeClaim, template: NodeClaimTemplate) -> str:
    return _then_now(claim.spec.termination_grace_period, template.spec.termination_grace_period)


def _expire_after(claim: NodeClaim, template: NodeClaimTemplate) -> str:
    return _then_now(claim.spec.expire_after, template.spec.expire_after)


def _then_now(then: str | None, now: str | None) -> str:
    return f"{shown(then or 'none')} → {shown(now or 'none')}"


def _listed(changes: Iterator[str] | Sequence[str]) -> str:
    every = list(changes)
    more = f" and {len(every) - NAMED_MAX} more" if len(every) > NAMED_MAX else ""
    return "; ".join(every[:NAMED_MAX]) + more


#: What the claim has and the template asks for; the claim has others, too.
_METADATA: Final[
    Mapping[
        str, Callable[[NodeClaim, NodeClaimTemplate], tuple[Mapping[str, str], Mapping[str, str]]]
    ]
] = {
    "metadata.labels": lambda claim, template: (claim.labels, template.metadata.labels),
    "metadata.annotations": lambda claim, template: (
        claim.annotations,
        template.metadata.annotations,
    ),
}

#: By the path of the field: what was there and what is, as far as the claim shows it.
_HOW: Final[Mapping[str, Callable[[NodeClaim, NodeClaimTemplate], str]]] = {
    "spec.taints": _taints,
    "spec.startupTaints": _startup_taints,
    "spec.nodeClassRef": _node_class,
    "spec.terminationGracePeriod": _grace_period,
    "spec.expireAfter": _expire_after,
}
