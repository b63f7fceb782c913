"""Tenure is killed after each single call of a careful repair, and the repair ends as if not.

The story: six pods run on two nodes, one node becomes unhealthy and stays Ready, its replacement is
launched, it is drained and goes. As in ``test_crashes`` every write and every call to the cloud
is followed by a death, loses its answer, or is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from tenure.model.api.names import DISRUPTED_TAINT
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tests.builders import MINUTE, a_deployment, a_node_class, a_pool, a_requirement
from tests.runtime.callfaults import FaultyStory, dies, loses, refuses
from tests.runtime.taps import Tap

PODS = 6
#: How many calls the story is expected to have; a story that needs more is not covered.
CALLS = 65


class Repair(FaultyStory):
    def __init__(self, fatal: int, do: Callable[[FaultyStory, Tap, bool], object] | None) -> None:
        small = a_requirement("node.kubernetes.io/instance-type", "m7i.large")
        super().__init__(
            fatal,
            do,
            a_node_class(),
            a_pool(requirements=[small], disruption={"budgets": [{"nodes": "1"}]}),
            a_deployment(replicas=PODS, cpu="600m"),
        )

    def tell(self) -> None:
        self.play(3 * MINUTE)
        claim = self.the(NODE_CLAIMS)
        self.old = claim["metadata"]["name"]
        self.kubelets.set_condition(claim["status"]["nodeName"], "KWOKUnhealthy", "True", "Test")
        self.play(6 * MINUTE)


def ends_well(faulty: Repair) -> None:
    assert faulty.running("web") == PODS
    claims = faulty.store.list(NODE_CLAIMS)
    assert faulty.old not in {c["metadata"]["name"] for c in claims}
    assert not [c for c in claims if "deletionTimestamp" in c["metadata"]]
    instances = sorted(i.claim_uid for i in faulty.cloud.instances())
    assert instances == sorted(c["metadata"]["uid"] for c in claims), "one each, none leaked"
    taints = [t["key"] for n in faulty.store.list(NODES) for t in n["spec"].get("taints", ())]
    assert DISRUPTED_TAINT not in taints
    assert faulty.cloud.launch_count == len(claims) + 1, "the unhealthy one, and no other"
    faulty.checkers.assert_kept()


def test_the_story_ends_well_when_nothing_goes_wrong() -> None:
    with closing(Repair(0, None)) as faulty:
        faulty.tell()
        ends_well(faulty)
        assert 30 < faulty.count_of_calls <= CALLS


@pytest.mark.parametrize("fatal", range(1, CALLS + 1))
def test_tenure_dies_after_the_call(fatal: int) -> None:
    with closing(Repair(fatal, dies)) as faulty:
        faulty.tell()
        ends_well(faulty)


@pytest.mark.parametrize("fatal", range(1, CALLS + 1))
def test_the_answer_to_the_call_is_lost(fatal: int) -> None:
    with closing(Repair(fatal, loses)) as faulty:
        faulty.tell()
        ends_well(faulty)


@pytest.mark.parametrize("fatal", range(1, CALLS + 1, 5))
def test_the_call_is_refused(fatal: int) -> None:
    with closing(Repair(fatal, refuses)) as faulty:
        faulty.tell()
        ends_well(faulty)
