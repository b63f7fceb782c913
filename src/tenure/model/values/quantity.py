"""Kubernetes quantities, exact: cpu, memory, pods and whatever else nodes offer.

A quantity is a whole number of nano-units (``1`` is 10**9, ``100m`` is 10**8), so
that sums and comparisons are plain integer arithmetic. What is finer than a nano-unit
rounds away from zero, and a binary quantity is capped at 2**63 - 1 units, as in
Kubernetes. A decimal one is capped at 10**99: ``1e200`` is more than any node has, and no
reason to fail. One reading is stricter than there: a text without a single digit (``m``) is an
error and not zero.

Resources are mappings from a resource's name to nano-units. A name that is absent
counts as zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from tenure.errors import SpecError

#: Nano-units in one unit.
UNIT: Final = 10**9

_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_MAX: Final = ((1 << 63) - 1) * UNIT
#: The largest amount there is, in nano-units.
MOST: Final = 10**99 * UNIT

_QUANTITY: Final = re.compile(
    r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:([KMGTPE]i|[numkMGTPE]?)|[eE]([+-]?[0-9]+))"
)

#: Integers without bound would be a way to keep us busy.
_LENGTH_MAX: Final = 128

#: Resources that Kubernetes prints with binary suffixes.
_BINARY_RESOURCES: Final = ("memory", "ephemeral-storage", "storage")
_BINARY_PREFIX: Final = "hugepages-"

#: Spellings that users write, each with what Kubernetes calls it.
_LOOSE: Final = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_LOOSE_SUFFIXES: Final = {
    "K": "k (thousands) or {0}Ki (1024s)",
    **{f"{unit}B": f"{unit} or {{0}}{unit}i" for unit in "MGTPE"},
    "KB": "k or {0}Ki",
    "kB": "k or {0}Ki",
    **{f"{unit}iB": f"{unit}i" for unit in "KMGTPE"},
    **{f"{unit}i": f"{unit.upper()}i" for unit in "kmgtpe"},
    **{f"{unit}b": f"{unit.upper()}i" for unit in "kmgtp"},
    **{unit: f"{unit.upper()} or {{0}}{unit.upper()}i" for unit in "gtp"},
    **{suffix: suffix for suffix in (*_DECIMAL, *_BINARY)},
}


def parse_quantity(text: str, at: str = "quantity") -> int:
    """The quantity in nano-units; ``at`` is the field to name in the error."""
    nano = _parse(text) if len(text) <= _LENGTH_MAX else None
    if nano is None:
        raise SpecError(at, text, "a Kubernetes quantity such as 500m, 2 or 1.5Gi", _hint(text))
    return nano


def format_quantity(nano: int, *, binary: bool = False) -> str:
    """The canonical text, as Kubernetes prints it: no fraction, the largest suffix that fits.

    ``binary`` asks for ``Ki``, ``Mi``, …; below 1024, and for what is not a whole number
    of units, decimal suffixes are used all the same.
    """
    if binary and abs(nano) >= 1024 * UNIT and nano % UNIT == 0:
        return _largest_suffix(nano // UNIT, 1024, ("", *_BINARY))
    return _largest_suffix(nano, 1000, tuple(_DECIMAL))


def _largest_suffix(value: int, step: int, suffixes: tuple[str, ...]) -> str:
    if not value:
        return "0"
    index = 0
    while value % step == 0 and index < len(suffixes) - 1:
        value, index = value // step, index + 1
    return f"{value}{suffixes[index]}"


@lru_cache(maxsize=8192)
def _parse(text: str) -> int | None:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction, bare_fraction, suffix, exponent = match.groups()
    fraction = fraction or bare_fraction or ""
    digits = int((whole or "") + fraction)
    if suffix in _BINARY:
        nano = _scale(digits << _BINARY[suffix], 9 - len(fraction))
        nano = min(nano, _BINARY_MAX)
    else:
        power = _DECIMAL[suffix] if exponent is None else int(exponent)
        nano = _scale(digits, power + 9 - len(fraction))
    nano = min(nano, MOST)
    return -nano if sign == "-" else nano


def _scale(digits: int, power: int) -> int:
    """``digits`` × 10**``power`` as an integer, rounded up."""
    # Beyond this, in either direction, every text we accept is too large or less than a nano-unit:
    # ``1e999999999`` is eleven characters.
    factor: int = 10 ** min(abs(power), 2 * _LENGTH_MAX)
    return digits * factor if power >= 0 else -(-digits // factor)


def _hint(text: str) -> str:
    loose = _LOOSE.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    if loose is None or loose[2] not in _LOOSE_SUFFIXES:
        return "Suffixes are n u m k M G T P E and Ki Mi Gi Ti Pi Ei."
    number, suffix = loose.groups()
    return f"Use {number}{_LOOSE_SUFFIXES[suffix].format(number)}."


def parse_resources(
    amounts: Mapping[str, str | int | float], at: str = "resources"
) -> dict[str, int]:
    """Nano-units by resource name. YAML users write ``cpu: 500``, so numbers are fine too."""
    try:
        return {name: _known_amount(amount) for name, amount in amounts.items()}
    except SpecError:  # Once more, to say where.
        return {name: _parse_amount(amount, f"{at}[{name}]") for name, amount in amounts.items()}


@lru_cache(maxsize=8192, typed=True)  # True is not 1 here.
def _known_amount(amount: str | int | float) -> int:
    """A hundred thousand pods ask for few different amounts. What cannot be read is not kept."""
    return _parse_amount(amount, "")


def _parse_amount(amount: str | int | float, at: str) -> int:
    if isinstance(amount, str):
        return parse_quantity(amount, at)
    # True is an int in Python; in YAML it is a slip (``cpu: yes``).
    return parse_quantity(str(amount) if isinstance(amount, bool) else repr(amount), at)


def readable_amounts(written: Mapping[str, str | int | float]) -> dict[str, int]:
    """Like ``parse_resources``, but nothing at all where one amount cannot be read."""
    try:
        return parse_resources(written)
    except SpecError:
        return {}


def format_resources(resources: Mapping[str, int]) -> dict[str, str]:
    """Canonical texts; memory and storage with binary suffixes, the rest with decimal ones."""
    return {
        name: format_quantity(
            nano, binary=name in _BINARY_RESOURCES or name.startswith(_BINARY_PREFIX)
        )
        for name, nano in resources.items()
    }


def add(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    """The sum, name by name."""
    result = dict(left)
    for name, nano in right.items():
        result[name] = result.get(name, 0) + nano
    return result


def total(many: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of all of them; nothing at all sums up to an empty mapping."""
    result: dict[str, int] = {}
    for resources in many:
        for name, nano in resources.items():
            result[name] = result.get(name, 0) + nano
    return result


def subtract(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    """``left`` less ``right``, name by name; may go below zero."""
    result = dict(left)
    for name, nano in right.items():
        result[name] = result.get(name, 0) - nano
    return result


def maximum(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    """The larger of both, name by name; a name that only one of them has keeps its amount."""
    result = dict(left)
    for name, nano in right.items():
        if name not in result or nano > result[name]:
            result[name] = nano
    return result


def fits(request: Mapping[str, int], available: Mapping[str, int]) -> bool:
    """Whether all that is asked for is there. What is not asked for may be overdrawn."""
    for name, nano in request.items():  # noqa: SIM110 - twice as fast as all()
        if nano > 0 and available.get(name, 0) < nano:
            return False
    return True
