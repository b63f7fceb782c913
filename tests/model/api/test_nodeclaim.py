"""How claims are read, and what they say about themselves."""

from __future__ import annotations

import msgspec
import pytest

from tenure.model.api.nodeclaim import NodeClaim
from tests.folders import DATA

KINDS = DATA / "karpenter-1.15-custom-kinds.jsonl"


def a_claim_of_karpenter() -> NodeClaim:
    line = next(line for line in KINDS.read_bytes().splitlines() if b'"kind":"NodeClaim"' in line)
    return msgspec.json.decode(line, type=NodeClaim)


def with_condition(type_: str, status: str = "True") -> NodeClaim:
    text = f'{{"status": {{"conditions": [{{"type": "{type_}", "status": "{status}"}}]}}}}'
    return msgspec.json.decode(text, type=NodeClaim)


def test_a_claim_of_karpenter_says_where_it_stands() -> None:
    claim = a_claim_of_karpenter()
    assert (claim.launched, claim.registered, claim.initialized) == (True, True, True)
    assert not claim.ready_once, "Karpenter does not know this condition"
    assert claim.pool_name == "general"
    assert claim.zone.startswith("test-zone-")
    assert claim.capacity_type in ("spot", "on-demand")
    assert claim.instance_type.endswith("-amd64-linux")
    assert claim.provider_id == f"kwok://{claim.node_name}"


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        ("Launched", "launched"),
        ("Registered", "registered"),
        ("Initialized", "initialized"),
        ("ReadyOnce", "ready_once"),
        ("Rebooting", "rebooting"),
        ("Drifted", "drifted"),
        ("InstanceTerminating", "instance_terminating"),
    ],
)
def test_a_condition_counts_only_while_it_is_true(type_: str, name: str) -> None:
    assert getattr(with_condition(type_), name) is True
    assert getattr(with_condition(type_, "Unknown"), name) is False
    assert getattr(NodeClaim(), name) is False


def test_a_claim_that_a_user_wrote_has_no_pool_and_no_stamp() -> None:
    claim = NodeClaim()
    assert (claim.pool_name, claim.termination_stamp) == ("", None)
    assert claim.condition("Launched") is None


def test_the_stamp_is_handed_out_as_it_was_written() -> None:
    key = "karpenter.sh/nodeclaim-termination-timestamp"
    text = f'{{"metadata": {{"annotations": {{"{key}": "soon"}}}}}}'
    assert msgspec.json.decode(text, type=NodeClaim).termination_stamp == "soon"


def test_the_grace_period_tells_absent_from_zero() -> None:
    zero = msgspec.json.decode('{"spec": {"terminationGracePeriod": "0s"}}', type=NodeClaim)
    assert zero.spec.termination_grace_period == "0s"
    assert NodeClaim().spec.termination_grace_period is None
