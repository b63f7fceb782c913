"""Tenure dies, or loses its Lease, at each write of a scale-out, and no node is launched twice.

Forty pods, spread over the zones, arrive within twenty seconds, so the second batch is decided while
the nodes of the first boot. What each claim was made for is in the cluster: the next process, or the next
leader, reads it there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from tenure.model.api.names import ZONE
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.sim.world import WorldOptions
from tests.builders import MINUTE, a_deployment, a_node_class, a_pool, a_requirement
from tests.runtime.callfaults import LEASE, FaultyStory, dies, loses, loses_the_lease, refuses
from tests.runtime.taps import Tap

REPLICAS = 40
#: How many calls the story is expected to have; a story that needs more is not covered.
CALLS = 112

Fault = Callable[[FaultyStory, Tap, bool], object]


class ScaleOut(FaultyStory):
    def __init__(self, fatal: int, do: Fault | None) -> None:
        spread = {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        super().__init__(
            fatal,
            do,
            a_node_class(),
            a_pool(requirements=[a_requirement("node.kubernetes.io/instance-type", "m7i.xlarge")]),
            a_deployment(replicas=REPLICAS, cpu="700m", topologySpreadConstraints=[spread]),
            options=WorldOptions(pods_per_second=2),
        )

    def tell(self) -> None:
        self.play(3 * MINUTE)


def hands_over(faulty: FaultyStory, tap: Tap, done: bool) -> object:
    """The call is carried out, and nothing ever leaves this process again; a new leader takes over."""
    faulty.down_for = LEASE
    return dies(faulty, tap, done)


def told(fatal: int, do: Fault | None) -> ScaleOut:
    """The story to its end, at which everything runs and nothing is left behind."""
    with closing(ScaleOut(fatal, do)) as faulty:
        faulty.tell()
        assert faulty.running("web") == REPLICAS
        claims = {claim["metadata"]["uid"] for claim in faulty.store.list(NODE_CLAIMS)}
        assert sorted(i.claim_uid for i in faulty.cloud.instances()) == sorted(claims), (
            "one each, none leaked"
        )
        assert len(faulty.store.list(NODES)) == len(claims)
        faulty.checkers.assert_kept()
        return faulty


@pytest.fixture(scope="module")
def undisturbed() -> int:
    """Nodes that are launched when nothing goes wrong."""
    faulty = told(0, None)
    assert CALLS // 2 < faulty.count_of_calls <= CALLS
    return faulty.cloud.launch_count


@pytest.mark.parametrize("fatal", range(1, CALLS + 1, 2))
def test_tenure_dies_after_the_call(fatal: int, undisturbed: int) -> None:
    assert told(fatal, dies).cloud.launch_count <= undisturbed


@pytest.mark.parametrize("fatal", range(2, CALLS + 1, 4))
def test_another_leader_takes_over_after_the_call(fatal: int, undisturbed: int) -> None:
    assert told(fatal, hands_over).cloud.launch_count <= undisturbed


@pytest.mark.parametrize("fatal", range(4, CALLS + 1, 4))
def test_another_leader_takes_over_while_the_call_is_on_its_way(
    fatal: int, undisturbed: int
) -> None:
    """A claim that arrives when the new leader has created its own is one too many."""
    assert told(fatal, loses_the_lease).cloud.launch_count <= undisturbed + 1


@pytest.mark.parametrize("do", [loses, refuses])
@pytest.mark.parametrize("fatal", range(1, CALLS + 1, 7))
def test_the_answer_is_lost_or_a_refusal(fatal: int, do: Fault, undisturbed: int) -> None:
    assert told(fatal, do).cloud.launch_count <= undisturbed
