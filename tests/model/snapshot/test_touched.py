"""Which Nodes something has changed of."""

from __future__ import annotations

from tenure.model.snapshot.touched import NAMES_MAX, Touched


def test_names_are_told_once_by_their_last_change() -> None:
    touched = Touched()
    for name in "abca":
        touched.touch(name)
    assert touched.since(0) == ["a", "c", "b"]
    assert touched.since(3) == ["a"]
    assert touched.since(touched.number) == []


def test_a_pod_on_no_node_touches_none() -> None:
    touched = Touched()
    touched.touch("")
    assert (touched.number, touched.since(0)) == (0, [])


def test_who_has_not_asked_for_long_reads_all() -> None:
    touched = Touched()
    touched.touch("first")
    for number in range(NAMES_MAX + 1):
        touched.touch(f"gone-{number}")
    touched.tidy(exist=1)
    assert touched.since(0) is None
    latest = touched.since(touched.number - 2)
    assert latest == [f"gone-{NAMES_MAX}", f"gone-{NAMES_MAX - 1}"]
