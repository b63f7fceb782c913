"""Which Karpenter is in charge: read off its Deployment, or only looked at."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.beside.facts.karpenter import (
    DeploymentsUnlisted,
    KarpenterInCharge,
    KarpenterNotFound,
    KarpenterNotReady,
    KarpenterRollsOut,
    KarpentersElsewhere,
    KarpenterUnreadable,
    KarpenterUnsupported,
    NoPoliciesListed,
    SeveralKarpenters,
)
from tenure.core.beside.karpenter import karpenter_of
from tenure.core.beside.pools import KarpenterDecider
from tenure.core.beside.running import parse_gates, parse_release
from tenure.core.policy.deciders import decide_all
from tenure.core.reasons import Reason
from tenure.model.api.resource import DEPLOYMENTS, NODE_POOL_POLICIES
from tenure.model.settings import Settings
from tenure.model.snapshot.unreadable import stand_in
from tests.core.beside.scenes import karpenter
from tests.core.build import NOW, a_pool, fact_of
from tests.snapshots import snapshot_with

BESIDE = Settings(beside_karpenter=True)


def found(*deployments: Any, settings: Settings = BESIDE, **more: Any) -> Any:
    return karpenter_of(snapshot_with(*deployments, **more), settings)


@pytest.mark.parametrize(
    ("image", "label", "version"),
    [
        ("public.ecr.aws/karpenter/controller:1.6.3@sha256:01", "", "1.6"),
        ("registry:5000/karpenter:v1.15.0", "", "1.15"),
        ("registry:5000/karpenter", "1.9.1", "1.9"),
        ("karpenter@sha256:0123", "1.10.0", "1.10"),
        ("karpenter:team-build", "1.8.0", "1.8"),
        ("karpenter:1.15.0-rc.1", "", "1.15"),
    ],
)
def test_the_release_is_read_off_image_or_label(image: str, label: str, version: str) -> None:
    read = found(karpenter(image=image, labels={"app.kubernetes.io/version": label}))
    assert (read.version, read.problem) == (version, None)


@pytest.mark.parametrize("version", ["1.5.9", "1.16.0", "0.37.0", "2.0.0"])
def test_a_release_that_was_not_tested_is_only_looked_at(version: str) -> None:
    read = found(karpenter(image=f"karpenter:{version}"))
    assert read.problem == KarpenterUnsupported(read.version, "1.6", "1.15")


def test_without_a_deployment_nothing_is_known() -> None:
    assert isinstance(found().problem, KarpenterNotFound)
    other = karpenter(labels={"app.kubernetes.io/name": "metrics-server"})
    assert isinstance(found(other).problem, KarpenterNotFound)


def test_deployments_that_cannot_be_listed_or_read() -> None:
    unlisted = found(karpenter(), unlisted={DEPLOYMENTS: "403 Forbidden"})
    assert unlisted.problem == DeploymentsUnlisted("403 Forbidden")
    odd = stand_in(karpenter(), "spec is no object", field="spec")
    assert found(odd).problem == KarpenterUnreadable("kube-system/karpenter")
    tag = found(karpenter(image="karpenter:latest")).problem
    assert tag == KarpenterUnreadable("kube-system/karpenter", "karpenter:latest")


def test_several_releases_are_only_looked_at() -> None:
    read = found(karpenter(), karpenter("old", image="karpenter:1.6.0"))
    assert isinstance(read.problem, SeveralKarpenters)
    assert found(karpenter(), karpenter("again")).problem is None


def test_a_deployment_of_a_tenant_does_not_count_where_karpenter_runs_in_its_own_namespace() -> (
    None
):
    theirs = karpenter("theirs", image="karpenter:9.9.9", namespace="tenant")
    read = found(karpenter(), theirs)
    assert (read.version, read.problem, read.elsewhere) == ("1.15", None, ("tenant/theirs",))
    said = on_the_pool(karpenter(), theirs)
    assert fact_of(said, KarpentersElsewhere).deployments == ("tenant/theirs",)
    assert isinstance(found(theirs).problem, KarpenterUnsupported)
    elsewhere = karpenter(namespace="platform")
    assert isinstance(found(elsewhere, theirs).problem, SeveralKarpenters)


def test_one_that_is_scaled_to_nothing_does_not_hide_others() -> None:
    """It may be what an old installation has left, and the other one is in charge."""
    other = karpenter(image="karpenter:9.9.9", namespace="platform")
    assert isinstance(found(karpenter(replicas=0), other).problem, SeveralKarpenters)
    assert found(karpenter(replicas=0)).problem is None


def test_a_karpenter_outside_the_cluster_is_named_by_settings() -> None:
    settings = msgspec.structs.replace(
        BESIDE, karpenter_version="1.14", karpenter_feature_gates="NodeRepair=true"
    )
    read = found(settings=settings, unlisted={DEPLOYMENTS: "403 Forbidden"})
    assert (read.version, read.gates, read.problem) == ("1.14", (("NodeRepair", True),), None)
    assert found(settings=msgspec.structs.replace(BESIDE, karpenter_version="1.14")).gates is None


@pytest.mark.parametrize(
    ("container", "gates"),
    [
        ({}, ()),
        ({"env": {"FEATURE_GATES": "NodeRepair=true"}}, (("NodeRepair", True),)),
        (
            {"args": ("--feature-gates=NodeRepair=true,A=false",)},
            (("A", False), ("NodeRepair", True)),
        ),
        ({"args": ("-feature-gates", "NodeRepair=true")}, (("NodeRepair", True),)),
        (
            {
                "env": {"FEATURE_GATES": "NodeRepair=true"},
                "args": ("--feature-gates=NodeRepair=false",),
            },
            (("NodeRepair", False),),
        ),
        ({"env": {"FEATURE_GATES": "NodeRepair"}}, None),
    ],
)
def test_feature_gates(container: dict[str, Any], gates: Any) -> None:
    assert found(karpenter(**container)).gates == gates


def test_gates_in_another_object_are_not_known() -> None:
    deployment = karpenter(env={"FEATURE_GATES": ""})
    (container,) = deployment.spec.template.spec.containers
    hidden = msgspec.structs.replace(container.env[0], value_from={"configMapKeyRef": {}})
    changed = msgspec.structs.replace(container, env=(hidden,))
    template = msgspec.structs.replace(
        deployment.spec.template,
        spec=msgspec.structs.replace(deployment.spec.template.spec, containers=(changed,)),
    )
    spec = msgspec.structs.replace(deployment.spec, template=template)
    assert found(msgspec.structs.replace(deployment, spec=spec)).gates is None


@pytest.mark.parametrize("text", ["", "1", "latest", "1.15.0:1", "1." + "9" * 500, "a1.15"])
def test_what_is_no_release(text: str) -> None:
    assert parse_release(text) is None


@pytest.mark.parametrize("text", ["NodeRepair", "=true", "NodeRepair=maybe"])
def test_what_is_no_gate(text: str) -> None:
    assert parse_gates(text) is None


def on_the_pool(*objects: Any) -> Any:
    snapshot = snapshot_with(a_pool(), *objects)
    (verdict,) = decide_all(KarpenterDecider(BESIDE), snapshot, BESIDE, NOW)
    return verdict


def test_pools_say_which_karpenter_is_in_charge_or_why_it_is_not_known() -> None:
    known = on_the_pool(karpenter())
    assert known.reason is Reason.BESIDE_KARPENTER
    assert fact_of(known, KarpenterInCharge).release == "1.15"
    unknown = on_the_pool()
    assert unknown.reason is Reason.ONLY_LOOKS
    assert "--karpenter-version" in fact_of(unknown, KarpenterNotFound).remedy()


@pytest.mark.parametrize(("replicas", "ready"), [(0, 0), (2, 0), (0, 1)])
def test_without_a_ready_replica_karpenter_ends_nothing(replicas: int, ready: int) -> None:
    read = found(karpenter(replicas=replicas, ready=ready))
    assert read.problem is None, "levers go on"
    assert read.unsettled == KarpenterNotReady((("kube-system/karpenter", replicas),))
    assert found(karpenter(replicas=2, ready=1)).unsettled is None
    named = msgspec.structs.replace(BESIDE, karpenter_version="1.15")
    assert found(karpenter(replicas=replicas, ready=ready), settings=named).unsettled is not None
    assert found(settings=named).unsettled is None, "it runs outside the cluster"


def test_one_that_the_settings_name_is_not_stopped_by_a_deployment_of_a_tenant() -> None:
    named = msgspec.structs.replace(BESIDE, karpenter_version="1.15")
    for theirs in (karpenter(namespace="tenant", replicas=0), karpenter(namespace="tenant", old=1)):
        assert found(theirs, settings=named).unsettled is None


def test_one_ready_deployment_is_enough() -> None:
    assert found(karpenter(), karpenter("old", replicas=0)).unsettled is None


def test_while_it_is_rolled_out_gates_and_release_are_not_those_that_act() -> None:
    read = found(karpenter(old=1))
    assert read.unsettled == KarpenterRollsOut(("kube-system/karpenter",))
    unseen = karpenter()
    metadata = msgspec.structs.replace(unseen.metadata, generation=2)
    assert found(msgspec.structs.replace(unseen, metadata=metadata)).unsettled == read.unsettled
    named = msgspec.structs.replace(BESIDE, karpenter_version="1.15")
    assert found(karpenter(old=1), settings=named).unsettled == read.unsettled, "gates are read"
    gates = msgspec.structs.replace(named, karpenter_feature_gates="NodeRepair=false")
    assert found(karpenter(old=1), settings=gates).unsettled is None


def test_pools_say_that_karpenter_does_not_act() -> None:
    down = on_the_pool(karpenter(replicas=0))
    assert (down.reason, down.action) == (Reason.KARPENTER_NOT_READY, None)
    assert "is scaled to 0" in str(fact_of(down, KarpenterNotReady))
    rolls = on_the_pool(karpenter(old=1))
    assert rolls.reason is Reason.KARPENTER_ROLLS_OUT


def test_pools_say_that_policies_may_not_be_listed_and_which_right_is_missing() -> None:
    why = {NODE_POOL_POLICIES: '403 Forbidden: cannot list resource "nodepoolpolicies"'}
    snapshot = snapshot_with(a_pool(), karpenter(), unlisted=why)
    (verdict,) = decide_all(KarpenterDecider(BESIDE), snapshot, BESIDE, NOW)
    assert (verdict.reason, verdict.action) == (Reason.POLICIES_UNLISTED, None)
    fact = fact_of(verdict, NoPoliciesListed)
    assert 'cannot list resource "nodepoolpolicies"' in str(fact)
    assert "which the ClusterRole of the chart allows" in str(fact)
    assert "list and watch of nodepoolpolicies.tenure.dev" in fact.remedy()
