"""The page of two replicas: one leads, the other stands by and says so; and where a token is required."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tenure.cli.page.source import PageSource
from tenure.cli.replica.page import ReplicaProgram, needs_token
from tenure.dashboard.fleet.changes import applied, change_between, is_news
from tenure.dashboard.fleet.frame import FrameMaker
from tenure.dashboard.fleet.values import Frame
from tenure.dashboard.web.source import NotNow
from tenure.model.settings import Settings
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, a_cluster, a_deployment
from tests.runtime.telemetry.test_logs import Desk
from tests.runtime.telemetry.test_scrape import Onlooker


class Leader(Onlooker):
    clock_off = ""


class StandsBy(Leader):
    leading = False
    role = "standing by: tenure-1 holds the Lease"
    evaluator: Any = None


def test_one_leads_and_the_other_shows_what_it_knows() -> None:
    with Story(*a_cluster(a_deployment(replicas=1))) as story:
        story.start()
        story.run(5 * MINUTE)
        frames = []
        for replica in (Leader(story), StandsBy(story)):
            program = ReplicaProgram(replica, Desk().journal, Settings(cluster_name="shop"))
            inputs = program.inputs()
            assert inputs is not None
            frames.append(FrameMaker().frame(inputs))
        leader, other = frames
        assert [(one.phase, one.reason) for one in leader.nodes] == [("in service", "InService")]
        assert [(one.phase, one.reason) for one in other.nodes] == [("in service", "")]
        assert leader.notes == ()
        (note,) = other.notes
        assert note == (
            "this replica has no verdicts, which only the leader makes: "
            "standing by: tenure-1 holds the Lease"
        )
        assert (other.cluster, other.leader) == ("shop", StandsBy.role)
        with pytest.raises(NotNow, match="only the leader makes"):
            asyncio.run(PageSource(program).why(leader.nodes[0].key))


@pytest.mark.parametrize("kind", [Leader, StandsBy])
def test_the_page_of_a_replica_says_since_when_the_api_server_is_lost_and_recovers(
    kind: type[Leader],
) -> None:
    with Story(*a_cluster(a_deployment(replicas=1))) as story:
        story.start()
        story.run(5 * MINUTE)
        replica = kind(story)
        program, maker = ReplicaProgram(replica, Desk().journal, Settings()), FrameMaker()

        def frame() -> Frame:
            inputs = program.inputs()
            assert inputs is not None
            return maker.frame(inputs)

        before = frame()
        assert before.lost is None
        informers = list(replica.informers)
        for one in informers:
            one.problem = "connection refused"
        first, second = frame(), frame()
        assert first.lost is not None
        assert first.lost.why == "connection refused"
        assert first.lost.since <= first.at
        assert second.lost == first.lost, "else each frame would be news"
        change = change_between(before, first)
        assert is_news(change, before)
        assert applied(change, before) == first
        informers[0].problem = ""
        assert frame().lost is None, "one kind that is heard of is enough"


@pytest.mark.parametrize(
    ("address", "asks"),
    [("127.0.0.1", False), ("::1", False), ("127.0.0.9", False), ("0.0.0.0", True), ("::", True)],  # noqa: S104
)
def test_a_token_is_required_wherever_others_reach_the_page(address: str, asks: bool) -> None:
    assert needs_token(Settings(ui_address=address)) is asks
