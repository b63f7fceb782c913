"""Protobuf, as far as Kubernetes uses it: an envelope that names the kind, and fields by number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
Value = int | bytes


class Unreadable(ValueError):
    """No message, or none that we know."""


def opened(body: bytes) -> tuple[str, str, bytes]:
    """Version and kind in the envelope, and the message of that kind. Raises ``Unreadable``."""
    if not body.startswith(_MAGIC):
        raise Unreadable("not in the envelope of Kubernetes")
    envelope = dict(fields(body[len(_MAGIC) :]))
    type_ = dict(fields(as_bytes(envelope.get(1, b""))))
    version, kind = (as_text(type_.get(number, b"")) for number in (1, 2))
    return version, kind, as_bytes(envelope.get(2, b""))


def as_bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise Unreadable("a number where a text or a message should be")
    return value


def as_text(value: Value) -> str:
    try:
        return as_bytes(value).decode()
    except UnicodeDecodeError as error:
        raise Unreadable("a text that is none") from error


def as_number(value: Value) -> int:
    if not isinstance(value, int):
        raise Unreadable("a text or a message where a number should be")
    return value


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
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
        if size is None or size < 0 or at + size > len(message):
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
