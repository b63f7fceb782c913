"""Passes of the pipeline that take long: by the stopwatch each step takes as long as a turn has for it.

So every pass goes on over many turns, 50 ms apart, while the cluster changes. Virtual time all the same: each run is like
the other.
"""

from __future__ import annotations

from itertools import count

from tenure.model.api.names import NODEPOOL
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS
from tenure.runtime.controller import Controller
from tenure.runtime.evaluate.suspended import SLICE
from tenure.sim.scenario.dsl import Story
from tests.builders import HOUR, MINUTE, SECOND, a_deployment, a_pool, a_requirement
from tests.runtime.worlds import outcomes
from tests.scenarios.fleets import (
    ANY,
    SMALL,
    Begun,
    Watched,
    a_cluster,
    a_fleet,
    claims,
    label_template,
    scale,
    set_pool,
    uids,
)
from tests.scenarios.signs import is_tainted, says

BLOCKED = [{"nodes": "0"}]


class Slow(Story):
    def _new_controller(self) -> Controller:
        controller = super()._new_controller()
        looks = count()
        controller.evaluator._stopwatch = lambda: next(looks) * SLICE
        return controller

    @property
    def in_a_pass(self) -> bool:
        return self.controller.evaluator.goes_on

    def run_into_a_new_pass(self) -> None:
        """Until one has just begun."""
        suspended = self.controller.evaluator._one_key.suspended
        before = [suspended.get(work) for work in suspended.works()]

        def is_new() -> bool:
            now = [suspended.get(work) for work in suspended.works()]
            return bool(now) and now != before

        self.run_while(lambda: not is_new(), at_most=MINUTE, step=SECOND / 20)


def test_a_claim_that_is_deleted_during_a_pass_is_drained_before_its_end() -> None:
    with Slow(*a_cluster(a_fleet(12), budgets=BLOCKED, consolidateAfter="Never")) as story:
        story.run(5 * MINUTE)
        story.run_while(lambda: story.in_a_pass, at_most=MINUTE, step=SECOND / 20)
        label_template(story, "2")
        story.run_while(lambda: not story.in_a_pass, at_most=MINUTE, step=SECOND / 20)
        name = story.delete_claim()
        node = story.the(NODE_CLAIMS, name=name)["status"]["nodeName"]
        story.run_while(lambda: not is_tainted(story, node), at_most=MINUTE, step=SECOND / 20)
        assert story.in_a_pass, "over 12 candidates, with two verdicts each"
        story.run(MINUTE)
        story.checkers.assert_kept()


def test_a_fleet_that_drifts_is_replaced_within_its_budget() -> None:
    with Slow(*a_cluster(a_fleet(6), budgets=[{"nodes": "2"}], consolidateAfter="Never")) as story:
        story.run(5 * MINUTE)
        watched, begun, before = Watched(story), Begun(story), uids(story)
        label_template(story, "2")
        story.run_while(lambda: bool(uids(story) & before), at_most=HOUR, step=10 * SECOND)
        assert (len(begun.at), watched.most) == (6, 2)
        assert story.count("nodes") == 6, "none was launched twice"
        story.checkers.assert_kept()


def test_a_budget_that_opens_and_pods_that_come_and_go_do_not_keep_a_pass_from_its_end() -> None:
    with Slow(*a_cluster(a_fleet(5), budgets=BLOCKED, consolidateAfter="Never")) as story:
        story.run(5 * MINUTE)
        before = uids(story)
        label_template(story, "2")
        story.run(10 * SECOND)
        set_pool(story, budgets=[{"nodes": "100%"}])
        for replicas in (6, 5) * 30:
            scale(story, replicas)
            story.run(5 * SECOND)
        story.run(10 * MINUTE)
        assert not uids(story) & before
        assert all("deletionTimestamp" not in claim["metadata"] for claim in claims(story))
        story.checkers.assert_kept()


def test_a_crash_in_the_middle_of_passes_loses_nothing() -> None:
    with Slow(*a_cluster(a_fleet(4), consolidateAfter="Never")) as story:
        story.run(5 * MINUTE)
        before = uids(story)
        label_template(story, "2")
        for _ in range(12):
            story.run_while(lambda: not story.in_a_pass, at_most=MINUTE, step=SECOND / 20)
            story.run(SECOND / 4)
            story.crash()
            story.run(20 * SECOND)
        story.run(20 * MINUTE)
        assert not uids(story) & before
        assert story.count("nodes") == 4
        story.checkers.assert_kept()


def cpu_of(story: Story, pool: str) -> int:
    """Of the claims of a pool that are not being deleted."""
    types = {"m7i.large": 2, "m7i.xlarge": 4}
    found = 0
    for claim in claims(story):
        labels, metadata = claim["metadata"]["labels"], claim["metadata"]
        if labels[NODEPOOL] == pool and "deletionTimestamp" not in metadata:
            found += types.get(labels.get("node.kubernetes.io/instance-type", ""), 4)
    return found


def test_a_pass_on_an_old_view_does_not_use_what_provisioning_has_used_since() -> None:
    """A node of 2 CPU is to be replaced by one of 4. Meanwhile a new pod gets the last 4 CPU under the limit."""
    small = a_pool("small", requirements=[SMALL], limits={"cpu": "6"}, disruption={"budgets": ANY})
    first = a_deployment("first", replicas=1, cpu="1500m", nodeSelector={NODEPOOL: "small"})
    second = a_deployment("second", replicas=0, cpu="3", nodeSelector={NODEPOOL: "small"})
    # Provisioning takes its time, too: many candidates make the pass the longer one.
    many = a_deployment("many", replicas=80, cpu="1500m", nodeSelector={NODEPOOL: "general"})
    others = a_cluster(many, budgets=BLOCKED, consolidateAfter="Never")
    with Slow(*others, small, first, second) as story:
        story.run(5 * MINUTE)
        (name,) = (n for c in claims(story) if (n := c["metadata"]["name"]).startswith("small-"))
        label_template(story, "2")
        story.run(20 * SECOND)
        larger = [a_requirement("node.kubernetes.io/instance-type", "m7i.xlarge")]
        spec = {"template": {"spec": {"requirements": larger}}}
        story.store.patch(NODE_POOLS, "", "small", {"spec": spec})
        story.run_while(
            lambda: says(story, name, "Drifted") is None, at_most=MINUTE, step=SECOND / 20
        )
        story.run_into_a_new_pass()
        scale(story, 1, "second")
        used = {cpu_of(story, "small")}
        for _ in range(400):
            story.run(SECOND / 20)
            used.add(cpu_of(story, "small"))
        assert used == {2, 6}
        held = "held: the cpu that the limits of NodePool small leave has changed since"
        assert any(one.startswith(held) for one in outcomes(story, "small-"))
