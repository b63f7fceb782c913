"""``tenure explain`` names the NodePoolPolicy that each value comes from."""

from __future__ import annotations

import json

import pytest

from tenure.cli.explain.policytext import policy_json, policy_lines, policy_outlook
from tenure.cli.main import run
from tenure.model.api.resource import NODE_POOL_POLICIES
from tenure.model.snapshot.governed import as_written
from tests.core.build import a_claim, a_policy, a_pool
from tests.folders import ROOT
from tests.snapshots import snapshot_with
from tests.test_termination_pages import blocks, explained

PAGE = "nodepool-policy.md"
STORY = str(ROOT / "examples" / "scenarios" / "pool-policy.yaml")


def lines(*items: object, pool: str = "general") -> list[str]:
    outlook = policy_outlook(snapshot_with(*items).pools[pool])  # type: ignore[arg-type]
    return list(policy_lines(outlook)) if outlook is not None else []


def test_explain_says_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(explained(PAGE)) == 0
    (shown,) = blocks(PAGE, "text")
    assert shown in capsys.readouterr().out


def test_the_budgets_of_the_pool_itself_are_not_said_to_come_from_the_policy() -> None:
    night = {"nodes": "0", "schedule": "@daily", "duration": "8h", "reasons": ["Drifted"]}
    pool = a_pool(disruption={"budgets": [{"nodes": "5"}]})
    assert lines(pool, a_policy(budgets=[night])) == [
        "  policy    budgets nodes 0 for Drifted from @daily for 8h, from NodePoolPolicy usual"
    ]


def test_a_refusal_is_told_with_what_it_holds() -> None:
    policies = [a_policy(name, budgets=[{"nodes": "1"}]) for name in ("one", "two")]
    refused, held = lines(a_pool(), *policies)
    assert refused.startswith(
        "  policy    refused: spec.nodePools of NodePoolPolicy one: got 'general'"
    )
    assert held == "  policy    budgets nodes 0, because NodePoolPolicies one and two are refused"


def test_a_refused_repair_block_repairs_nothing() -> None:
    """Not Forceful, which is only what a block without a word about it has."""
    policies = [a_policy(name, repair={"terminationMode": "Graceful"}) for name in ("one", "two")]
    _, held = lines(a_pool(), *policies)
    assert held == "  policy    repair off, because NodePoolPolicies one and two are refused"


def test_policies_that_must_not_be_listed_are_told_beside_those_that_are_known() -> None:
    unlisted = {NODE_POOL_POLICIES: "403 Forbidden"}
    pool = snapshot_with(a_pool(), a_policy(maxPodProtection="1h"), unlisted=unlisted).pools
    outlook = policy_outlook(pool["general"])
    assert outlook is not None
    unknown, known = policy_lines(outlook)
    assert unknown.startswith(
        "  policy    unknown, so no node is disrupted by choice: NodePoolPolicies: got '403 Forbidden'"
    )
    assert known == "  policy    maxPodProtection 1h, from NodePoolPolicy usual"


def test_without_a_policy_nothing_is_said() -> None:
    assert lines(a_pool()) == []
    assert policy_json(policy_outlook(a_pool())) is None


def test_a_claim_says_which_of_its_times_come_from_the_policy() -> None:
    policy = a_policy(readinessTTL="40m", maxPodProtection="1h")
    claim = snapshot_with(a_pool(), policy, a_claim("a")).claims["a"]
    outlook = policy_outlook(claim)
    assert outlook is not None
    assert outlook.values == {"readinessTTL": "40m"}
    assert as_written(claim).spec.readiness_ttl is None


def test_json_has_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "pool/general", "--in", STORY, "--at", "90m", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["policy"]
    assert told["policies"] == ["slow-boot"]
    assert told["values"]["readinessTTL"] == "40m"
    assert told["refused"] is None


def test_a_policy_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "npp/everywhere", "--in", STORY, "--at", "90m", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["reason"] == "PolicyCurrent"
    assert told["facts"][0]["pools"] == 1
