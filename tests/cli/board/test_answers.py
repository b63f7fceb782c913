"""What the board says about one row."""

from __future__ import annotations

from tenure.cli.board.answers import explained
from tenure.cli.page.worldpage import WorldProgram
from tenure.model.api.resource import NODE_CLAIMS
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, a_cluster, a_deployment

#: Of the panel on a terminal of 80 columns.
WIDTH = 70


def test_long_lines_are_wrapped_beneath_their_label() -> None:
    with Story(*a_cluster(a_deployment(replicas=1))) as story:
        story.start()
        story.run(5 * MINUTE)
        name = story.the(NODE_CLAIMS)["metadata"]["name"]
        lines = explained(
            f"NodeClaim/{name}", WorldProgram(story, 1.0).evaluated(), WIDTH
        ).splitlines()
    assert max(map(len, lines)) <= WIDTH
    at = next(n for n, line in enumerate(lines) if line.startswith("  verdict   "))
    assert lines[at + 1].startswith(" " * len("  verdict   ")), lines[at : at + 2]
