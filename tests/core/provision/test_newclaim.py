"""The manifest of a new claim: the pool's template, narrowed by the pods it is for."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.launchbreaker.ledger import launched_for
from tenure.core.marks.templatehash import field_hashes, hash_annotations
from tenure.core.provision.newclaim import claim_manifest, claim_name
from tenure.model.api import names
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.packing.result import PlannedClaim
from tests.core.build import a_pod, a_pool, a_type, units

SIZE_LABEL = "cloud.example.com/instance-size"


def planned(*requirements: Requirement, pods: tuple[str, ...] = ("uid-web",)) -> PlannedClaim:
    return PlannedClaim(
        pool="general",
        requirements=Requirements.of(requirements),
        instance_types=("small",),
        requests=units(cpu=1.5, memory=2**30, pods=2),
        pods=pods,
        price=50_000,
        instance_type="small",
        zone="zone-a",
        capacity_type="spot",
    )


PODS = {"uid-web": a_pod("web")}


def labels_of(*requirements: Requirement) -> Any:
    kinds = [a_type(labels={SIZE_LABEL: "4"})]
    manifest = claim_manifest(planned(*requirements), a_pool(), "general-x", kinds, PODS)
    return manifest["metadata"]["labels"]


@pytest.mark.parametrize("mark", sorted(names.MARKS))
def test_a_mark_of_what_is_under_way_is_not_taken_from_the_template(mark: str) -> None:
    """One such claim would replace another, or be taken back by the cloud, from its first moment."""
    pool = a_pool(template_meta={"annotations": {mark: "uid-of-another", "example.com/a": "b"}})
    manifest = claim_manifest(planned(), pool, "general-x", [a_type()], PODS)
    annotations = manifest["metadata"]["annotations"]
    assert annotations["example.com/a"] == "b"
    assert annotations.get(mark) != "uid-of-another"


def test_everything_of_the_template_is_in_it() -> None:
    pool = a_pool(
        template={
            "taints": [{"key": "batch", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "agent", "effect": "NoExecute"}],
            "terminationGracePeriod": "48h",
            "readinessTTL": "15m",
            "initializationTTL": "1h",
        },
        template_meta={
            "labels": {"team": "platform"},
            "annotations": {"example.com/owner": "me"},
        },
    )
    wanted = planned(Requirement.of(names.ZONE, "In", ["zone-a"]))
    assert claim_manifest(wanted, pool, "general-x", [a_type()], PODS) == {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": "general-x",
            "labels": {
                "karpenter.kwok.sh/kwoknodeclass": "default",
                "karpenter.sh/nodepool": "general",
                "team": "platform",
            },
            "annotations": {
                "example.com/owner": "me",
                "karpenter.sh/launched-for": launched_for(PODS.values()),
                "karpenter.sh/nodeclaim-min-values-relaxed": "false",
                **hash_annotations(field_hashes(pool.spec.template)),
                "karpenter.sh/nominated-pods": "uid-web",
            },
            "ownerReferences": [
                {
                    "apiVersion": "karpenter.sh/v1",
                    "kind": "NodePool",
                    "name": "general",
                    "uid": "uid-general",
                    "blockOwnerDeletion": True,
                }
            ],
            "finalizers": ["karpenter.sh/termination"],
        },
        "spec": {
            "requirements": [{"key": names.ZONE, "operator": "In", "values": ["zone-a"]}],
            "resources": {"requests": {"cpu": "1500m", "memory": "1Gi", "pods": "2"}},
            "nodeClassRef": {
                "group": "karpenter.kwok.sh",
                "kind": "KWOKNodeClass",
                "name": "default",
            },
            "taints": [{"key": "batch", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "agent", "effect": "NoExecute"}],
            "terminationGracePeriod": "48h",
            "expireAfter": "720h",
            "readinessTTL": "15m",
            "initializationTTL": "1h",
        },
    }


def test_what_the_template_leaves_out_is_left_to_the_defaults() -> None:
    pool = a_pool(template={"expireAfter": None})
    spec = claim_manifest(planned(), pool, "general-x", [], PODS)["spec"]
    assert spec.keys() == {"requirements", "resources", "nodeClassRef"}


@pytest.mark.parametrize(
    ("requirement", "value"),
    [
        pytest.param(Requirement.of("team", "In", ["b", "a"]), "a", id="one of several values"),
        pytest.param(Requirement.of("team", "Exists"), "0", id="any value at all"),
        pytest.param(Requirement.of("generation", "Gt", ["4"]), "5", id="a number in bounds"),
        pytest.param(Requirement.of("team", "NotIn", ["a"]), None, id="it may be missing"),
        pytest.param(Requirement.of("team", "DoesNotExist"), None, id="it must be missing"),
        pytest.param(Requirement("team"), None, id="nothing can satisfy it"),
        pytest.param(Requirement.of(names.ZONE, "In", ["z"]), None, id="every provider's own key"),
        pytest.param(Requirement.of(SIZE_LABEL, "In", ["4"]), None, id="this provider's own key"),
        pytest.param(Requirement.of(names.HOSTNAME, "In", ["h"]), None, id="the node's own name"),
    ],
)
def test_a_key_of_peoples_own_gets_one_value(requirement: Requirement, value: str | None) -> None:
    assert labels_of(requirement).get(requirement.key) == value


def test_the_templates_label_counts_more_than_any_value_a_requirement_allows() -> None:
    pool = a_pool(template_meta={"labels": {"team": "z"}})
    wanted = planned(Requirement.of("team", "In", ["a", "z"]))
    manifest = claim_manifest(wanted, pool, "general-x", [], PODS)
    assert manifest["metadata"]["labels"]["team"] == "z"


def test_a_name_follows_from_pool_and_pods_and_avoids_those_that_are_taken() -> None:
    first = claim_name(planned(), ())
    assert first == claim_name(planned(), ()) == "general-pq5rx"
    second = claim_name(planned(), {first})
    assert second not in (first, claim_name(planned(pods=("uid-other",)), ()))
    assert second.startswith("general-")


def test_a_replacement_for_the_same_pods_has_a_name_of_its_own() -> None:
    """Else it would have that of the first node of its pods, which may be gone for minutes only."""
    first = claim_name(planned(), ())
    replacements = {claim_name(planned(), (), replaced=uid) for uid in ("uid-a", "uid-b")}
    assert len(replacements - {first}) == 2
    assert claim_name(planned(), (), replaced="uid-a") in replacements
