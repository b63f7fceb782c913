"""Moves that did not hold when they were checked: they are not planned again for now."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tenure.core.facts import Fact


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """Names of nodes."""

    #: That were to go by themselves: why they stay.
    alone: Mapping[str, tuple[Fact, ...]] = {}
    #: That were to go with others: each of them may still go by itself.
    together: frozenset[str] = frozenset()


NONE_REJECTED = Rejected()
