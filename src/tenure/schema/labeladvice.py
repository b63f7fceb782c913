"""What selectors and requirements say about labels, and no Node can have: misspelled values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final, Protocol

from tenure.model.api.names import (
    ARCH,
    CAPACITY_ON_DEMAND,
    CAPACITY_RESERVED,
    CAPACITY_SPOT,
    CAPACITY_TYPE,
    NODEPOOL,
    NORMALIZED_LABELS,
    OS,
    PROVISIONER_NAME,
)
from tenure.schema.findings import Code, Finding

#: Labels with few values, and all of them.
KNOWN_VALUES: Final = {
    ARCH: ("amd64", "arm64", "386", "arm", "ppc64le", "riscv64", "s390x"),
    OS: ("linux", "windows"),
    CAPACITY_TYPE: (CAPACITY_ON_DEMAND, CAPACITY_SPOT, CAPACITY_RESERVED),
}
#: How alike two values must be to be taken for one.
_CLOSE: Final = 0.5


class Expression(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Iterable[str]: ...


def unknown_values(expressions: Iterable[Expression], at: str) -> Iterator[Finding]:
    """``at``: the list that they stand in."""
    for index, one in enumerate(expressions):
        known = KNOWN_VALUES.get(NORMALIZED_LABELS.get(one.key, one.key), ())
        if not known or one.operator not in ("In", "NotIn"):
            continue
        for place, value in enumerate(one.values):
            if value not in known:
                close = get_close_matches(value, known, n=1, cutoff=_CLOSE)
                meant = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
                message = f"{one.key} is never {value}; {meant}"
                yield Finding(Code.UNKNOWN_LABEL_VALUE, f"{at}[{index}].values[{place}]", message)


def old_labels(expressions: Iterable[Expression], at: str) -> Iterator[Finding]:
    for index, one in enumerate(expressions):
        if one.key == PROVISIONER_NAME:
            message = f"{PROVISIONER_NAME} is read as {NODEPOOL}"
            yield Finding(Code.OLD_LABEL, f"{at}[{index}].key", message)
