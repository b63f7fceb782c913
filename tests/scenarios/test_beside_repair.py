"""Beside Karpenter, in virtual time: nodes that never become Ready, and unhealthy ones, by policy.

No Karpenter runs here, so nothing finishes a deletion: a story ends with a claim that Tenure has stamped and
deleted. The full Tenure launches the nodes first. ``KWOKUnhealthy`` is tolerated for 30 s by the provider's word.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from tenure.model.api import names
from tenure.model.api import resource as r
from tenure.model.api.meta import read_instant
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import World
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Manifest,
    a_deployment,
    a_node_class,
    a_pool,
    apart,
)
from tests.scenarios.fleets import a_window
from tests.scenarios.karpenterinstalled import KARPENTER, install_karpenter, say_ready
from tests.scenarios.test_beside_karpenter import freeze
from tests.scenarios.test_pool_policies import a_policy

FORCEFUL = {"terminationMode": "Forceful", "maxUnhealthy": "100%"}
MARKS = (names.TERMINATION_BY, names.TERMINATION_BECAUSE)


def karpenter(gates: str = "") -> Manifest:
    made: dict[str, Any] = copy.deepcopy(dict(KARPENTER))
    if gates:
        container = made["spec"]["template"]["spec"]["containers"][0]
        container["args"] = [f"--feature-gates={gates}"]
    return made


def beside(*manifests: Mapping[str, Any], nodes: int = 3, gates: str = "") -> Story:
    """So many nodes with a pod each, that the full Tenure has launched."""
    web = a_deployment("web", replicas=nodes, affinity=apart())
    story = Story(a_node_class(), a_pool(), web)
    story.run(5 * MINUTE)
    for manifest in manifests:
        story.apply(manifest)
    install_karpenter(story, karpenter(gates))
    go_beside(story)
    return story


def go_beside(story: Story) -> None:
    settings = msgspec.structs.replace(story.options.settings, beside_karpenter=True)
    story.set_settings(settings)
    story.run(10 * SECOND)


def notes_of(thing: Any) -> dict[str, str]:
    return thing["metadata"].get("annotations") or {}


def leaving(story: Story) -> list[Any]:
    return [one for one in story.all(r.NODE_CLAIMS) if "deletionTimestamp" in one["metadata"]]


def unhealthy(story: Story, *numbers: int, condition: str = "KWOKUnhealthy") -> list[str]:
    """The claims of these nodes, in the order of their names."""
    claims = sorted(story.all(r.NODE_CLAIMS), key=lambda one: one["metadata"]["name"])
    chosen = [claims[number] for number in numbers or (0,)]
    for claim in chosen:
        story.kubelets.set_condition(claim["status"]["nodeName"], condition, "True", "Test")
    return [claim["metadata"]["name"] for claim in chosen]


def ended(story: Story, name: str, because: str) -> None:
    """Stamped by us, and deleted on that version."""
    claim = story.store.get(r.NODE_CLAIMS, "", name)
    found = notes_of(claim)
    assert [found.get(key) for key in MARKS] == ["tenure", because]
    stamp = read_instant(found[names.TERMINATION_TIMESTAMP])
    deleted = read_instant(claim["metadata"]["deletionTimestamp"])
    assert stamp is not None
    assert deleted is not None
    assert stamp <= deleted + SECOND
    assert names.FINALIZER in claim["metadata"]["finalizers"], "Karpenter removes it"


def counted(story: Story) -> dict[str, float]:
    """Claims that were disrupted, by the reason that metrics give."""
    name = "karpenter_nodeclaims_disrupted_total"
    found = (
        one for metric in story.controller.metrics.registry.collect() for one in metric.samples
    )
    return {one.labels["reason"]: one.value for one in found if one.name == name}


def claim_that_never_registers(name: str = "stuck") -> Manifest:
    """As Karpenter has launched it; no Node comes."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": {names.NODEPOOL: "general"},
            "finalizers": [names.FINALIZER],
        },
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "a"},
            "requirements": [],
        },
    }


def put_node(
    story: World,
    name: str = "stuck",
    *,
    registered: bool = True,
    labels: Mapping[str, str] = MappingProxyType({names.NODEPOOL: "general"}),
) -> None:
    """A claim of Karpenter's whose Node has registered, and is not Ready."""
    claim = claim_that_never_registers(name)
    claim["metadata"]["labels"] = dict(labels)
    story.apply(claim)
    at = story.now.isoformat()
    stages = ("Launched", "Registered") if registered else ("Launched",)
    conditions = [
        {"type": one, "status": "True", "reason": one, "message": "", "lastTransitionTime": at}
        for one in stages
    ]
    status = {"providerID": f"aws://{name}", "nodeName": f"node-{name}", "conditions": conditions}
    story.store.patch(r.NODE_CLAIMS, "", name, {"status": status}, subresource="status")
    if registered:
        own = {**labels, names.REGISTERED: "true"}
        node = {"metadata": {"name": f"node-{name}", "labels": own}}
        story.apply(
            {"apiVersion": "v1", "kind": "Node", **node, "spec": {"providerID": f"aws://{name}"}}
        )
        set_ready(story, "False", name)


def set_ready(story: World, status: str, name: str = "stuck", *, condition: str = "Ready") -> None:
    ready = {
        "type": condition,
        "status": status,
        "reason": "Test",
        "lastTransitionTime": story.now.isoformat(),
    }
    body = {"status": {"conditions": [ready]}}
    story.store.patch(r.NODES, "", f"node-{name}", body, subresource="status")


def initialize(story: World, name: str) -> None:
    """Karpenter says that the claim is initialized."""
    known = story.store.get(r.NODE_CLAIMS, "", name)["status"]["conditions"]
    up = {**known[-1], "type": "Initialized", "reason": "Initialized"}
    body = {"status": {"conditions": [*known, up]}}
    story.store.patch(r.NODE_CLAIMS, "", name, body, subresource="status")


def annotate(story: World, name: str, written: Mapping[str, str]) -> None:
    story.store.patch(r.NODE_CLAIMS, "", name, {"metadata": {"annotations": dict(written)}})


# -- time-outs -------------------------------------------------------------------------


def test_a_node_that_is_never_ready_ends_after_the_ttl_of_its_policy() -> None:
    with beside(a_policy(readinessTTL="5m")) as story:
        put_node(story)
        story.run(4.9 * MINUTE)
        assert not leaving(story)
        story.run(0.2 * MINUTE)
        ended(story, "stuck", "ReadinessTimeout")
        assert len(leaving(story)) == 1, "the others have been Ready"
        assert counted(story) == {"readiness_timeout": 1.0}
        story.checkers.assert_kept()


def test_without_a_policy_karpenters_own_times_are_the_only_ones() -> None:
    with beside() as story:
        put_node(story)
        put_node(story, "silent", registered=False)
        story.run(2 * HOUR)
        assert not leaving(story)
        story.checkers.assert_kept()


def test_a_node_that_never_registers_ends_earlier_than_karpenter_would() -> None:
    with beside(a_policy(readinessTTL="3m")) as story:
        put_node(story, registered=False)
        story.run(3.1 * MINUTE)
        ended(story, "stuck", "RegistrationTimeout")
        story.checkers.assert_kept()


def test_a_node_that_was_ready_for_a_moment_stays() -> None:
    with beside(a_policy(readinessTTL="5m")) as story:
        put_node(story)
        story.run(MINUTE)
        set_ready(story, "True")
        story.run(5 * SECOND)
        set_ready(story, "False")
        found = notes_of(story.store.get(r.NODE_CLAIMS, "", "stuck"))
        assert read_instant(found[names.READY_ONCE_AT]) is not None
        story.crash()
        story.run(HOUR)
        assert not leaving(story)
        assert "ReadyNoted" in story.reasons("NodeClaim/stuck")
        story.checkers.assert_kept()


def test_an_initialization_ttl_acts_where_the_block_is_forceful() -> None:
    with beside(a_policy(initializationTTL="2m", repair=FORCEFUL)) as story:
        put_node(story)
        set_ready(story, "True")
        story.run(1.9 * MINUTE)
        assert not leaving(story)
        story.run(0.3 * MINUTE)
        ended(story, "stuck", "InitializationTimeout")
        story.checkers.assert_kept()


def test_a_lost_node_is_noted_found_again_and_noted_again_until_its_ttl_is_over() -> None:
    with beside(a_policy(readinessTTL="5m")) as story:
        put_node(story)
        set_ready(story, "True")
        node = story.store.get(r.NODES, "", "node-stuck")
        story.run(10 * SECOND)
        story.store.delete(r.NODES, "", "node-stuck")
        story.run(MINUTE)
        assert names.NODE_LOST_AT in notes_of(story.store.get(r.NODE_CLAIMS, "", "stuck"))
        for key in ("uid", "resourceVersion", "creationTimestamp"):
            node["metadata"].pop(key)
        story.apply(node)
        story.run(10 * SECOND)
        assert names.NODE_LOST_AT not in notes_of(story.store.get(r.NODE_CLAIMS, "", "stuck"))
        story.store.delete(r.NODES, "", "node-stuck")
        story.run(4.5 * MINUTE)
        assert not leaving(story)
        story.run(MINUTE)
        ended(story, "stuck", "NodeLost")
        story.checkers.assert_kept()


# -- repair ----------------------------------------------------------------------------


def test_an_unhealthy_node_is_stamped_and_deleted_and_counted() -> None:
    with beside(a_policy(repair=FORCEFUL)) as story:
        (claim,) = unhealthy(story)
        story.run(25 * SECOND)
        assert not leaving(story)
        story.run(10 * SECOND)
        ended(story, claim, "NodeRepair")
        assert len(leaving(story)) == 1
        assert story.when("NodeRepair")
        assert counted(story) == {"unhealthy": 1.0}
        story.checkers.assert_kept()
        assert story.checkers.asked["unfounded deletion"]


def test_a_pool_that_asks_for_nothing_gets_nothing() -> None:
    with beside() as story:
        (claim,) = unhealthy(story)
        story.run(2 * HOUR)
        assert not leaving(story)
        assert "NodeRepairOff" in story.reasons(f"NodeClaim/{claim}")
        story.checkers.assert_kept()


def test_while_karpenter_repairs_it_is_karpenters_until_the_gate_is_off() -> None:
    with beside(a_policy(repair=FORCEFUL), gates="NodeRepair=true") as story:
        (claim,) = unhealthy(story)
        story.run(HOUR)
        assert not leaving(story)
        assert "NodeRepairLeftToKarpenter" in story.reasons(f"NodeClaim/{claim}")
        install_karpenter(story, karpenter("NodeRepair=false"))
        story.run(10 * SECOND)
        ended(story, claim, "NodeRepair")
        story.checkers.assert_kept()


def test_an_unknown_karpenter_means_that_nothing_happens() -> None:
    with beside(a_policy(repair=FORCEFUL, readinessTTL="5m")) as story:
        story.store.delete(r.DEPLOYMENTS, "kube-system", "karpenter")
        put_node(story)
        (claim,) = unhealthy(story)
        story.run(HOUR)
        assert not leaving(story)
        assert "LeverWaits" in story.reasons(f"NodeClaim/{claim}")
        story.checkers.assert_kept()


@pytest.mark.parametrize(
    ("state", "reason"),
    [({"ready": 0}, "KarpenterNotReady"), ({"old": 1}, "KarpenterRollsOut")],
)
def test_nothing_ends_while_karpenter_does_not_act(state: dict[str, Any], reason: str) -> None:
    """A claim that is deleted then stays for ever. Levers go on: a window may begin meanwhile."""
    with beside(a_policy(repair=FORCEFUL)) as story:
        say_ready(story, **state)
        (name,) = unhealthy(story)
        story.run(20 * MINUTE)
        assert leaving(story) == []
        assert names.TERMINATION_TIMESTAMP not in notes_of(story.store.get(r.NODE_CLAIMS, "", name))
        assert story.reasons("NodePool/*").count(reason) == 1, "said once"
        story.apply(freeze(0 * MINUTE, 60 * MINUTE))
        story.run(MINUTE)
        assert all(names.DO_NOT_DISRUPT in notes_of(node) for node in story.all(r.NODES))
        say_ready(story)
        story.run(2 * MINUTE)
        assert [one["metadata"]["name"] for one in leaving(story)] == [name]


def test_a_reboot_is_left_to_karpenter() -> None:
    with beside(a_policy(repair=FORCEFUL)) as story:
        (claim,) = unhealthy(story, condition="KWOKRebootRequired")
        story.run(HOUR)
        assert not leaving(story)
        assert "NodeRepairLeftToKarpenter" in story.reasons(f"NodeClaim/{claim}")
        story.checkers.assert_kept()


def test_a_window_holds_repair_and_not_a_time_out() -> None:
    freeze = a_window("freeze", actions=["Repair"])
    with beside(a_policy(repair=FORCEFUL, readinessTTL="5m"), freeze) as story:
        put_node(story)
        (claim,) = unhealthy(story)
        story.run(10 * MINUTE)
        assert [one["metadata"]["name"] for one in leaving(story)] == ["stuck"]
        assert "DisruptionBlocked" in story.reasons(f"NodeClaim/{claim}")
        story.store.delete(r.MAINTENANCE_WINDOWS, "", "freeze")
        story.run(10 * SECOND)
        ended(story, claim, "NodeRepair")
        story.checkers.assert_kept()


def test_a_veto_holds() -> None:
    with beside(a_policy(repair=FORCEFUL)) as story:
        (claim,) = unhealthy(story)
        vetoed = {"metadata": {"annotations": {names.DO_NOT_REPAIR: "true"}}}
        story.store.patch(r.NODE_CLAIMS, "", claim, vetoed)
        story.run(HOUR)
        assert not leaving(story)
        assert "DoNotRepair" in story.reasons(f"NodeClaim/{claim}")
        story.checkers.assert_kept()


def test_the_breaker_of_the_pool_holds() -> None:
    with beside(a_policy(repair=FORCEFUL | {"maxUnhealthy": "1"}), nodes=4) as story:
        claims = unhealthy(story, 0, 1)
        story.run(HOUR)
        assert not leaving(story)
        assert "NodeRepairBlocked" in story.reasons(f"NodeClaim/{claims[0]}")
        story.checkers.assert_kept()


def test_a_node_that_recovers_between_stamp_and_deletion_loses_the_stamp() -> None:
    with beside(a_policy(repair=FORCEFUL)) as story:
        (claim,) = unhealthy(story)
        node = story.store.get(r.NODE_CLAIMS, "", claim)["status"]["nodeName"]

        def recover(type_: str, changed: Any, old: Any) -> None:
            if names.TERMINATION_BY in notes_of(changed) and changed["metadata"]["name"] == claim:
                story.environment.soon(
                    partial(story.kubelets.set_condition, node, "KWOKUnhealthy", "False", "Test")
                )

        story.store.subscribe(r.NODE_CLAIMS, recover)
        story.run(5 * MINUTE)
        found = notes_of(story.store.get(r.NODE_CLAIMS, "", claim))
        assert not leaving(story)
        assert not {names.TERMINATION_TIMESTAMP, *MARKS} & set(found)
        assert "StaleTerminationTimestamp" in story.reasons(f"NodeClaim/{claim}")
        story.checkers.assert_kept()


def test_tenure_that_is_gone_forces_nothing() -> None:
    with beside(a_policy(repair=FORCEFUL, readinessTTL="5m")) as story:
        story.crash(stay_down=True)
        put_node(story)
        unhealthy(story)
        story.run(24 * HOUR)
        assert not leaving(story)
        story.start()
        story.run(timedelta(seconds=20))
        assert len(leaving(story)) == 2
        story.checkers.assert_kept()
