"""Which providers there are: whatever is installed and says so.

A provider is found by an entry point of the group ``tenure.providers``; its name is what users
type. A plugin that is broken, or whose SDK is missing, does not disturb the others; what is wrong
with it is said when it is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from tenure.errors import SpecError
from tenure.model.api.resource import Resource
from tenure.ports.provider import Option, Provider
from tenure.schema.structure.crd import CustomKind

GROUP: Final = "tenure.providers"
#: What is used where none is named; it ships with Tenure.
DEFAULT: Final = "kwok"
#: What every provider has.
_ATTRIBUTES: Final = (
    "name",
    "node_classes",
    "kinds",
    "repair_statements",
    "options",
    "namespace",
    "open",
)
#: What the elements of a declaration are: help, lint and the webhook read them of every provider.
_DECLARED: Final = {"node_classes": Resource, "kinds": CustomKind, "options": Option}
#: Where a user names one.
_AT: Final = "--provider"


def installed() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def names(found: Iterable[EntryPoint] | None = None) -> tuple[str, ...]:
    """Every provider's name, whether or not it can be imported."""
    every = installed() if found is None else found
    return tuple(sorted({point.name for point in every}))


def usable(found: Iterable[EntryPoint] | None = None) -> tuple[Provider, ...]:
    """Every provider that can be imported. What is wrong with another one, ``find`` says."""
    every = installed() if found is None else tuple(found)
    loaded: list[Provider] = []
    for name in names(every):
        with suppress(SpecError):
            loaded.append(find(name, every))
    return tuple(loaded)


def find(name: str, found: Iterable[EntryPoint] | None = None) -> Provider:
    """The provider of that name. Raises ``SpecError`` with a sentence that says what to do."""
    every = installed() if found is None else tuple(found)
    # An installation that is listed twice (a folder twice on the path) is one all the same.
    called_so = {point.value: point for point in every if point.name == name}
    if not called_so:
        known = ", ".join(names(every)) or "none is installed"
        raise SpecError(_AT, name, f"one of the providers that are installed: {known}")
    if len(called_so) > 1:
        places = " and ".join(sorted(called_so))
        raise SpecError(_AT, name, f"one provider of that name, not {places}", "Uninstall one.")
    (point,) = called_so.values()
    return _loaded(point)


def _loaded(point: EntryPoint) -> Provider:
    try:
        provider = point.load()
    except Exception as error:  # Whatever a plugin does while it is imported.
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        expected = f"a provider that can be imported from {point.value}; {why}"
        raise SpecError(_AT, point.name, expected, "Is its SDK installed?") from error
    if isinstance(provider, type) or not isinstance(provider, Provider):
        lacks = [one for one in _ATTRIBUTES if not hasattr(provider, one)]
        expected = f"a provider at {point.value}: an object with {', '.join(_ATTRIBUTES)}"
        hint = f"It has no {', '.join(lacks)}." if lacks else "It is a class."
        raise SpecError(_AT, point.name, expected, f"{hint} See docs/providers.md.")
    for attribute, type_ in _DECLARED.items():
        if not all(isinstance(one, type_) for one in getattr(provider, attribute)):
            expected = f"a provider at {point.value} whose {attribute} are {type_.__name__} objects"
            raise SpecError(_AT, point.name, expected, "See docs/providers.md.")
    return provider
