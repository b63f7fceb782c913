"""NodePoolPolicies in virtual time: what they say acts as if the NodePool said it, and at once.

The NodePools are as Karpenter's CRD leaves them: the fields that only Tenure knows are not there. Stories
begin on a Monday at 08:00 UTC; ``KWOKUnhealthy`` is tolerated for 30 s by the provider's word.
"""

from __future__ import annotations

from typing import Any

from tenure.core.reasons import Reason
from tenure.model.api.resource import (
    NODE_CLAIMS,
    NODE_POOL_POLICIES,
)
from tenure.sim.scenario.dsl import Story
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Manifest,
    a_deployment,
    a_node_class,
    a_pool,
)
from tests.runtime.observe.test_view import Forbidding
from tests.scenarios.fleets import Begun, a_cluster, a_fleet, a_window, label_template, uids
from tests.scenarios.signs import is_gone, is_leaving, says, warned
from tests.scenarios.test_boot_timeouts import launched
from tests.scenarios.test_launch_breaker import conditions
from tests.scenarios.test_replacing import becomes_unhealthy

GENERAL = {"names": ["general"]}


def a_policy(name: str = "usual", **spec: Any) -> Manifest:
    kind = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePoolPolicy"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def valid(story: Story, name: str = "usual") -> tuple[str, str, int]:
    """The condition, its reason, and how many pools it applies to."""
    status = story.the(NODE_POOL_POLICIES, name=name)["status"]
    (condition,) = status["conditions"]
    return condition["status"], condition["reason"], status["nodePools"]


def test_a_readiness_ttl_of_a_policy_acts_and_a_longer_one_acts_at_once() -> None:
    policy = a_policy(readinessTTL="5s")
    with Story(a_node_class(), a_pool(), policy, a_deployment()) as story:
        story.run(20 * MINUTE)
        assert launched(story) >= 3
        assert conditions(story)["LaunchesBackOff"] == "True"
        before = launched(story)
        story.apply(a_policy(readinessTTL="5m"))
        story.run(2 * MINUTE)
        assert (launched(story), story.running("web")) == (before + 1, 1)
        assert conditions(story)["LaunchesBackOff"] == "False"
        spec = story.the(NODE_CLAIMS)["spec"]
        assert spec["readinessTTL"] == "15m", "a claim is made from the pool as it is written"
        assert valid(story) == ("True", "Valid", 1)
        story.checkers.assert_kept()


def test_a_policy_of_a_claim_that_boots_is_read_live() -> None:
    """Karpenter has made the claim, or the policy was written after it."""
    with Story(a_node_class(), a_pool(), a_deployment()) as story:
        story.run(3 * SECOND)
        claim = story.the(NODE_CLAIMS)["metadata"]["name"]
        story.apply(a_policy(readinessTTL="4s"))
        story.run(4 * SECOND)
        assert is_leaving(story, claim) or is_gone(story, claim)
        story.checkers.assert_kept()


def test_a_repair_block_of_a_policy_acts_until_it_is_deleted() -> None:
    entry = {"conditionType": "KWOKUnhealthy", "status": "True", "toleration": "Never"}
    block = {"maxUnhealthy": "100%", "terminationMode": "Forceful", "policies": [entry]}
    with Story(a_node_class(), a_pool(), a_policy(repair=block), a_deployment()) as story:
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story)
        story.run(HOUR)
        assert not is_leaving(story, claim), "the policy tolerates it for ever"
        story.apply(a_policy(repair=block | {"policies": [entry | {"toleration": "10s"}]}))
        story.run(3 * SECOND)
        assert is_leaving(story, claim) or is_gone(story, claim)
        assert "Replacing" not in story.reasons(f"NodeClaim/{claim}"), "it is Forceful"
        story.run(5 * MINUTE)
        story.store.delete(NODE_POOL_POLICIES, "", "usual")
        _, claim = becomes_unhealthy(story)
        story.run(33 * SECOND)
        assert says(story, claim, "DisruptionReason") == ("True", "Unhealthy"), "graceful again"
        assert not is_leaving(story, claim)
        story.checkers.assert_kept()


def test_a_velocity_of_a_policy_holds_over_an_hour_and_over_leaders() -> None:
    budgets = [{"nodes": "100%"}, {"nodes": "1", "within": "1h"}]
    cluster = a_cluster(a_fleet(3), a_policy(budgets=budgets), budgets=[{"nodes": "10%"}])
    with Story(*cluster) as story:
        story.run(5 * MINUTE)
        begun = Begun(story)
        label_template(story, "two")
        for _ in range(4):
            story.run(50 * MINUTE)
            story.crash()
        assert len(begun.at) == 3
        gaps = [b - a for a, b in zip(begun.at, begun.at[1:], strict=False)]
        assert min(gaps) >= HOUR
        story.checkers.assert_kept()


def test_a_velocity_that_is_taken_away_is_gone_at_once() -> None:
    cluster = a_cluster(
        a_fleet(3), a_policy(budgets=[{"nodes": "1", "within": "24h"}]), budgets=[{"nodes": "10%"}]
    )
    with Story(*cluster) as story:
        story.run(5 * MINUTE)
        begun = Begun(story)
        label_template(story, "two")
        story.run(HOUR)
        assert len(begun.at) == 1
        story.store.delete(NODE_POOL_POLICIES, "", "usual")
        story.run(30 * MINUTE)
        assert len(begun.at) == 3
        story.checkers.assert_kept()


def test_soft_expiration_of_a_policy_waits_for_a_window() -> None:
    """The pool says Never, so that Karpenter does not expire nodes by itself."""
    office = a_window(
        "office", actions=["Expiration"], schedules=[{"cron": "0 8 * * *", "duration": "4h"}]
    )
    cluster = a_cluster(
        a_fleet(2), office, a_policy(expireAfter="1h"), template={"expireAfter": "Never"}
    )
    with Story(*cluster) as story:
        story.run(5 * MINUTE)
        before = uids(story)
        story.run(3 * HOUR)
        assert uids(story) == before
        assert all(says(story, c, "Expired") for c in _names(story))
        story.run(80 * MINUTE)
        assert not uids(story) & before
        hashes = {
            c["metadata"]["annotations"]["karpenter.sh/nodepool-hash"]
            for c in story.all(NODE_CLAIMS)
        }
        assert len(hashes) == 1
        assert "Drifted" not in str(story.reasons("*")), "a policy makes no node drift"
        story.checkers.assert_kept()


def _names(story: Story) -> list[str]:
    return [claim["metadata"]["name"] for claim in story.all(NODE_CLAIMS)]


def test_a_tie_closes_the_pool_until_one_of_them_is_gone() -> None:
    any_ = [{"nodes": "100%"}]
    one, two = (a_policy(name, nodePools=GENERAL, budgets=any_) for name in ("one", "two"))
    with Story(*a_cluster(a_fleet(1), one, two)) as story:
        story.run(5 * MINUTE)
        before = uids(story)
        label_template(story, "two")
        story.run(HOUR)
        assert uids(story) == before
        for name, other in (("one", "two"), ("two", "one")):
            assert valid(story, name) == ("False", "Tied", 0)
            assert warned(story, f"NodePoolPolicy {other} selects NodePool general in the same way")
        assert conditions(story)["DisruptionValid"] == "False"
        story.store.delete(NODE_POOL_POLICIES, "", "two")
        story.run(5 * MINUTE)
        assert not uids(story) & before
        assert valid(story, "one") == ("True", "Valid", 1)
        assert conditions(story)["DisruptionValid"] == "True"
        story.checkers.assert_kept()


def test_a_policy_that_no_schema_can_refuse_protects_its_pools() -> None:
    """Its schedule passes the CRD's pattern, and means nothing."""
    bad = {"nodes": "100%", "schedule": "61 * * * *", "duration": "1h"}
    with Story(*a_cluster(a_fleet(1), a_policy(budgets=[bad]))) as story:
        story.run(5 * MINUTE)
        before = uids(story)
        label_template(story, "two")
        story.run(30 * MINUTE)
        assert uids(story) == before
        assert valid(story) == ("False", "Invalid", 0)
        assert Reason.POOL_POLICY_INVALID in story.reasons("NodePoolPolicy/usual")
        assert warned(story, "spec.budgets[0].schedule of NodePoolPolicy usual")
        story.checkers.assert_kept()


def test_max_pod_protection_of_a_policy_ends_the_protection_of_a_pod() -> None:
    forever = a_deployment(annotations={"karpenter.sh/do-not-disrupt": "true"})
    with Story(*a_cluster(forever)) as story:
        story.run(5 * MINUTE)
        before = uids(story)
        label_template(story, "two")
        story.run(HOUR)
        assert uids(story) == before
        story.apply(a_policy(maxPodProtection="30m"))
        story.run(5 * MINUTE)
        assert not uids(story) & before
        story.checkers.assert_kept()


def test_without_the_right_to_list_policies_no_disruption_by_choice_begins() -> None:
    """One of them may have a budget: what cannot be read protects. Launches go on, and so does the rest once
    the right is there."""
    policy = a_policy(budgets=[{"nodes": "100%"}])
    with Story(*a_cluster(a_fleet(1)), policy) as story:
        forbidding = Forbidding(story.transport, NODE_POOL_POLICIES)
        story.transport = forbidding
        story.crash()
        story.run(5 * MINUTE)
        assert story.running("web") == 1, "launches go on"
        before = uids(story)
        label_template(story, "two")
        story.run(5 * MINUTE)
        assert uids(story) == before
        assert conditions(story)["DisruptionValid"] == "False"
        assert warned(story, "NodePoolPolicies: got '403 Forbidden: no such right'")
        assert story.controller.view.outdated == ""
        forbidding.forbids = False
        story.run(10 * MINUTE)
        assert not uids(story) & before
        assert conditions(story)["DisruptionValid"] == "True"
        story.checkers.assert_kept()


def test_without_the_right_to_list_policies_a_pool_repairs_by_its_own_block_alone() -> None:
    """By force, which asks no budget. A policy may have said something else of the other pool."""
    block = {"maxUnhealthy": "100%", "terminationMode": "Forceful"}
    for repair, repaired in ((block, True), (None, False)):
        spec: dict[str, Any] = {"repair": repair} if repair is not None else {}
        with Story(a_node_class(), a_pool(**spec), a_deployment()) as story:
            story.transport = Forbidding(story.transport, NODE_POOL_POLICIES)
            story.crash()
            story.run(5 * MINUTE)
            _, claim = becomes_unhealthy(story)
            story.run(10 * MINUTE)
            assert (is_gone(story, claim) or is_leaving(story, claim)) is repaired
            story.checkers.assert_kept()
