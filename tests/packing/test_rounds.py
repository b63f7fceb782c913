"""What one round of placing decides holds in the next: nodes first, priorities, preferences, limits."""

from __future__ import annotations

from tenure.model.api.names import HOSTNAME, ZONE
from tests.packing.build import NO_SCHEDULE, TOLERATE_BATCH, a_node, a_pod, a_pool, pods
from tests.packing.demand.test_topology import WEB
from tests.packing.test_constraints import DB, RACK, RACKS, far, near, packed, term

CACHE = {"app": "cache"}


def test_pods_that_need_each_other_stay_out_where_their_node_is_full() -> None:
    """The scheduler binds the first to the node that is there, and no other node serves then."""
    together = pods(5, cpu="3", labels=WEB, **near(term(HOSTNAME)))
    packing = packed(*together, nodes=(a_node("n", "8"),))
    assert packing.placed == {"p-000": "n", "p-001": "n"}
    assert sorted(packing.unplaced) == ["p-002", "p-003", "p-004"]


def test_pods_of_lower_priority_keep_off_those_that_are_planned_before_them() -> None:
    """The pool's limits make priorities matter, so there are two rounds."""
    first = a_pod("first", "3", labels=WEB, priority=100)
    others = pods(3, cpu="500m", labels=DB, **far(term(RACK)))
    pool = a_pool(limits={"cpu": "20"}, requirements=[RACKS])
    packing = packed(first, *others, templates=(pool,))
    racks = {
        uid: set(claim.requirements[RACK].values) for claim in packing.claims for uid in claim.pods
    }
    assert len(racks) == 4
    assert all(racks["first"].isdisjoint(racks[pod.uid]) for pod in others)


def test_no_pod_follows_others_to_where_limits_do_not_let_them_come() -> None:
    leaders = pods(6, "leader", cpu="3", labels=CACHE)
    nearby = near(term(ZONE, CACHE))
    followers = pods(6, "follower", cpu="100m", labels=DB, tolerations=[TOLERATE_BATCH], **nearby)
    limited, other = a_pool(limits={"cpu": "8"}), a_pool("batch", taints=[NO_SCHEDULE])
    packing = packed(*leaders, *followers, templates=(limited, other))
    out = [uid for uid in packing.unplaced if uid.startswith("leader")]
    assert 0 < len(out) < 6
    assert len(packing.unplaced) == len(out)


def test_a_pod_does_not_come_to_the_one_that_it_needs_where_that_avoids_it() -> None:
    shy = a_pod("shy", labels=WEB, **far(term(HOSTNAME, DB)))
    open_ = a_pod("open", "100m", labels=WEB)
    needy = a_pod("needy", labels=DB, **near(term(HOSTNAME, WEB)))
    packing = packed(shy, open_, needy)
    (home,) = (claim.pods for claim in packing.claims if "needy" in claim.pods)
    assert sorted(home) == ["needy", "open"]
    assert not packing.unplaced
