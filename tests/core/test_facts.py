"""What verdicts are made of: every kind of fact is shown, and every sentence can be joined."""

from __future__ import annotations

from collections.abc import Iterator

from docs.messages_page import rooms
from tenure.core.facts import Fact


def kinds(of: type[Fact] = Fact) -> Iterator[type[Fact]]:
    for kind in of.__subclasses__():
        if kind.__module__.startswith("tenure."):  # Others are of tests.
            yield kind
            yield from kinds(kind)


def test_every_kind_of_fact_has_an_example() -> None:
    shown = {type(one) for _, examples in rooms() for one in examples}
    assert sorted(kind.__name__ for kind in set(kinds()) - shown) == []


def test_no_sentence_is_empty_ends_with_a_full_stop_or_breaks_a_line() -> None:
    said = [str(one) for _, examples in rooms() for one in examples]
    assert said
    assert [one for one in said if not one or one.endswith(".") or "\n" in one] == []
