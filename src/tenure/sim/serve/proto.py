"""The one protobuf body that kubectl cannot do without: ``DeleteOptions``.

``kubectl drain`` sends it. The envelope names kind and version, then carries the message; field
numbers are those of the published definitions. Other messages are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Json = dict[str, Any]


class Unreadable(ValueError):
    """No message of this kind, or none that we know."""


def delete_options(body: bytes) -> Json:
    """The options as JSON. Raises ``Unreadable``."""
    if not body.startswith(_MAGIC):
        raise Unreadable("not in the envelope of Kubernetes")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    kind = dict(_fields(_bytes(envelope.get(1, b"")))).get(2, b"")
    if kind != b"DeleteOptions":
        raise Unreadable(f"a message of kind {_bytes(kind).decode(errors='replace')!r}")
    options: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
    for number, value in _fields(_bytes(envelope.get(2, b""))):
        if number == 1:
            options["gracePeriodSeconds"] = value
        elif number == 2:
            options["preconditions"] = _preconditions(_bytes(value))
        elif number == 3:
            options["orphanDependents"] = bool(value)
        elif number == 4:
            options["propagationPolicy"] = _bytes(value).decode()
        elif number == 5:
            options.setdefault("dryRun", []).append(_bytes(value).decode())
    return options


def _preconditions(message: bytes) -> Json:
    names = {1: "uid", 2: "resourceVersion"}
    return {names[n]: _bytes(value).decode() for n, value in _fields(message) if n in names}


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise Unreadable("a number where a message should be")
    return value


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field, in the order in which they stand there."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(wire)
        if wire == _BYTES:
            size, at = _varint(message, at)
        if size is None or at + size > len(message):
            raise Unreadable("cut short, or no protobuf")
        yield number, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            # A negative number is written as its two's complement in 64 bits.
            return (value - (1 << 64) if value >> 63 else value), at
    raise Unreadable("cut short, or no protobuf")
