"""Beside Karpenter, in virtual time: levers go on and off as windows open and close.

No Karpenter runs here. The full Tenure launches the nodes first; then an operator starts it again beside
Karpenter, and from then on it must write nothing but levers. ``tests/real/beside`` has the real Karpenter.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tenure.model.api import names
from tenure.model.api import resource as r
from tenure.model.api.meta import format_time
from tenure.ports.outcome import Ended
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import DEFAULT_EPOCH
from tests.builders import a_cluster, a_deployment
from tests.scenarios.karpenterinstalled import install_karpenter

MINUTE = timedelta(minutes=1)
LEVER = (
    names.DO_NOT_DISRUPT,
    names.DO_NOT_DISRUPT_BY,
    names.DO_NOT_DISRUPT_BECAUSE,
    names.DO_NOT_DISRUPT_UNTIL,
)


def freeze(begins: timedelta, ends: timedelta, name: str = "freeze") -> Mapping[str, Any]:
    dates = {
        "from": format_time(DEFAULT_EPOCH + begins),
        "until": format_time(DEFAULT_EPOCH + ends),
    }
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "MaintenanceWindow",
        "metadata": {"name": name},
        "spec": {"dates": [dates], "actions": ["Drift", "Consolidation"]},
    }


def beside(*manifests: Mapping[str, Any], karpenter: bool = True, spread: bool = False) -> Story:
    """A node that the full Tenure has launched, ten minutes after the start; ``spread``: four of them."""
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }
            ]
        }
    }
    web = a_deployment(replicas=4, affinity=apart) if spread else a_deployment(replicas=12)
    story = Story(*a_cluster(web))
    story.run(9 * MINUTE)
    for manifest in manifests:
        story.apply(manifest)
    if karpenter:
        install_karpenter(story)
    settings = msgspec.structs.replace(story.options.settings, beside_karpenter=True)
    story.set_settings(settings)
    story.run(1 * MINUTE)
    return story


def levers(story: Story) -> list[dict[str, str]]:
    """Of each Node: the annotations that belong to the lever."""
    found = []
    for node in story.all(r.NODES):
        annotations = node["metadata"].get("annotations") or {}
        found.append({key: annotations[key] for key in LEVER if key in annotations})
    assert found
    return found


def test_levers_go_on_when_a_window_opens_and_off_when_it_closes() -> None:
    with beside(freeze(20 * MINUTE, 60 * MINUTE)) as story:
        nodes = len(story.all(r.NODES))
        assert not any(levers(story))
        story.run_until(DEFAULT_EPOCH + 20.1 * MINUTE)
        assert {one[names.DO_NOT_DISRUPT] for one in levers(story)} == {"true"}
        assert levers(story)[0][names.DO_NOT_DISRUPT_UNTIL] == "2026-01-05T09:00:00Z"
        assert levers(story)[0][names.DO_NOT_DISRUPT_BECAUSE] == "MaintenanceWindow freeze"
        story.run_until(DEFAULT_EPOCH + 59.9 * MINUTE)
        assert all(levers(story))
        story.run_until(DEFAULT_EPOCH + 60.1 * MINUTE)
        assert not any(levers(story))
        assert len(story.when("LeverSet")) == len(story.when("LeverRemoved")) == nodes


def test_nothing_but_levers_and_the_status_of_windows_is_written() -> None:
    with beside(freeze(20 * MINUTE, 60 * MINUTE)) as story:
        watched = (r.NODES, r.NODE_CLAIMS, r.NODE_POOLS, r.PODS)
        before = {kind: [_without_levers(one) for one in story.all(kind)] for kind in watched}
        story.run_until(DEFAULT_EPOCH + 30 * MINUTE)
        assert all(levers(story))
        after = {kind: [_without_levers(one) for one in story.all(kind)] for kind in watched}
        assert after == before
        assert story.checkers.asked["beyond levers"] >= len(levers(story))
        window = story.the(r.MAINTENANCE_WINDOWS)
        assert window["status"]["nextChange"] == "2026-01-05T09:00:00Z"


def _without_levers(thing: Any) -> Any:
    metadata = dict(thing["metadata"])
    kept = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in LEVER}
    for key in ("resourceVersion", "managedFields", "annotations"):
        metadata.pop(key, None)
    if thing.get("kind") == "Node":  # Kubelets report every few seconds.
        return metadata, kept, thing["spec"]
    return metadata, kept, thing["spec"], thing.get("status")


def test_a_crash_at_any_time_leaves_whole_levers_and_the_next_start_goes_on() -> None:
    with beside(freeze(10 * MINUTE, 60 * MINUTE)) as story:
        story.crash(stay_down=True)
        story.run_until(DEFAULT_EPOCH + 70 * MINUTE)
        assert all(set(one) == set(LEVER) for one in levers(story)), "blocked, never forced"
        story.start()
        story.run(1 * MINUTE)
        assert not any(levers(story))


def test_a_window_that_opened_while_tenure_was_down_counts_at_its_start() -> None:
    with beside(freeze(30 * MINUTE, 60 * MINUTE)) as story:
        story.crash(stay_down=True)
        story.run_until(DEFAULT_EPOCH + 40 * MINUTE)
        assert not any(levers(story))
        story.start()
        story.run(1 * MINUTE)
        assert all(levers(story))


def test_without_a_known_karpenter_it_only_looks() -> None:
    with beside(freeze(0 * MINUTE, 60 * MINUTE), karpenter=False) as story:
        assert not any(levers(story))
        assert story.reasons("NodePool/*")[-1] == "OnlyLooks"
        install_karpenter(story)
        story.run(1 * MINUTE)
        assert all(levers(story))
        assert story.reasons("NodePool/*")[-1] == "BesideKarpenter"
        story.store.delete(r.DEPLOYMENTS, "kube-system", "karpenter")
        story.run_until(DEFAULT_EPOCH + 90 * MINUTE)
        assert all(levers(story)), "those that are there stay"


def test_a_users_annotation_outlives_every_window() -> None:
    with beside(freeze(20 * MINUTE, 60 * MINUTE)) as story:
        name = story.the(r.NODES)["metadata"]["name"]
        users = {"metadata": {"annotations": {names.DO_NOT_DISRUPT: "true"}}}
        story.store.patch(r.NODES, "", name, users)
        story.run_until(DEFAULT_EPOCH + 70 * MINUTE)
        found = story.store.get(r.NODES, "", name)["metadata"]["annotations"]
        assert {key: found.get(key) for key in LEVER} == {
            **dict.fromkeys(LEVER),
            names.DO_NOT_DISRUPT: "true",
        }


def test_a_user_who_edits_the_value_in_the_window_keeps_it() -> None:
    with beside(freeze(10 * MINUTE, 60 * MINUTE)) as story:
        name = story.the(r.NODES)["metadata"]["name"]
        users = {"metadata": {"annotations": {names.DO_NOT_DISRUPT: "false"}}}
        story.store.patch(r.NODES, "", name, users)
        story.run_until(DEFAULT_EPOCH + 70 * MINUTE)
        found = story.store.get(r.NODES, "", name)["metadata"]["annotations"]
        assert {key: found[key] for key in LEVER if key in found} == {names.DO_NOT_DISRUPT: "false"}
        assert "LeverImpossible" in story.reasons(f"Node/{name}")


@pytest.mark.parametrize("value", ["30m"])
def test_a_duration_on_a_claim_protects_its_node_and_ends(value: str) -> None:
    with beside() as story:
        claim = story.the(r.NODE_CLAIMS)
        users = {"metadata": {"annotations": {names.DO_NOT_DISRUPT: value}}}
        story.store.patch(r.NODE_CLAIMS, "", claim["metadata"]["name"], users)
        story.run(1 * MINUTE)
        assert sum(map(bool, levers(story))) == 1
        story.run(31 * MINUTE)
        assert not any(levers(story))


def test_a_node_whose_claim_is_gone_loses_its_lever_in_a_window_too() -> None:
    """As one has that registers after its claim was deleted; no owner takes it along."""
    with beside(freeze(5 * MINUTE, 40 * MINUTE)) as story:
        (claim,), (node,) = story.all(r.NODE_CLAIMS), story.all(r.NODES)
        orphan = {"metadata": {"ownerReferences": None}}
        story.store.patch(r.NODES, "", node["metadata"]["name"], orphan)
        body = {"metadata": {"finalizers": None}}
        story.store.patch(r.NODE_CLAIMS, "", claim["metadata"]["name"], body)
        story.store.delete(r.NODE_CLAIMS, "", claim["metadata"]["name"])
        assert all(levers(story))
        story.run(1 * MINUTE)
        assert story.all(r.NODE_CLAIMS) == []
        assert not any(levers(story))
        assert not [one for one in story.history.entries if one.ended is Ended.VETOED]
        assert story.checkers.violations == []
