"""Tenure is killed after each single call of a consolidation that replaces six nodes by two.

As ``test_group_crashes``, with the plan of consolidation itself: a new leader has none at first, and makes
one of the cluster as it is then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from tenure.model.api.names import DISRUPTED_TAINT, INSTANCE_TYPE
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES
from tests.builders import MINUTE, a_deployment, a_node_class, a_pool, a_requirement
from tests.properties.thoroughness import EXPLORES
from tests.runtime.callfaults import FaultyStory, dies, is_marked, loses_the_lease
from tests.runtime.taps import Tap

Do = Callable[[FaultyStory, Tap, bool], object]
#: Two pods of 5 cpu do not fit on the first, three on the second.
SMALL, LARGE = "m7i.2xlarge", "m7i.4xlarge"
CALLS = 136


class Consolidating(FaultyStory):
    def __init__(self, fatal: int, do: Do | None) -> None:
        block = {"budgets": [{"nodes": "100%"}], "consolidateAfter": "30s"}
        pool = a_pool(requirements=[a_requirement(INSTANCE_TYPE, SMALL)], disruption=block)
        super().__init__(
            fatal, None, a_node_class(), pool, a_deployment(replicas=6, cpu="5", memory="1Gi")
        )
        self._armed = do

    def tell(self) -> None:
        self.play(4 * MINUTE)
        self.old = sorted(one["metadata"]["name"] for one in self.store.list(NODE_CLAIMS))
        self.count_of_calls, self._do = 0, self._armed
        pool = self.the(NODE_POOLS)["spec"]["template"]["spec"]["requirements"]
        more = [
            {**one, "values": [SMALL, LARGE]} if one["key"] == INSTANCE_TYPE else one
            for one in pool
        ]
        template = {"template": {"spec": {"requirements": more}}}
        self.store.patch(NODE_POOLS, "", "general", {"spec": template})
        self.play(20 * MINUTE)


def ends_well(story: Consolidating) -> None:
    assert story.running("web") == 6
    claims = story.store.list(NODE_CLAIMS)
    assert [one["metadata"]["labels"][INSTANCE_TYPE] for one in claims] == [LARGE] * 2
    assert not [claim for claim in claims if "deletionTimestamp" in claim["metadata"]]
    instances = sorted(one.claim_uid for one in story.cloud.instances())
    assert instances == sorted(claim["metadata"]["uid"] for claim in claims), "none leaked"
    taints = [t["key"] for n in story.store.list(NODES) for t in n["spec"].get("taints", ())]
    assert DISRUPTED_TAINT not in taints
    assert not [claim for claim in claims if is_marked(claim, claims)], "no mark is left over"
    story.checkers.assert_kept()


def test_the_story_ends_well_when_nothing_goes_wrong() -> None:
    with closing(Consolidating(0, None)) as story:
        story.tell()
        ends_well(story)
        assert CALLS * 3 // 4 < story.count_of_calls <= CALLS
        assert story.cloud.launch_count == 8


@pytest.mark.parametrize("fatal", range(1, CALLS + 1, 1 if EXPLORES else 3))
def test_tenure_dies_after_the_call(fatal: int) -> None:
    with closing(Consolidating(fatal, dies)) as story:
        story.tell()
        ends_well(story)


@pytest.mark.parametrize("fatal", range(2, CALLS + 1, 1 if EXPLORES else 3))
def test_the_call_arrives_when_a_new_leader_is_at_work(fatal: int) -> None:
    with closing(Consolidating(fatal, loses_the_lease)) as story:
        story.tell()
        ends_well(story)
