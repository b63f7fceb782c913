"""The status of a NodePoolPolicy: whether it is valid, and to how many NodePools it applies."""

from __future__ import annotations

import msgspec

from tenure.core.decision import Verdict
from tenure.core.poolpolicy.facts import MoreTies, PoliciesTied, PolicyApplies, PolicyUnusable
from tenure.core.poolpolicy.status import PoolPolicyDecider
from tenure.core.reasons import REASONS, Reason
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.resource import NODE_POOL_POLICIES, NODE_POOLS
from tenure.model.snapshot.snapshot import Change
from tests.core.build import a_policy, a_pool, body_of, evaluated, fact_of, said
from tests.snapshots import snapshot_with

DECIDER = PoolPolicyDecider()


def verdicts(*items: object) -> dict[str, Verdict]:
    return {one.subject.name: one for one in evaluated(DECIDER, *items)}  # type: ignore[arg-type]


def test_it_says_to_how_many_pools_it_applies() -> None:
    every = a_policy("every", readinessTTL="1m")
    named = a_policy("named", nodePools={"names": ["b"]}, readinessTTL="1m")
    found = verdicts(every, named, a_pool("a"), a_pool("b"), a_pool("c"))
    assert fact_of(found["every"], PolicyApplies) == PolicyApplies(2, yields=1)
    assert fact_of(found["named"], PolicyApplies) == PolicyApplies(1)
    assert found["every"].reason is Reason.POOL_POLICY_STATUS_CHANGED
    assert body_of(found["every"])["status"]["nodePools"] == 2
    assert said(found["every"]) == {"Valid": ("True", "Valid")}


def test_what_is_written_already_is_not_written_again() -> None:
    policy = a_policy(readinessTTL="1m")
    verdict = verdicts(policy, a_pool())["usual"]
    status = msgspec.convert(body_of(verdict)["status"], type(policy.status))
    again = verdicts(msgspec.structs.replace(policy, status=status), a_pool())["usual"]
    assert (again.reason, again.action) == (Reason.POOL_POLICY_CURRENT, None)


def test_a_policy_that_selects_no_pool_says_so() -> None:
    policy = a_policy(nodePools={"names": ["genral"]})
    found = verdicts(policy, a_pool())["usual"]
    assert fact_of(found, PolicyApplies) == PolicyApplies(0, misses=True)
    (none,) = evaluated(DECIDER, policy)
    assert fact_of(none, PolicyApplies) == PolicyApplies(0), "without pools that says nothing"


def test_tied_policies_name_each_other_and_the_pool() -> None:
    one, two = (a_policy(name, nodePools={"names": ["general"]}) for name in ("one", "two"))
    found = verdicts(one, two, a_pool(), a_pool("other"))
    for name, other in (("one", "two"), ("two", "one")):
        assert found[name].reason is Reason.POOL_POLICY_TIED
        assert found[name].facts == (PoliciesTied("general", (other,)),)
        assert said(found[name]) == {"Valid": ("False", "Tied")}
        assert body_of(found[name])["status"]["nodePools"] == 0
    assert REASONS[Reason.POOL_POLICY_TIED].event == "Warning"


def test_many_ties_are_counted() -> None:
    items = [a_policy("one"), a_policy("two"), *(a_pool(f"p{n}") for n in range(9))]
    facts = verdicts(*items)["one"].facts
    assert facts[-1] == MoreTies(6)
    assert len(facts) == 4


def test_an_invalid_policy_says_what_is_wrong() -> None:
    found = verdicts(a_policy(readinessTTL="soon"), a_pool())["usual"]
    assert found.reason is Reason.POOL_POLICY_INVALID
    fact = fact_of(found, PolicyUnusable)
    assert fact.refused
    assert [problem.at for problem in fact.problems] == ["spec.readinessTTL"]
    assert said(found) == {"Valid": ("False", "Invalid")}
    assert body_of(found)["status"]["nodePools"] == 0


def test_an_entry_for_repair_that_cannot_be_used_leaves_the_rest_in_use() -> None:
    entry = {"conditionType": "Ready", "toleration": "soon"}
    found = verdicts(a_policy(repair={"policies": [entry]}), a_pool())["usual"]
    assert not fact_of(found, PolicyUnusable).refused
    assert body_of(found)["status"]["nodePools"] == 1


def test_another_policy_and_another_pool_touch_all_policies() -> None:
    one, two, pool = a_policy("one"), a_policy("two"), a_pool()
    snapshot = snapshot_with(one, two, pool)
    changed = Change(NODE_POOL_POLICIES, "two", two, NodePoolPolicy())
    assert set(DECIDER.touched(changed, snapshot)) == {"one", "two"}
    assert set(DECIDER.touched(Change(NODE_POOLS, "general", None, pool), snapshot)) == {
        "one",
        "two",
    }
    assert not set(DECIDER.touched(Change(NODE_POOLS, "general", pool, pool), snapshot))
