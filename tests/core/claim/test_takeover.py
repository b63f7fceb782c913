"""A fleet taken over from Karpenter 1.15 is in service and not changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.claim.decider import LifecycleDecider
from tenure.core.decision import Verdict
from tenure.core.pool.status import PoolDecider
from tenure.core.provision.supply import nodes_with_capacity
from tenure.core.reasons import Reason
from tenure.core.terminate.decider import TerminationDecider
from tenure.model.api.meta import ApiObject
from tenure.model.snapshot.kinds import decode
from tenure.sim.apiserver.objects.kinds import BY_KIND
from tests.core.build import body_of, evaluated, said
from tests.folders import DATA
from tests.snapshots import snapshot_with


def objects(name: str) -> list[ApiObject]:
    found = []
    for line in (DATA / name).read_bytes().splitlines():
        about: Any = msgspec.json.decode(line)
        found.append(decode(BY_KIND[about["apiVersion"], about["kind"]], line))
    return found


FLEET = objects("karpenter-1.15-custom-kinds.jsonl") + objects("karpenter-1.15-nodes.jsonl")
POOLS = {verdict.subject.name: verdict for verdict in evaluated(PoolDecider(), *FLEET)}


def test_every_claim_is_in_service_and_nothing_is_written() -> None:
    verdicts = evaluated(LifecycleDecider(), *FLEET)
    assert len(verdicts) == 6
    assert {(verdict.reason, verdict.action) for verdict in verdicts} == {(Reason.IN_SERVICE, None)}


def test_no_node_is_terminated() -> None:
    assert evaluated(TerminationDecider(), *FLEET) == []


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_its_pools_keep_hash_size_and_conditions_and_get_only_ours_on_top(pool: Verdict) -> None:
    assert pool.reason is Reason.POOL_STATUS_CHANGED
    assert body_of(pool)["status"].keys() == {"conditions"}
    ours = {"DisruptionValid": ("True", "DisruptionValid"), "RepairValid": ("True", "RepairValid")}
    assert ours.items() <= said(pool).items()
    written = body_of(pool)["status"]["conditions"]
    fresh = [entry["type"] for entry in written if "lastTransitionTime" not in entry]
    assert fresh == ["DisruptionValid", "RepairValid"]


def test_its_nodes_take_pods() -> None:
    assert all(node.initialized for node in nodes_with_capacity(snapshot_with(*FLEET)))
