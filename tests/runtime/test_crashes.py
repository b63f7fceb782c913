"""Tenure is killed after each single call of a story, and the story ends as if it had not been.

The story: twenty pods get nodes, a claim is deleted, its pods move, the node goes. Whatever
leaves the process is counted: writes to the API (events apart: they are news, not state) and
calls that change the cloud. For each of them there are three tellings: Tenure dies right
after it, its answer is lost, or it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from tenure.model.api.resource import NODE_CLAIMS, NODES
from tests.builders import (
    MINUTE,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pool,
    a_requirement,
)
from tests.runtime.callfaults import FaultyStory, dies, loses, refuses
from tests.runtime.taps import Tap

PODS = 20
#: How many calls the story is expected to have; a story that needs more is not covered.
CALLS = 70


class Move(FaultyStory):
    def __init__(self, fatal: int, do: Callable[[FaultyStory, Tap, bool], object] | None) -> None:
        big = a_requirement("node.kubernetes.io/instance-type", "m7i.xlarge")
        super().__init__(
            fatal,
            do,
            a_node_class(),
            a_pool(requirements=[big]),
            a_deployment(replicas=PODS, cpu="350m"),
            a_pdb("web", maxUnavailable=15),
        )

    def tell(self) -> None:
        self.play(3 * MINUTE)
        self.delete_claim()
        self.play(6 * MINUTE)


def ends_well(faulty: Move) -> None:
    assert faulty.running("web") == PODS
    claims = faulty.store.list(NODE_CLAIMS)
    assert not [c for c in claims if "deletionTimestamp" in c["metadata"]]
    instances = sorted(i.claim_uid for i in faulty.cloud.instances())
    assert instances == sorted(c["metadata"]["uid"] for c in claims), "one each, none leaked"
    assert len(faulty.store.list(NODES)) == len(claims)
    assert faulty.cloud.launch_count == len(claims) + 1, "the deleted one, and no other"
    faulty.checkers.assert_kept()


def test_the_story_ends_well_when_nothing_goes_wrong() -> None:
    with closing(Move(0, None)) as faulty:
        faulty.tell()
        ends_well(faulty)
        assert 40 < faulty.count_of_calls <= CALLS


@pytest.mark.parametrize("fatal", range(1, CALLS + 1))
def test_tenure_dies_after_the_call(fatal: int) -> None:
    with closing(Move(fatal, dies)) as faulty:
        faulty.tell()
        ends_well(faulty)


@pytest.mark.parametrize("fatal", range(1, CALLS + 1))
def test_the_answer_to_the_call_is_lost(fatal: int) -> None:
    with closing(Move(fatal, loses)) as faulty:
        faulty.tell()
        ends_well(faulty)


@pytest.mark.parametrize("fatal", range(1, CALLS + 1, 5))
def test_the_call_is_refused(fatal: int) -> None:
    with closing(Move(fatal, refuses)) as faulty:
        faulty.tell()
        ends_well(faulty)
