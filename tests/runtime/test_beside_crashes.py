"""Beside Karpenter Tenure is killed after each single write, and the story ends as if not.

Four NodeClaims of Karpenter's: the Node of one never becomes Ready, that of another is lost, a third is unhealthy,
and the fourth was Ready for a moment, which must not be forgotten. No Karpenter runs, so nothing finishes a deletion.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tenure.model.api import names
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.settings import Settings
from tenure.sim.world import WorldOptions
from tests.builders import MINUTE, SECOND, a_pool
from tests.runtime.callfaults import FaultyStory, dies, loses, loses_the_lease, refuses
from tests.runtime.taps import Tap
from tests.scenarios.test_beside_repair import FORCEFUL, initialize, notes_of, put_node, set_ready
from tests.scenarios.test_pool_policies import a_policy

SETTINGS = Settings(
    beside_karpenter=True, karpenter_version="1.15", karpenter_feature_gates="NodeRepair=false"
)
CALLS = 12
ENDED = {"never": "ReadinessTimeout", "lost": "NodeLost", "unhealthy": "NodeRepair"}
MARKS = {names.TERMINATION_TIMESTAMP, names.TERMINATION_BY, names.TERMINATION_BECAUSE}


class Beside(FaultyStory):
    def __init__(self, fatal: int, do: Callable[[FaultyStory, Tap, bool], object] | None) -> None:
        policy = a_policy(readinessTTL="5m", repair=FORCEFUL)
        options = WorldOptions(settings=SETTINGS)
        super().__init__(fatal, do, a_pool(), policy, options=options)

    def tell(self) -> None:
        for name in ("never", "lost", "unhealthy", "moment"):
            put_node(self, name)
        initialize(self, "lost")
        initialize(self, "unhealthy")
        for name in ("lost", "unhealthy", "moment"):
            set_ready(self, "True", name)
        self.play(40 * SECOND)
        set_ready(self, "False", "moment")
        set_ready(self, "True", "unhealthy", condition="KWOKUnhealthy")
        self.store.delete(NODES, "", "node-lost")
        self.play(8 * MINUTE)


def ends_well(faulty: Beside) -> None:
    claims: dict[str, Any] = {
        one["metadata"]["name"]: one for one in faulty.store.list(NODE_CLAIMS)
    }
    leaving = {name for name, one in claims.items() if "deletionTimestamp" in one["metadata"]}
    because = {name: notes_of(claims[name]).get(names.TERMINATION_BECAUSE) for name in leaving}
    assert because == ENDED
    moment = notes_of(claims["moment"])
    assert names.READY_ONCE_AT in moment
    assert not MARKS & set(moment)
    faulty.checkers.assert_kept()


def test_the_story_ends_well_when_nothing_goes_wrong() -> None:
    with closing(Beside(0, None)) as faulty:
        faulty.tell()
        ends_well(faulty)
        assert 8 <= faulty.count_of_calls <= CALLS


@pytest.mark.parametrize("do", [dies, loses, refuses, loses_the_lease])
@pytest.mark.parametrize("fatal", range(1, CALLS + 1))
def test_something_happens_to_the_call(
    fatal: int, do: Callable[[FaultyStory, Tap, bool], object]
) -> None:
    with closing(Beside(fatal, do)) as faulty:
        faulty.tell()
        ends_well(faulty)
