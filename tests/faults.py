"""Objects that raise whenever a decider looks into them: any fault of ours, in one object."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from tenure.model.api.meta import ApiObject

T = TypeVar("T", bound=ApiObject)

#: What identifies it; without that the failed object is unknown.
IDENTITY = frozenset({"metadata", "name", "namespace", "uid", "key"})
DECIDING = ("tenure.core", "tenure.packing", "tenure.schema")

ERRORS: tuple[Callable[[], Exception], ...] = (
    lambda: AssertionError("a fault was injected"),
    lambda: OverflowError("date value out of range"),
    lambda: ValueError("a fault was injected"),
    lambda: KeyError("zone"),
    lambda: RecursionError("maximum recursion depth exceeded"),
    lambda: MemoryError(),
    lambda: ZeroDivisionError(),
)


class _Raising:
    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name not in IDENTITY and not name.startswith("_") and _decides(sys._getframe(1)):
            raise object.__getattribute__(self, "__dict__")["error"]()
        return object.__getattribute__(self, name)


def _decides(frame: Any) -> bool:
    module = frame.f_globals.get("__name__", "")
    return module.startswith(DECIDING) and not module.endswith("isolation")


def faulty(item: T, error: Callable[[], Exception]) -> T:
    """The same object; a decider that reads more than its name fails."""
    type_ = type(item)
    bases = (_Raising, type_)
    made: Any = msgspec.defstruct(
        f"Faulty{type_.__name__}", [], bases=bases, frozen=True, kw_only=True, dict=True
    )
    fields = {name: getattr(item, name) for name in type_.__struct_fields__}
    found = made(**fields)
    object.__getattribute__(found, "__dict__")["error"] = error
    return found  # type: ignore[no-any-return]  # of a type that was made just now
