"""The installed CRDs of Karpenter's kinds: v1 is served or Tenure only looks, and whose they are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.beside.crds import NAMES, crds_of
from tenure.core.beside.facts.karpenter import (
    CrdIsOurs,
    CrdNotServed,
    CrdsUnread,
    KarpenterInCharge,
)
from tenure.core.beside.leftover.incharge import InChargeDecider
from tenure.core.beside.memory import MemoryDecider
from tenure.core.beside.pools import KarpenterDecider
from tenure.core.beside.repair import RepairBesideDecider
from tenure.core.decision import Verdict
from tenure.core.policy.deciders import decide_all
from tenure.core.reasons import Reason
from tenure.model.api.deployment import CustomResourceDefinition
from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import CRDS, NODE_POOLS
from tenure.model.snapshot.kinds import decode
from tenure.model.snapshot.snapshot import Change
from tenure.schema.structure.crd import CUSTOM_KINDS, generate
from tests.core.beside.scenes import SETTINGS, verdict_on
from tests.core.beside.test_levers import OPEN
from tests.core.build import FOREIGN, NOW, REGISTERED, a_claim, a_node, a_pool, fact_of
from tests.snapshots import snapshot_with


def crd(name: str, *served: str, spec: tuple[str, ...] = ()) -> ApiObject:
    properties: dict[str, Any] = {"spec": {"properties": {field: {} for field in spec}}}
    versions = [
        {
            "name": version,
            "served": version in served,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        }
        for version in ("v1", "v1beta1")
    ]
    return decode(
        CRDS, msgspec.json.encode({"metadata": {"name": name}, "spec": {"versions": versions}})
    )


def installed(*served: str, **more: Any) -> list[ApiObject]:
    return [crd(name, *served, **more) for name in NAMES]


def on_pool(*objects: ApiObject, **more: Any) -> Verdict:
    snapshot = snapshot_with(a_pool(), *objects, **more)
    (verdict,) = decide_all(KarpenterDecider(SETTINGS), snapshot, SETTINGS, NOW)
    return verdict


def test_where_v1_is_served_levers_are_set() -> None:
    verdict = on_pool(*installed("v1"))
    assert verdict.reason is Reason.BESIDE_KARPENTER
    assert [type(fact) for fact in verdict.facts] == [KarpenterInCharge]
    assert verdict_on(a_node(), a_claim(), OPEN, *installed("v1")).reason is Reason.LEVER_SET


@pytest.mark.parametrize("served", [(), ("v1beta1",)])
def test_where_it_is_not_tenure_only_looks(served: tuple[str, ...]) -> None:
    one = crd(NAMES[0], "v1"), crd(NAMES[1], *served)
    verdict = on_pool(*one)
    assert verdict.reason is Reason.ONLY_LOOKS
    assert fact_of(verdict, CrdNotServed) == CrdNotServed(NAMES[1], "v1", served)
    lever = verdict_on(a_node(), a_claim(), OPEN, *one)
    assert (lever.reason, lever.action) == (Reason.LEVER_WAITS, None)


def test_where_they_cannot_be_read_the_release_alone_counts_and_that_is_said() -> None:
    verdict = on_pool(unlisted={CRDS: "403 Forbidden"})
    assert verdict.reason is Reason.BESIDE_KARPENTER
    assert fact_of(verdict, CrdsUnread).problem == "403 Forbidden"


def test_a_crd_of_tenures_is_named() -> None:
    assert fact_of(on_pool(*installed("v1", spec=("repair",))), CrdIsOurs) == CrdIsOurs()


def test_the_crds_that_tenure_prints_are_known_as_its_own() -> None:
    (ours,) = (
        one
        for one in generate(CUSTOM_KINDS)
        if one["metadata"]["name"] == f"{NODE_POOLS.plural}.karpenter.sh"
    )
    read = decode(CRDS, msgspec.json.encode(ours))
    assert isinstance(read, CustomResourceDefinition)
    assert crds_of(snapshot_with(read)).ours


@pytest.mark.parametrize(
    "decider", [MemoryDecider(SETTINGS), RepairBesideDecider(SETTINGS), InChargeDecider(SETTINGS)]
)
def test_what_depends_on_the_crds_is_asked_again_when_they_change(decider: Any) -> None:
    """Which Karpenter is in charge depends on them; its verdicts would stay as they were."""
    snapshot = snapshot_with(a_pool(ref=FOREIGN), a_claim("a", stage=REGISTERED), a_node())
    change = Change(CRDS, "nodepools.karpenter.sh", None, None)
    assert set(decider.keys(snapshot)) == set(decider.touched(change, snapshot)) != set()
