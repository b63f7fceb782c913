"""A fleet taken over from Karpenter 1.15 is in service and not changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tenure.core.claim.decider import LifecycleDecider
from tenure.core.decision import Verdict
from tenure.core.drift.decider import DriftDecider
from tenure.core.drift.facts import FieldChanged, TemplateChanged
from tenure.core.pool.status import PoolDecider
from tenure.core.provision.knownnodes import nodes_with_capacity
from tenure.core.reasons import Reason
from tenure.core.terminate.decider import TerminationDecider
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.kinds import decode
from tenure.providers.kwok.catalogue import built_in_types
from tenure.sim.apiserver.objects.kinds import BY_KIND
from tests.core.build import NOW, body_of, evaluated, fact_of, said
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


def test_nothing_has_drifted_and_nothing_is_written() -> None:
    """Hours after the take-over, too, when instance types count."""
    known = {"KWOKNodeClass/default": built_in_types()}
    for now in (NOW, datetime(2027, 1, 1, tzinfo=UTC)):
        assert evaluated(DriftDecider(), *FLEET, now=now, instance_types=known) == []


def test_a_change_of_its_pool_drifts_it_and_names_the_field() -> None:
    claims = [one for one in FLEET if isinstance(one, NodeClaim) and one.pool_name == "general"]
    (pool,) = (one for one in FLEET if isinstance(one, NodePool) and one.name == "general")
    spec = replace(pool.spec.template.spec, expire_after="24h")
    changed = replace(
        pool, spec=replace(pool.spec, template=replace(pool.spec.template, spec=spec))
    )
    verdicts = evaluated(DriftDecider(), changed, *claims)
    assert len(verdicts) == len(claims) > 0
    assert {fact_of(verdict, TemplateChanged).fields for verdict in verdicts} == {
        (FieldChanged("spec.expireAfter", "720h → 24h"),)
    }


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
