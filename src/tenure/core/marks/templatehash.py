"""The hash of a pool's template, bit for bit the same as Karpenter's version ``v3``.

A claim keeps the hash from its creation; a different hash on the pool later means that the template
has changed. It must equal Karpenter's, otherwise every node of a fleet taken over from Karpenter
would drift at once. Requirements and our own fields are not hashed, as in Karpenter.

The scheme is hashstructure's (FormatV2, slices as sets, zero values and nil ignored)
over FNV-1 with 64 bits: a struct folds its fields in Go's order into the hash of its
type's name; maps and slices fold with xor, so their order does not matter. An empty
but written map or slice is not the same as an absent one, ``Never`` is the same as
absent, a written ``0s`` grace period is a Duration without fields, and a written ``0s``
expiry is a pointer to zero, which is not zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tenure.model.api.meta import AbsentList, AbsentMap
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.nodepool import NodeClaimTemplate
from tenure.model.values.duration import parse_duration, parse_duration_or_never

HASH_VERSION: Final = "v3"

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = 0xFFFFFFFFFFFFFFFF

#: A field's hash, or None for a field that is zero and therefore left out.
_Field = int | None


def template_hash(template: NodeClaimTemplate) -> str:
    """The value of the annotation ``karpenter.sh/nodepool-hash``.

    Raises ``SpecError`` for a duration that cannot be read.
    """
    spec = template.spec
    labels, annotations = _map(template.metadata.labels), _map(template.metadata.annotations)
    meta = None  # A struct without a single field is zero, too.
    if labels is not None or annotations is not None:
        meta = _struct("ObjectMeta", ("Labels", labels), ("Annotations", annotations))
    inner = _struct(
        "NodeClaimTemplateSpec",
        ("Taints", _taints(spec.taints)),
        ("StartupTaints", _taints(spec.startup_taints)),
        ("NodeClassRef", _node_class(spec.node_class_ref)),
        ("TerminationGracePeriod", _grace_period(spec.termination_grace_period)),
        ("ExpireAfter", _expire_after(spec.expire_after)),
    )
    return str(_struct("NodeClaimTemplate", ("ObjectMeta", meta), ("Spec", inner)))


def _grace_period(text: str | None) -> _Field:
    if text is None:
        return None
    nanoseconds = parse_duration(text, "spec.template.spec.terminationGracePeriod").nanoseconds
    return _struct("Duration", ("Duration", _integer(nanoseconds) if nanoseconds else None))


def _expire_after(text: str | None) -> _Field:
    if text is None:
        return None
    duration = parse_duration_or_never(text, "spec.template.spec.expireAfter")
    if duration is None:
        return None
    return _struct("NillableDuration", ("Duration", _integer(duration.nanoseconds)))


def _node_class(ref: NodeClassRef) -> int:
    return _struct(
        "NodeClassReference",
        ("Kind", _text(ref.kind)),
        ("Name", _text(ref.name)),
        ("Group", _text(ref.group)),
    )


def _taints(taints: Sequence[Taint]) -> _Field:
    if isinstance(taints, AbsentList):
        return None
    folded = 0
    for taint in taints:
        folded ^= _struct(
            "Taint",
            ("Key", _text(taint.key)),
            ("Value", _text(taint.value)),
            ("Effect", _text(taint.effect)),
        )
    return folded


def _map(entries: Mapping[str, str]) -> _Field:
    if isinstance(entries, AbsentMap):
        return None
    folded = 0
    for key, value in entries.items():
        folded ^= _ordered(_fnv(key.encode()), _fnv(value.encode()))
    return _finish(folded)


def _text(text: str) -> _Field:
    return _fnv(text.encode()) if text else None


def _integer(number: int) -> int:
    return _fnv((number & _MASK).to_bytes(8, "little"))


def _struct(name: str, *fields: tuple[str, _Field]) -> int:
    folded = _fnv(name.encode())
    for field, value in fields:
        if value is not None:
            folded = _finish(folded ^ _ordered(_fnv(field.encode()), value))
    return folded


def _ordered(first: int, second: int) -> int:
    return _fnv(first.to_bytes(8, "little") + second.to_bytes(8, "little"))


def _finish(value: int) -> int:
    return _fnv(value.to_bytes(8, "little"))


def _fnv(data: bytes) -> int:
    """FNV-1: multiply, then xor."""
    value = _OFFSET
    for byte in data:
        value = (value * _PRIME) & _MASK ^ byte
    return value
