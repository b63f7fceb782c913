"""Quantities of a spec, read for real: the API server's pattern lets ``1e1.5`` through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tenure.errors import SpecError
from tenure.model.values.quantity import parse_resources


def amount_problems(amounts: Mapping[str, str | int | float], at: str) -> Iterator[SpecError]:
    """One for each amount that cannot be read."""
    for name, amount in amounts.items():
        try:
            parse_resources({name: amount}, at)
        except SpecError as error:
            yield error
