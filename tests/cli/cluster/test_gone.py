"""What is said of an object that is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.cli.cluster.gone import Said, last_words
from tenure.cli.main import run

REPLACING = Said("08:01:35", "Replacing", "KernelDeadlock=True")
DELETED = Said("08:02:17", "ClaimDeleted", "deleting Node n")
RELEASING = Said("08:03:27", "Releasing", "removing the finalizer")


def test_the_event_that_says_why_comes_first() -> None:
    assert last_words([REPLACING, DELETED, RELEASING]) == (
        "its termination began with Replacing at 08:01:35: KernelDeadlock=True; "
        "last event: Releasing at 08:03:27: removing the finalizer"
    )


def test_a_command_that_was_rolled_back_is_not_why() -> None:
    cancelled = Said("08:01:50", "DisruptionCancelled", "rolling back")
    again = Said("08:02:00", "Replacing", "GpuBroken=True")
    waits = Said("08:02:10", "Replacing", "waiting")
    said = last_words([REPLACING, cancelled, again, waits, RELEASING])
    assert said.startswith("its termination began with Replacing at 08:02:00: GpuBroken=True; ")


def test_an_interruption_says_more_than_the_deletion_that_it_causes() -> None:
    taken_back = Said("08:02:00", "Interrupted", "provider acme takes back instance i-1")
    assert last_words([taken_back, DELETED, RELEASING]).startswith(
        "its termination began with Interrupted at 08:02:00: provider acme takes back instance i-1"
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([], ""),
        ([RELEASING], "last event: Releasing at 08:03:27: removing the finalizer"),
        ([DELETED], "last event: ClaimDeleted at 08:02:17: deleting Node n"),
        ([Said("08:03:27", "Deleted")], "last event: Deleted at 08:03:27"),
    ],
)
def test_without_one_there_is_the_last(said: list[Said], expected: str) -> None:
    assert last_words(said) == expected


def test_a_node_of_a_scenario_that_is_gone_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    scenario = Path(__file__).parents[3] / "examples/scenarios/graceful-repair.yaml"
    asked = ["explain", "node", "node-general-nf7w5", "--in", str(scenario), "--at", "25m"]
    assert run(asked) == 1
    said = capsys.readouterr().err
    assert "; its termination began with Replacing at 08:12:00" in said
    assert "KWOKUnhealthy=True" in said
