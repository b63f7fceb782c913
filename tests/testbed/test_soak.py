"""The figures of ``make soak``."""

from __future__ import annotations

from testbed.soak import Figures, lines, main, read

REPORT = """<testsuites><testsuite>
<testcase name="test_the_leader_is_killed" time="4.5"/>
<testcase name="test_it_sleeps[for long]" time="2.0"><failure>no</failure></testcase>
</testsuite></testsuites>"""


def test_a_story_that_failed_has_no_seconds() -> None:
    assert read(REPORT) == {"the leader is killed": 4.5, "it sleeps[for long]": None}


def test_every_story_gets_a_figure_also_one_that_a_crashed_run_left_out() -> None:
    figures: Figures = {"the leader is killed": [4.5, 4.7, 9.0], "it sleeps": [None, 2.0]}
    assert lines(figures, 3) == [
        "soak: 1 of 3 passed (2.0 s, at most 2.0 s): it sleeps",
        "soak: 3 of 3 passed (4.7 s, at most 9.0 s): the leader is killed",
    ]


def test_it_wants_to_know_how_often() -> None:
    assert main(["often"]) == 2
