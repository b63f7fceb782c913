"""What verdicts are made of: every kind of fact is shown, and every sentence can be joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from docs.messages_page import rooms
from tenure.core.facts import (
    NAMED_MAX,
    Fact,
    Joined,
    Quoted,
    RetriedAt,
    instants_of,
    joined,
    some,
    told,
)
from tenure.core.marks.deadline import Deadline
from tenure.core.terminate.facts.deadlines import MustBeDrained
from tenure.core.terminate.facts.termination import PodsBlocked
from tests.core.build import NOW, ahead


def kinds(of: type[Fact] = Fact) -> Iterator[type[Fact]]:
    for kind in of.__subclasses__():
        if kind.__module__.startswith("tenure."):  # Others are of tests.
            yield kind
            yield from kinds(kind)


def test_every_kind_of_fact_has_an_example() -> None:
    shown = {type(one) for _, examples in rooms() for one in examples}
    assert sorted(kind.__name__ for kind in set(kinds()) - shown) == []


def test_a_name_is_of_one_kind_of_fact() -> None:
    """``tenure explain --json`` has the name alone."""
    names = Counter(kind.__name__ for kind in set(kinds()))
    assert [name for name, count in names.items() if count > 1] == []


def test_no_sentence_is_empty_ends_with_a_full_stop_or_breaks_a_line() -> None:
    said = [str(one) for _, examples in rooms() for one in examples]
    assert said
    assert [one for one in said if not one or one.endswith(".") or "\n" in one] == []


def test_facts_that_are_part_of_others_are_told_too() -> None:
    no, again = Quoted("no"), RetriedAt(NOW)
    blocked = PodsBlocked(("default/web",), Joined((no, again)))
    assert list(told((blocked,))) == [blocked, blocked.why, no, again]


def test_the_instants_of_facts_are_found_wherever_they_are() -> None:
    due = MustBeDrained("Node", "node-a", Deadline(ahead(9), "terminationGracePeriod 15m"))
    blocked = PodsBlocked(("default/web",), RetriedAt(NOW))
    assert list(instants_of((due, blocked, Quoted("2026-03-02T12:00:00Z")))) == [ahead(9), NOW]


def test_one_fact_stays_as_it_is_and_several_are_joined() -> None:
    no, again = Quoted("no"), RetriedAt(NOW)
    assert joined((no,)) is no
    assert joined((no, again)) == Joined((no, again))


def test_a_long_list_is_counted() -> None:
    pods = [f"web-{i}" for i in range(NAMED_MAX + 2)]
    assert some(pods[:NAMED_MAX]) == "web-0, web-1, web-2"
    assert some(pods) == "web-0, web-1, web-2 and 2 more"
