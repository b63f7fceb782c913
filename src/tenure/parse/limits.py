"""How much of a text is read; docs/security.md lists the numbers."""

from __future__ import annotations

from typing import Any, Final

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    #: Bytes of the text; and characters of all its values once aliases are expanded.
    size: int
    #: Lists and maps inside each other. A CustomResourceDefinition has about 40.
    depth: int = 100
    #: Scalars, lists and maps of all documents together, aliases expanded.
    values: int
    #: Documents in one YAML text.
    documents: int
    #: Characters of one number: far beyond 64 bits, and quick to convert.
    number: int = 100


#: Manifests, scenarios, settings: a large cluster's objects fit.
FILE: Final = Limits(size=32 * 2**20, values=1_000_000, documents=10_000)
#: Kubeconfigs, and what a credential plugin prints.
SMALL: Final = Limits(size=2**20, values=50_000, documents=1)
#: Bodies of requests: the size that an API server accepts.
BODY: Final = Limits(size=3 * 2**20, values=100_000, documents=1)


def depth(value: Any, most: int) -> int:
    """How many lists and maps are inside each other; not counted beyond ``most``."""
    found, level = 0, [value]
    while found < most:
        level = [each for each in level if isinstance(each, dict | list)]
        if not level:
            break
        found += 1
        level = [
            part for each in level for part in (each.values() if isinstance(each, dict) else each)
        ]
    return found
