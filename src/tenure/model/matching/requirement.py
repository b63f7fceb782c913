"""What one label of a node may be: a set of values, and whether it may be missing.

Every operator is read as the set of label states it lets through, exactly as the
Kubernetes scheduler does:

===============  =======================================  ============
operator         values                                   label absent
===============  =======================================  ============
In               the listed ones                          no
NotIn            all but the listed ones                  yes
Exists           all                                      no
DoesNotExist     none                                     yes
Gt, Gte, Lt, Lte integers within the bound                no
===============  =======================================  ============

Intersection is the intersection of those sets, so it is commutative, associative and
idempotent, and a contradiction (``In [a]`` with ``In [b]``) stays one: it lets nothing
through, not even the absent label. Bounds are kept inclusive, ``Gt 3`` is at least 4.
``minValues`` does not change the set; the stronger demand wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.names import NORMALIZED_LABELS

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
MIN_VALUES_MAX: Final = 50

#: Kubernetes reads label values as signed 64-bit integers.
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,63}")
_INTEGER_MIN: Final = -(1 << 63)
_INTEGER_MAX: Final = (1 << 63) - 1

_SHOWN_MAX: Final = 5
_NOTHING: Final[frozenset[str]] = frozenset()


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """The states one label may be in. Make it with ``of``; the fields are its normal form."""

    key: str
    #: The values let through, or with ``complement`` the ones that are not.
    listed: frozenset[str] = _NOTHING
    complement: bool = False
    allows_absent: bool = False
    at_least: int | None = None
    at_most: int | None = None
    min_values: int | None = None

    @classmethod
    def of(
        cls,
        key: str,
        operator: str,
        values: Sequence[str] = (),
        *,
        min_values: int | None = None,
        at: str = "requirement",
    ) -> Requirement:
        """The requirement as written; ``at`` is the field to name in an error.

        Values of ``Exists`` and ``DoesNotExist`` are ignored, and ``NotIn`` may list
        nothing: Karpenter lets both in, so living objects have them.
        """
        key = NORMALIZED_LABELS.get(key, key)
        _check_min_values(operator, values, min_values, at)
        if operator == "In":
            if not values:
                raise SpecError(f"{at}.values", [], "at least one value for In", "Use [a, b].")
            return cls(key, frozenset(values), min_values=min_values)
        if operator == "NotIn":
            return cls(key, frozenset(values), True, True, min_values=min_values)
        if operator == "Exists":
            return cls(key, complement=True, min_values=min_values)
        if operator == "DoesNotExist":
            return cls(key, allows_absent=True, min_values=min_values)
        at_least, at_most = _bounds(operator, values, at)
        if at_least is not None and at_least > _INTEGER_MAX:
            return cls(key, min_values=min_values)
        if at_most is not None and at_most < _INTEGER_MIN:
            return cls(key, min_values=min_values)
        return cls(key, _NOTHING, True, False, at_least, at_most, min_values)

    @classmethod
    def label(cls, key: str, value: str) -> Requirement:
        """The label has exactly this value."""
        return cls(NORMALIZED_LABELS.get(key, key), frozenset((value,)))

    def has(self, value: str) -> bool:
        """Whether a node may have this value."""
        return (value in self.listed) != self.complement and self._within(value)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether something with exactly these labels is let through."""
        value = labels.get(self.key)
        return self.allows_absent if value is None else self.has(value)

    def intersection(self, other: Requirement) -> Requirement:
        """What both let through."""
        if self is other:
            return self
        at_least = _higher(self.at_least, other.at_least)
        at_most = _lower(self.at_most, other.at_most)
        min_values = _higher(self.min_values, other.min_values)
        absent = self.allows_absent and other.allows_absent
        if at_least is not None and at_most is not None and at_least > at_most:
            return Requirement(self.key, allows_absent=absent, min_values=min_values)
        complement = self.complement and other.complement
        if complement:
            listed = self.listed | other.listed
        elif self.complement:
            listed = other.listed - self.listed
        elif other.complement:
            listed = self.listed - other.listed
        else:
            listed = self.listed & other.listed
        if at_least is not None or at_most is not None:
            listed = frozenset(v for v in listed if _is_within(v, at_least, at_most))
            if not complement:
                at_least = at_most = None
        return Requirement(self.key, listed, complement, absent, at_least, at_most, min_values)

    def intersects(self, other: Requirement) -> bool:
        """Whether both let some state of the label through: a value, or its absence."""
        # Most questions are about two plain sets of values, and most answers are yes.
        plain = not (self.complement or other.complement)
        if plain and not self.listed.isdisjoint(other.listed):
            return True
        if plain or (self.allows_absent and other.allows_absent):
            return self.allows_absent and other.allows_absent
        if not self.complement:
            return other._has_any(self)
        return _overlap(self, other) if other.complement else self._has_any(other)

    def _has_any(self, concrete: Requirement) -> bool:
        if self.at_least is None and self.at_most is None:
            return not concrete.listed <= self.listed
        return any(map(self.has, concrete.listed))

    @property
    def impossible(self) -> bool:
        """Nothing is let through, no value and not the absent label either."""
        return not (self.complement or self.listed or self.allows_absent)

    @property
    def operator(self) -> str:
        """``In``, ``NotIn``, ``Exists`` or ``DoesNotExist``; bounds come on top of these."""
        if self.complement:
            return "NotIn" if self.listed or self.allows_absent else "Exists"
        return "DoesNotExist" if self.allows_absent else "In"

    @property
    def values(self) -> tuple[str, ...]:
        """The values of ``operator``, sorted."""
        return tuple(sorted(self.listed))

    def any(self) -> str | None:
        """One value that is let through, always the same one; None when there is none."""
        if not self.complement:
            return min(self.listed, default=None)
        number = self.at_least if self.at_least is not None else min(0, self.at_most or 0)
        first = number
        while self.at_most is None or number <= self.at_most:
            if str(number) not in self.listed:
                return str(number)
            number += 1
        # All integers within the bounds are excluded, but 04 is four too.
        width = len(str(first)) + 1
        while f"{first:0{width}d}" in self.listed:
            width += 1
        return f"{first:0{width}d}"

    def with_min_values(self, min_values: int | None) -> Requirement:
        return msgspec.structs.replace(self, min_values=min_values)

    def to_wire(self) -> list[dict[str, Any]]:
        """As API objects spell it: one entry as a rule, several where one cannot say it."""
        entries: list[dict[str, Any]] = []
        for operator, values in self._spellings():
            entry: dict[str, Any] = {"key": self.key, "operator": operator}
            if values:
                entry["values"] = list(values)
            if self.min_values is not None:
                entry["minValues"] = self.min_values
            entries.append(entry)
        return entries

    def _spellings(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        if self.impossible:
            return [("Exists", ()), ("DoesNotExist", ())]
        if not self.complement or self.allows_absent:
            return [(self.operator, self.values)]
        spellings: list[tuple[str, tuple[str, ...]]] = []
        if self.at_least is not None:
            spellings.append(("Gte", (str(self.at_least),)))
        if self.at_most is not None:
            spellings.append(("Lte", (str(self.at_most),)))
        if not spellings:
            spellings.append(("Exists", ()))
        if self.listed:
            spellings.append(("NotIn", self.values))
        return spellings

    def _within(self, value: str) -> bool:
        if self.at_least is None and self.at_most is None:
            return True
        return _is_within(value, self.at_least, self.at_most)

    def __str__(self) -> str:
        words = [self.key, self.operator]
        if self.operator in ("In", "NotIn"):
            shown = list(self.values[:_SHOWN_MAX])
            if len(self.listed) > _SHOWN_MAX:
                shown.append(f"and {len(self.listed) - _SHOWN_MAX} others")
            words.append(f"[{', '.join(shown)}]")
        if self.at_least is not None:
            words.append(f">={self.at_least}")
        if self.at_most is not None:
            words.append(f"<={self.at_most}")
        if self.min_values is not None:
            words.append(f"minValues {self.min_values}")
        return " ".join(words)


@lru_cache(maxsize=4096)
def parse_integer(text: str) -> int | None:
    """The integer a label value spells, None when it spells none that Kubernetes reads."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if _INTEGER_MIN <= number <= _INTEGER_MAX else None


def _is_within(value: str, at_least: int | None, at_most: int | None) -> bool:
    number = parse_integer(value)
    if number is None:
        return False
    return (at_least is None or number >= at_least) and (at_most is None or number <= at_most)


def _overlap(left: Requirement, right: Requirement) -> bool:
    """Whether the bounds of two complements leave room; finitely many exclusions never fill it."""
    at_least = _higher(left.at_least, right.at_least)
    at_most = _lower(left.at_most, right.at_most)
    return at_least is None or at_most is None or at_least <= at_most


def _higher(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return max(left, right)


def _lower(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)


def _bounds(operator: str, values: Sequence[str], at: str) -> tuple[int | None, int | None]:
    """The inclusive lower and upper bound that a comparison means."""
    if operator not in ("Gt", "Gte", "Lt", "Lte"):
        expected = f"one of {', '.join(OPERATORS)}"
        raise SpecError(f"{at}.operator", operator, expected, "Use In with a list of values.")
    number = parse_integer(values[0]) if len(values) == 1 else None
    if number is None:
        expected = f"exactly one integer for {operator}"
        raise SpecError(f"{at}.values", list(values), expected, 'Use ["4"].')
    return {
        "Gt": (number + 1, None),
        "Gte": (number, None),
        "Lt": (None, number - 1),
        "Lte": (None, number),
    }[operator]


def _check_min_values(
    operator: str, values: Sequence[str], min_values: int | None, at: str
) -> None:
    if min_values is None:
        return
    if not 1 <= min_values <= MIN_VALUES_MAX:
        expected = f"a number from 1 to {MIN_VALUES_MAX}"
        raise SpecError(f"{at}.minValues", min_values, expected, "Use 2, or leave it out.")
    if operator == "In" and len(set(values)) < min_values:
        expected = f"at most {len(set(values))}, the number of values listed"
        raise SpecError(f"{at}.minValues", min_values, expected, "List more values.")
