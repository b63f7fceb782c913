"""Whether a claim still matches its pool's template."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.claim.drift import DriftDecider
from tenure.core.marks.templatehash import HASH_VERSION, template_hash
from tenure.core.reasons import Reason
from tenure.model.api.names import NODEPOOL_HASH, NODEPOOL_HASH_VERSION
from tenure.model.api.nodepool import NodePool
from tests.core.build import (
    FOREIGN,
    a_claim,
    a_leaving_claim,
    a_pool,
    body_of,
    condition,
    evaluated,
    said,
)

DECIDER = DriftDecider()


def hashes(value: str, version: str = HASH_VERSION) -> dict[str, Any]:
    return {"annotations": {NODEPOOL_HASH: value, NODEPOOL_HASH_VERSION: version}}


def stamped(pool: NodePool) -> NodePool:
    """As the pool's own decider writes it."""
    now = hashes(template_hash(pool.spec.template))
    metadata = msgspec.structs.replace(pool.metadata, **now)
    return msgspec.structs.replace(pool, metadata=metadata)


BEFORE = template_hash(a_pool().spec.template)


@pytest.mark.parametrize(
    ("template", "drifts"),
    [
        pytest.param({"terminationGracePeriod": "15m"}, True, id="a grace period is set"),
        pytest.param({"terminationGracePeriod": "0s"}, True, id="to nothing at all"),
        pytest.param({"readinessTTL": "45m"}, False, id="a TTL drifts nothing"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_a_changed_template_drifts_its_nodes(template: dict[str, Any], drifts: bool) -> None:
    told = evaluated(DECIDER, stamped(a_pool(template=template)), a_claim(**hashes(BEFORE)))
    assert [verdict.reason for verdict in told] == ([Reason.DRIFTED] if drifts else [])
    if drifts:
        assert said(told[0])["Drifted"] == ("True", "NodePoolDrifted")
        assert (
            "the template of NodePool general has changed since the claim was created"
            in told[0].message
        )


def test_a_change_that_is_taken_back_undrifts_them() -> None:
    claim = a_claim(conditions=[condition("Drifted", reason="NodePoolDrifted")], **hashes(BEFORE))
    (verdict,) = evaluated(DECIDER, stamped(a_pool()), claim)
    assert said(verdict)["Drifted"] == ("False", "NotDrifted")


@pytest.mark.parametrize("version", ["v2", ""])
def test_a_hash_of_another_version_is_renewed_and_drifts_nothing(version: str) -> None:
    (verdict,) = evaluated(DECIDER, stamped(a_pool()), a_claim(**hashes("1234", version)))
    assert verdict.reason is Reason.HASH_RENEWED
    assert body_of(verdict)["metadata"]["annotations"] == hashes(BEFORE)["annotations"]


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(a_claim(), id="made by hand, without a hash"),
        pytest.param(a_claim(stage=0, **hashes("1")), id="not launched"),
        pytest.param(a_leaving_claim(**hashes("1")), id="leaving"),
        pytest.param(a_claim(ref=FOREIGN, **hashes("1")), id="another provider's"),
    ],
)
def test_nothing_is_reported_about(claim: Any) -> None:
    assert evaluated(DECIDER, stamped(a_pool()), claim) == []


def test_until_the_pool_has_its_own_hash_nothing_is_compared() -> None:
    assert evaluated(DECIDER, a_pool(), a_claim(**hashes("1"))) == []
