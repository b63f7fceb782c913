"""How an instance differs from what its node class asks for now."""

from __future__ import annotations

import msgspec


class Drift(msgspec.Struct, frozen=True):
    #: Stable, in CamelCase, for example ``ImageDrift``: the reason of a condition.
    reason: str
    #: What differs, with both values.
    message: str
