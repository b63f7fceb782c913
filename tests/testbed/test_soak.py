"""The figures of ``make soak``."""

from __future__ import annotations

from testbed.soak import Figures, lines, main, read

REPORT = """<testsuites><testsuite>
<testcase name="test_the_leader_is_killed" time="4.5"/>
<testcase name="test_it_sleeps[for long]" time="2.0"><failure>no</failure></testcase>
</testsuite></testsuites>"""


def test_a_story_that_failed_has_no_seconds() -> None:
    assert read(REPORT) == {"the leader is killed": 4.5, "it sleeps[for long]": None}


def test_every_story_gets_a_figure_and_all_together_the_last_one() -> None:
    """A story that a crashed run left out has fewer figures, and has not passed there."""
    figures: Figures = {"the leader is killed": [4.5, 4.7, 9.0], "it sleeps": [None, 2.0]}
    assert lines([None, None, 12.0], figures, 3) == [
        "soak: 1 of 3 passed (2.0 s, at most 2.0 s): it sleeps",
        "soak: 3 of 3 passed (4.7 s, at most 9.0 s): the leader is killed",
        "soak: 1 of 3 rounds passed (12.0 s, at most 12.0 s)",
    ]


def test_it_wants_to_know_how_often() -> None:
    assert main(["often"]) == 2
