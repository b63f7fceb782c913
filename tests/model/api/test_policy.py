"""A NodePoolPolicy as the API sends it, whole and in part."""

from __future__ import annotations

import msgspec

from tenure.model.api.nodepool import Budget
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.resource import NODE_POOL_POLICIES
from tenure.model.snapshot.kinds import decode
from tenure.model.snapshot.unreadable import is_unreadable


def decoded(spec: object) -> NodePoolPolicy:
    policy = decode(NODE_POOL_POLICIES, msgspec.json.encode({"spec": spec}))
    assert isinstance(policy, NodePoolPolicy)
    return policy


def test_fields_have_the_names_and_types_of_the_inline_fields() -> None:
    spec = decoded(
        {
            "nodePools": {"names": ["general"], "matchLabels": {"team": "a"}},
            "readinessTTL": "40m",
            "initializationTTL": "Never",
            "expireAfter": "24h",
            "maxPodProtection": "1h",
            "budgets": [{"nodes": "1", "within": "1h", "timeZone": "Europe/Berlin"}],
            "repair": {"maxUnhealthy": 1, "policies": [{"conditionType": "Ready"}]},
        }
    ).spec
    assert spec.node_pools.names == ("general",)
    assert spec.node_pools.match_labels == {"team": "a"}
    assert (spec.readiness_ttl, spec.initialization_ttl) == ("40m", "Never")
    assert (spec.expire_after, spec.max_pod_protection) == ("24h", "1h")
    assert spec.budgets == (Budget(nodes="1", within="1h", time_zone="Europe/Berlin"),)
    assert spec.repair is not None
    assert spec.repair.max_unhealthy == 1


def test_what_is_not_written_says_nothing() -> None:
    spec = decoded({}).spec
    assert (spec.readiness_ttl, spec.expire_after, spec.repair, spec.budgets) == (None,) * 4
    assert decoded({"budgets": []}).spec.budgets == (), "no limit, which says something"


def test_one_that_cannot_be_read_keeps_what_it_selects_and_nothing_else() -> None:
    policy = decoded({"nodePools": {"names": ["general"]}, "readinessTTL": 5, "expireAfter": "1h"})
    assert is_unreadable(policy)
    assert policy.spec.node_pools.names == ("general",)
    assert policy.spec.expire_after is None
