"""The hash of a pool's template, bit for bit the same as Karpenter's version ``v3``.

A claim keeps the hash from its creation; a different hash on the pool later means that the template
has changed. It must equal Karpenter's, otherwise every node of a fleet taken over from Karpenter
would drift at once. Requirements and our own fields are not hashed, as in Karpenter. ``FIELDS`` is the
table of the hashed fields: the hash, the names in a drift's message and the API reference follow it.

The scheme is hashstructure's (FormatV2, slices as sets, zero values and nil ignored)
over FNV-1 with 64 bits: a struct folds its fields in Go's order into the hash of its
type's name; maps and slices fold with xor, so their order does not matter. An empty
but written map or slice is not the same as an absent one, ``Never`` is the same as
absent, a written ``0s`` grace period is a Duration without fields, and a written ``0s``
expiry is a pointer to zero, which is not zero.

Because the whole is folded from one number for each field, those numbers are kept beside the hash, in the
annotation ``karpenter.sh/nodepool-hash-fields``: they say later which fields have changed, and
folding them again says whether they still belong to the hash (``docs/decisions/0031``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import combinations
from typing import Final, NamedTuple

from tenure.model.api.meta import AbsentList, AbsentMap, read_instant
from tenure.model.api.names import NODEPOOL_HASH, NODEPOOL_HASH_FIELDS, NODEPOOL_HASH_VERSION
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.nodepool import NodeClaimTemplate, NodePool
from tenure.model.values.duration import parse_duration, parse_duration_or_never

HASH_VERSION: Final = "v3"

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = 0xFFFFFFFFFFFFFFFF
#: From when on Go counts.
BEGINNING: Final = datetime(1, 1, 1, tzinfo=UTC)

#: A field's hash, or None for a field that is zero and therefore left out.
_Field = int | None

#: By the paths of ``FIELDS``.
FieldHashes = Mapping[str, _Field]


class HashedField(NamedTuple):
    #: Below ``spec.template``.
    path: str
    #: The field's name in Go, which is hashed, too.
    go_name: str
    hash: Callable[[NodeClaimTemplate], _Field]


#: In Go's order, which is the order of the fold.
_METADATA: Final = (
    HashedField("metadata.labels", "Labels", lambda template: _map(template.metadata.labels)),
    HashedField(
        "metadata.annotations", "Annotations", lambda template: _map(template.metadata.annotations)
    ),
)
_SPEC: Final = (
    HashedField("spec.taints", "Taints", lambda template: _taints(template.spec.taints)),
    HashedField(
        "spec.startupTaints",
        "StartupTaints",
        lambda template: _taints(template.spec.startup_taints),
    ),
    HashedField(
        "spec.nodeClassRef",
        "NodeClassRef",
        lambda template: _node_class(template.spec.node_class_ref),
    ),
    HashedField(
        "spec.terminationGracePeriod",
        "TerminationGracePeriod",
        lambda template: _grace_period(template.spec.termination_grace_period),
    ),
    HashedField(
        "spec.expireAfter",
        "ExpireAfter",
        lambda template: _expire_after(template.spec.expire_after),
    ),
)
FIELDS: Final = _METADATA + _SPEC

#: So many entries at once are found by trying, among so many.
_REMOVED_MAX: Final = 2
_TRIED_MAX: Final = 16
#: Characters of a value that is hashed again for every claim.
_SHORT: Final = 512
#: A number of 64 bits has at most 20 digits.
_DIGITS_MAX: Final = 20
_RECORD_MAX: Final = sum(len(field.path) + _DIGITS_MAX + 2 for field in FIELDS)


def template_hash(template: NodeClaimTemplate) -> str:
    """The value of the annotation ``karpenter.sh/nodepool-hash``.

    Raises ``SpecError`` for a duration that cannot be read.
    """
    return folded(field_hashes(template))


def field_hashes(template: NodeClaimTemplate) -> FieldHashes:
    """Raises ``SpecError`` for a duration that cannot be read."""
    return {field.path: field.hash(template) for field in FIELDS}


def folded(hashes: FieldHashes) -> str:
    """The hash of a template whose fields have these."""
    meta = None  # A struct without a single field is zero, too.
    if any(hashes[field.path] is not None for field in _METADATA):
        meta = _struct("ObjectMeta", *_named(_METADATA, hashes))
    inner = _struct("NodeClaimTemplateSpec", *_named(_SPEC, hashes))
    return str(_struct("NodeClaimTemplate", ("ObjectMeta", meta), ("Spec", inner)))


def hash_annotations(hashes: FieldHashes) -> dict[str, str]:
    """What a claim that is made from such a template carries."""
    return {
        NODEPOOL_HASH: folded(hashes),
        NODEPOOL_HASH_VERSION: HASH_VERSION,
        NODEPOOL_HASH_FIELDS: ",".join(
            f"{path}={value}" for path, value in hashes.items() if value is not None
        ),
    }


def hashes_beside(pool: NodePool) -> dict[str, str]:
    """What a claim carries that is made from this pool, for a Karpenter of any release.

    By our own arithmetic, because the pool's annotations may be those of an older template; but a release that
    hashes in another way knows its hash alone. ``pool``: as it is written.
    """
    version = pool.annotations.get(NODEPOOL_HASH_VERSION, HASH_VERSION)
    hashed = template_hash(pool.spec.template)
    if version != HASH_VERSION:
        hashed = pool.annotations.get(NODEPOOL_HASH, "")
    return {NODEPOOL_HASH: hashed, NODEPOOL_HASH_VERSION: version}


def recorded_hashes(annotations: Mapping[str, str]) -> FieldHashes | None:
    """Of each field when the claim was made; None where that is not recorded.

    A record that does not fold to the hash beside it is ignored: another program, or a user, has
    changed one of the two.
    """
    text = annotations.get(NODEPOOL_HASH_FIELDS, "")
    if not text or len(text) > _RECORD_MAX:
        return None
    hashes: dict[str, _Field] = {field.path: None for field in FIELDS}
    for entry in text.split(","):
        path, _, value = entry.partition("=")
        if path not in hashes or not (value.isascii() and value.isdigit()):
            return None
        hashes[path] = int(value) & _MASK
    return hashes if folded(hashes) == annotations.get(NODEPOOL_HASH) else None


def entries_of(
    hashed: int | None, kept: Mapping[str, str], others: Mapping[str, str]
) -> tuple[str, ...]:
    """Which of the others were in a map with that hash, beside those that are kept: their keys.

    Empty where none was, and where it cannot be found out: more than two, one that is not among them, or a long text.
    """
    if hashed is None or any(len(value) > _SHORT for value in kept.values()):
        return ()
    base = 0
    for key, value in kept.items():
        base ^= _short_entry(key, value)
    found = {
        key: _short_entry(key, value)
        for key, value in sorted(others.items())
        if len(value) <= _SHORT
    }
    for count in range(_REMOVED_MAX + 1 if len(found) <= _TRIED_MAX else 2):
        for keys in combinations(found, count):
            folded = base
            for key in keys:
                folded ^= found[key]
            if _finish(folded) == hashed:
                return keys
    return ()


def _named(fields: Sequence[HashedField], hashes: FieldHashes) -> list[tuple[str, _Field]]:
    return [(field.go_name, hashes[field.path]) for field in fields]


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
            ("TimeAdded", _instant(taint.time_added)),
        )
    return folded


def _instant(text: str) -> _Field:
    """As Go marshals a time that it has decoded in a container: in the local zone, which is UTC."""
    if (at := read_instant(text)) is None:
        return None  # Absent, or what the API server refuses.
    seconds, rest = divmod(at - BEGINNING, timedelta(seconds=1))
    nanoseconds = rest // timedelta(microseconds=1) * 1000
    binary = struct.pack(">bqih", 1, seconds, nanoseconds, 0)
    return _struct("Time", ("Time", _fnv(binary)))


def _map(entries: Mapping[str, str]) -> _Field:
    if isinstance(entries, AbsentMap):
        return None
    folded = 0
    for key, value in entries.items():
        folded ^= _entry(key, value)
    return _finish(folded)


def _entry(key: str, value: str) -> int:
    return _ordered(_fnv(key.encode()), _fnv(value.encode()))


#: The claims of a pool have the same ones. Of short texts alone: they are kept here.
_short_entry = lru_cache(maxsize=1024)(_entry)


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
