"""A history as lines: what happens to many at once is counted by object."""

from __future__ import annotations

from datetime import UTC, datetime

from tenure.cli.view.lines import Lines
from tenure.core.facts import Quoted
from tenure.sim.history import Entry

START = datetime(2026, 1, 5, 8, tzinfo=UTC)


def test_a_claim_that_is_heard_of_twice_within_a_second_is_one_claim() -> None:
    shown: list[str] = []
    lines = Lines(START, shown.append, all_=False)
    for message in ("no instance", "not registered"):
        for number in range(17):
            for reason in ("Booting", "Launched"):
                subject = f"NodeClaim/general-{number:02d}"
                lines.add(
                    Entry(
                        at=START,
                        source="tenure",
                        subject=subject,
                        reason=reason,
                        message=message,
                        facts=(Quoted(message),),
                    )
                )
    lines.flush()
    (line,) = shown
    assert "17 NodeClaims " in line
    assert line.endswith("general-00: not registered; and 16 more")
