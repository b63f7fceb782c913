"""The fact that a field of an object cannot be used: which one, what is there, what is expected."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.errors import SpecError, problem_sentence, quoted
from tenure.model.values.fact import Fact


class Problem(Fact, frozen=True):
    """Other facts have it as a part: what is not done because of it is theirs to say."""

    at: str
    #: As it is quoted; None where the field is missing.
    got: str | None
    expected: str
    #: What to do about it; may be empty.
    hint: str = ""

    def __str__(self) -> str:
        return problem_sentence(self.at, self.got, self.expected, self.hint)


Problems = tuple[Problem, ...]


def problems_from(errors: Iterable[SpecError]) -> Problems:
    return tuple(
        Problem(one.at, None if one.got is None else quoted(one.got), one.expected, one.hint)
        for one in errors
    )


def in_one_line(problems: Problems) -> str:
    return "; ".join(map(str, problems))
