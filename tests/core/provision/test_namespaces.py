"""Affinity may select namespaces by their labels: these are read from the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.decision import Create, Verdict
from tenure.core.policy.deciders import decide_all
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.provision.facts import NamespacesUnlisted
from tenure.core.provision.placement import CLUSTER
from tenure.core.reasons import Reason
from tenure.model.api.pod import (
    Affinity,
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
)
from tenure.model.api.resource import NAMESPACES
from tenure.model.api.workload import Namespace
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Change
from tenure.packing.facts import NamespacesUnknown
from tests.core.build import (
    NOW,
    SETTINGS,
    a_class,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    a_type,
    about,
    meta,
)
from tests.snapshots import snapshot_with

DECIDER = ProvisionDecider()
TYPES = {"KWOKNodeClass/default": (a_type(),)}


def avoiding(**team: str) -> dict[str, Any]:
    """Pods of any app, in namespaces with these labels, are not on the same node."""
    term = PodAffinityTerm(
        topology_key="kubernetes.io/hostname",
        label_selector=LabelSelector(),
        namespace_selector=LabelSelector(match_labels=team),
    )
    required = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    return {"affinity": Affinity(pod_anti_affinity=required)}


def a_namespace(name: str = "default", **labels: str) -> Namespace:
    return Namespace(metadata=meta(name, labels=labels))


def verdict(*objects: Any, **more: Any) -> Verdict:
    shy = a_pending_pod("shy", requests={"cpu": "1"}, spec=avoiding(team="red"))
    node, there = a_node(), a_pod("other", requests={"cpu": "1"})
    seen = snapshot_with(
        a_class(),
        a_pool(),
        node,
        there,
        shy,
        *objects,
        observations=Observations(instance_types=TYPES),
        **more,
    )
    return about(decide_all(DECIDER, seen, SETTINGS, NOW), "Pod/default/shy")


def test_a_pod_keeps_off_namespaces_with_these_labels_and_off_no_others() -> None:
    assert "NodeClaim" in verdict(a_namespace(team="red")).message
    assert "fits Node node-a" in verdict(a_namespace(team="blue")).message


def test_without_the_right_to_list_namespaces_the_pod_is_told() -> None:
    found = verdict(unlisted={NAMESPACES: "forbidden"})
    assert found.reason is Reason.FAILED_SCHEDULING
    assert found.facts == (NamespacesUnknown("team In [red]"), NamespacesUnlisted("forbidden"))
    assert not isinstance(found.action, Create)


@pytest.mark.parametrize(
    ("old", "new", "touched"),
    [
        (None, a_namespace(team="red"), True),
        (a_namespace(team="blue"), a_namespace(team="red"), True),
        (a_namespace(team="red"), None, True),
        (a_namespace(team="red"), a_namespace(team="red"), False),
    ],
)
def test_only_labels_of_a_namespace_matter(
    old: Namespace | None, new: Namespace | None, touched: bool
) -> None:
    change = Change(NAMESPACES, "default", old, new)
    assert list(DECIDER.touched(change, snapshot_with())) == [CLUSTER] * touched
