"""Which policy applies to a NodePool, what it says there, and what is left of one that is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.poolpolicy.govern import CLOSED, NO_REPAIR, govern, overruled
from tenure.model.api.nodepool import Budget, NodePool
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.resource import NODE_POOL_POLICIES
from tenure.model.snapshot.governed import Ruling
from tenure.model.snapshot.kinds import decode
from tests.core.build import a_policy, a_pool

GENERAL = {"names": ["general"]}


def ruling(pool: NodePool, *policies: NodePoolPolicy) -> Ruling:
    found = govern(pool, policies)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"names": ["general"]}, True),
        ({"names": ["other", "general"]}, True),
        ({"names": ["other"]}, False),
        ({"matchLabels": {"team": "a"}}, True),
        ({"matchLabels": {"team": "a", "env": "prod"}}, False),
        ({"names": ["general"], "matchLabels": {"team": "b"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "rank", "operator": "Gt", "values": ["3"]}]}, True),
        ({"matchExpressions": [{"key": "rank", "operator": "Lt", "values": ["3"]}]}, False),
    ],
)
def test_a_policy_selects_by_names_and_labels_of_the_pool(
    selector: dict[str, Any], selected: bool
) -> None:
    pool = a_pool(labels={"team": "a", "rank": "4"})
    found = govern(pool, [a_policy(nodePools=selector, readinessTTL="5m")])
    assert (found is not None) is selected


def test_the_most_specific_policy_applies_as_a_whole() -> None:
    every = a_policy("every", readinessTTL="1m", initializationTTL="2m")
    labels = a_policy("labels", nodePools={"matchLabels": {"team": "a"}}, readinessTTL="3m")
    names = a_policy("names", nodePools=GENERAL, readinessTTL="5m")
    pool = a_pool(labels={"team": "a"})
    assert ruling(pool, every).policies == ("every",)
    assert ruling(pool, labels, every).readiness_ttl == "3m"
    found = ruling(pool, every, names, labels)
    assert (found.policies, found.readiness_ttl) == (("names",), "5m")
    assert found.initialization_ttl is None, "of the others nothing is taken"


@pytest.mark.parametrize(
    ("field", "value", "inline"),
    [
        ("readinessTTL", "5m", {"template": {"readinessTTL": "20m"}}),
        ("initializationTTL", "5m", {"template": {"initializationTTL": "Never"}}),
        ("expireAfter", "24h", {"template": {"expireAfter": "720h"}}),
        ("repair", {"maxUnhealthy": "1"}, {"repair": {"maxUnhealthy": "50%"}}),
        ("maxPodProtection", "5m", {"disruption": {"maxPodProtection": "1h"}}),
    ],
)
def test_an_inline_value_wins(field: str, value: object, inline: dict[str, Any]) -> None:
    """The same pool where that is all: nothing is merged."""
    spec: dict[str, Any] = {field: value}
    policy, pool = a_policy(**spec), a_pool(**inline)
    assert govern(pool, [policy]) is None
    assert [at for at, _ in overruled(pool, policy)] == [f"spec.{field}"]
    silent = a_pool(template={"expireAfter": "Never", "readinessTTL": "15m"})
    assert list(ruling(silent, policy).values) == [field]
    assert not list(overruled(silent, policy))


def test_budgets_take_the_place_of_the_default_and_stand_beside_others() -> None:
    policy = a_policy(budgets=[{"nodes": "2"}])
    assert ruling(a_pool(), policy).budgets == (Budget(nodes="2"),)
    default = a_pool(disruption={"budgets": [{"nodes": "10%"}]})
    assert ruling(default, policy).budgets == (Budget(nodes="2"),)
    other = a_pool(disruption={"budgets": [{"nodes": "5"}]})
    assert ruling(other, policy).budgets == (Budget(nodes="5"), Budget(nodes="2"))


def test_a_tie_is_refused_and_takes_no_protection_away() -> None:
    one = a_policy("one", nodePools=GENERAL, readinessTTL="40m", budgets=[{"nodes": "50%"}])
    two = a_policy("two", nodePools=GENERAL, readinessTTL="5m", repair={"maxUnhealthy": "1"})
    found = ruling(a_pool(), one, two)
    assert found.refusal is not None
    assert found.refusal.at == "spec.nodePools of NodePoolPolicy one"
    assert "NodePoolPolicy two does" in found.refusal.expected
    assert (found.budgets, found.repair, found.readiness_ttl) == ((CLOSED,), NO_REPAIR, "40m")
    assert ruling(a_pool(), two, one) == found


def test_a_tie_of_less_specific_policies_does_not_matter() -> None:
    ties = (a_policy("a", readinessTTL="1m"), a_policy("b", readinessTTL="2m"))
    found = ruling(a_pool(), *ties, a_policy("c", nodePools=GENERAL, readinessTTL="3m"))
    assert (found.refusal, found.readiness_ttl) == (None, "3m")


def test_refused_policies_hold_only_what_they_would_set() -> None:
    one, two = a_policy("one", maxPodProtection="1m"), a_policy("two", readinessTTL="5m")
    found = ruling(a_pool(), one, two)
    assert found.refusal is not None
    assert not found.values, "the default readinessTTL is longer"


def test_an_invalid_policy_is_refused_whatever_its_other_fields_say() -> None:
    policy = a_policy(readinessTTL="soon", budgets=[{"nodes": "1"}], maxPodProtection="1m")
    found = ruling(a_pool(), policy)
    assert found.refusal is not None
    assert found.refusal.at == "spec.readinessTTL of NodePoolPolicy usual"
    assert found.values == {"budgets": (CLOSED,)}
    assert found.refusal.budgets
    assert not found.refusal.repair


def test_a_repair_policy_that_cannot_be_used_does_not_refuse_the_rest() -> None:
    """As in a NodePool, where it is ignored by itself."""
    entry = {"conditionType": "Ready", "toleration": "soon"}
    found = ruling(a_pool(), a_policy(repair={"policies": [entry]}, readinessTTL="5m"))
    assert (found.refusal, found.readiness_ttl) == (None, "5m")


@pytest.mark.parametrize(
    ("spec", "selected"),
    [
        ({"nodePools": {"names": ["general"]}, "readinessTTL": 5}, {"general"}),
        ({"nodePools": {"names": ["general", 5]}}, {"general", "other"}),
        ({"nodePools": 5}, {"general", "other"}),
        (5, {"general", "other"}),
    ],
)
def test_a_policy_that_cannot_be_decoded_holds_everything_it_may_select(
    spec: object, selected: set[str]
) -> None:
    written = {"metadata": {"name": "odd"}, "spec": spec}
    policy = decode(NODE_POOL_POLICIES, msgspec.json.encode(written))
    assert isinstance(policy, NodePoolPolicy)
    pools = [a_pool("general"), a_pool("other")]
    found = {pool.name: govern(pool, [policy]) for pool in pools}
    assert {name for name, one in found.items() if one is not None} == selected
    for one in filter(None, found.values()):
        assert one.refusal is not None
        assert (one.budgets, one.repair) == ((CLOSED,), NO_REPAIR)


def test_a_bad_expression_selects_rather_too_many() -> None:
    selector = {"matchExpressions": [{"key": "team", "operator": "Near", "values": ["a"]}]}
    found = ruling(a_pool(), a_policy(nodePools=selector, budgets=[{"nodes": "1"}]))
    assert found.refusal is not None
    assert found.refusal.at == "spec.nodePools.matchExpressions[0].operator of NodePoolPolicy usual"
    assert found.budgets == (CLOSED,)
