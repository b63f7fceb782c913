"""The licence of every library that the program needs, as each says itself, and which we take.

What a library says: ``License-Expression`` of its metadata; else its classifiers; else ``License``. An
expression is fine where each of its parts is; of a choice (``OR``) one is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Final, NamedTuple

import msgspec

from release.version import ROOT

#: Permissive, or weak enough that a program may use the library unchanged. Another one is for people to decide.
ALLOWED: Final = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "MIT",
        "MIT-0",
        "MPL-2.0",
        "PSF-2.0",
    }
)
#: What older metadata calls them.
_NAMES: Final = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
UNKNOWN: Final = "unknown"
_MANIFEST: Final = ROOT / "src/tenure/dashboard/web/static/manifest.json"


class Licensed(NamedTuple):
    name: str
    version: str
    licence: str
    home: str


def licences(names: Iterable[str]) -> Iterator[Licensed]:
    """Of those that are installed here; a library for another system is not."""
    for name in sorted(names):
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        yield Licensed(name, found.version, licence_of(found), _home(found))


def licence_of(found: Distribution) -> str:
    if expression := _said(found, "License-Expression"):
        return expression
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in found.metadata.get_all("Classifier") or ()
        if line.startswith("License :: ") and line != "License :: OSI Approved"
    ]
    names = classifiers or [_said(found, "License").strip()]
    return " AND ".join(_NAMES.get(name, name) for name in names) or UNKNOWN


def allowed(expression: str) -> bool:
    return any(
        all(part.strip(" ()") in ALLOWED for part in choice.split(" AND "))
        for choice in re.split(r" OR ", expression)
    )


def _home(found: Distribution) -> str:
    pairs = [line.split(", ", 1) for line in found.metadata.get_all("Project-URL") or ()]
    by_name = {pair[0].lower(): pair[1] for pair in pairs if len(pair) == 2}
    named = (by_name.get(name) for name in ("homepage", "source", "repository", "source code"))
    return next(filter(None, named), _said(found, "Home-page"))


def _said(found: Distribution, field: str) -> str:
    """Empty where its metadata has no such field."""
    return next(iter(found.metadata.get_all(field) or ()), "")


def in_the_page() -> Iterator[Licensed]:
    """The libraries whose code is in the built page, as its manifest names them; their texts are beside it."""
    manifest = msgspec.json.decode(_MANIFEST.read_bytes(), type=_Manifest)
    yield from (Licensed(**one) for one in manifest.libraries)


class _Manifest(msgspec.Struct):
    libraries: list[dict[str, str]]


def as_page(found: Iterable[Licensed]) -> str:
    head = ["# Licences", "", "Tenure itself: Apache-2.0. What it needs to run:", ""]
    page = [
        "",
        "What is in its web page (texts: `tenure/dashboard/web/static/assets/licences.txt`):",
        "",
    ]
    return "\n".join([*head, *_table(found), *page, *_table(in_the_page()), ""])


def _table(found: Iterable[Licensed]) -> Iterator[str]:
    yield from ("| library | version | licence | |", "|---|---|---|---|")
    yield from (f"| {one.name} | {one.version} | {one.licence} | {one.home} |" for one in found)
