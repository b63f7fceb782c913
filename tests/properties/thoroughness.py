"""How many examples a property is tried on: few in every run, many in ``make fuzz``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Set
from contextlib import suppress
from typing import Final, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import HypothesisWarning
from hypothesis.strategies import SearchStrategy

#: ``make fuzz`` tries new examples each time, and has time.
EXPLORES: Final = os.environ.get("TENURE_EXAMPLES") == "explore"
#: So many times the usual number.
MORE: Final = 10


def tried(examples: int) -> settings:
    """On so many examples in every run."""
    return settings(
        max_examples=examples * MORE if EXPLORES else examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


Example = TypeVar("Example")
What = TypeVar("What")


class _AllReached(Exception):
    """No more examples are needed."""


def reached(
    examples: SearchStrategy[Example],
    look: Callable[[Example], Set[What]],
    wanted: Set[What],
    *,
    within: int,
) -> set[What]:
    """What ``look`` sees in random examples: until all that is wanted is among it, or so many are over."""
    seen: set[What] = set()

    @settings(tried(within), max_examples=within, derandomize=True, phases=[Phase.generate])
    @given(examples)
    def gather(example: Example) -> None:
        seen.update(look(example))
        if seen >= wanted:
            raise _AllReached

    with suppress(_AllReached), warnings.catch_warnings():
        # Hypothesis describes what it takes for a failure, and finds the description long.
        warnings.simplefilter("ignore", HypothesisWarning)
        gather()
    return seen
