"""Which node would do in place of another one, without a list of instance types."""

from __future__ import annotations

from typing import Any

from tenure.core.beside.replacing.facts import PodAsksForNode, TemplateExcludes
from tenure.core.beside.replacing.likeness import Likeness, likeness, requests_of
from tenure.core.disrupt.simulate import LeavingNode, leaving_node
from tenure.core.facts import Fact
from tenure.model.api import names
from tenure.model.api.nodeclaim import Requirement
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import PersistentVolumeClaimVolumeSource, Pod, Volume
from tests.core.build import a_claim, a_node, a_pod, a_pool, units

ZONE_A = {names.ZONE: "zone-a", names.ARCH: "amd64", names.OS: "linux"}
SPOT_OR_NOT = {"key": names.CAPACITY_TYPE, "operator": "In", "values": ["spot", "on-demand"]}
MOUNTED = Volume(
    name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="data")
)


def a_requirement(key: str, *values: str) -> Requirement:
    return Requirement(key=key, operator="In", values=values)


def a_leaving(
    *pods: Pod, labels: dict[str, str] | None = None, requirements: Any = ()
) -> LeavingNode:
    spec = {"requirements": tuple(requirements)}
    node = a_node(labels={**ZONE_A, **(labels or {})})
    return leaving_node(a_claim(spec=spec), node, pods or (a_pod(),))


def like(leaving: LeavingNode, pool: NodePool | None = None, **more: Any) -> Likeness:
    found = likeness(leaving, pool or a_pool(requirements=[SPOT_OR_NOT]), **more)
    assert isinstance(found, Likeness), found
    return found


def values(found: Likeness, key: str) -> set[str]:
    return set(found.requirements[key].listed) if key in found.requirements else set()


def why(leaving: LeavingNode, pool: NodePool) -> Fact:
    found = likeness(leaving, pool)
    assert isinstance(found, Fact)
    return found


def test_it_has_the_zone_and_the_architecture_of_the_old_node() -> None:
    found = like(a_leaving())
    assert {key: values(found, key) for key in ZONE_A} == {
        names.ZONE: {"zone-a"},
        names.ARCH: {"amd64"},
        names.OS: {"linux"},
    }
    assert values(found, names.CAPACITY_TYPE) == {"spot", "on-demand"}, "Karpenter chooses"


def test_it_has_what_karpenter_wrote_for_the_claim() -> None:
    types = a_requirement(names.INSTANCE_TYPE, "small", "large")
    found = like(a_leaving(requirements=[types]))
    assert values(found, names.INSTANCE_TYPE) == {"small", "large"}
    assert not found.template_only


def test_it_has_each_label_that_a_pod_asks_for() -> None:
    pod = a_pod(spec={"node_selector": {names.CAPACITY_TYPE: "spot"}})
    found = like(a_leaving(pod, labels={names.CAPACITY_TYPE: "spot"}))
    assert values(found, names.CAPACITY_TYPE) == {"spot"}


def test_where_the_template_has_changed_the_claims_own_requirements_are_left_out() -> None:
    pool = a_pool(requirements=[{"key": names.INSTANCE_TYPE, "operator": "In", "values": ["new"]}])
    found = like(a_leaving(requirements=[a_requirement(names.INSTANCE_TYPE, "old")]), pool)
    assert values(found, names.INSTANCE_TYPE) == {"new"}
    assert found.template_only
    assert found.zone == "zone-a"


def test_a_zone_that_the_template_forbids_is_left_open_unless_a_pod_has_a_volume() -> None:
    pool = a_pool(requirements=[{"key": names.ZONE, "operator": "In", "values": ["zone-b"]}])
    assert like(a_leaving(), pool).zone == "zone-b"
    bound = a_leaving(a_pod(spec={"volumes": (MOUNTED,)}))
    assert why(bound, pool) == TemplateExcludes("general", "node-a", names.ZONE, "zone-a")


def test_a_zone_in_outage_is_left_open_unless_a_pod_has_a_volume() -> None:
    assert like(a_leaving(), outage={"zone-a"}).zone == ""
    bound = a_leaving(a_pod(spec={"volumes": (MOUNTED,)}))
    assert like(bound, outage={"zone-a"}).zone == "zone-a"


def test_what_a_pod_needs_and_the_template_forbids_leaves_no_node() -> None:
    pool = a_pool(requirements=[{"key": names.CAPACITY_TYPE, "operator": "In", "values": ["spot"]}])
    pod = a_pod(spec={"node_selector": {names.CAPACITY_TYPE: "on-demand"}})
    found = why(a_leaving(pod, labels={names.CAPACITY_TYPE: "on-demand"}), pool)
    assert found == TemplateExcludes(
        "general", "node-a", names.CAPACITY_TYPE, "on-demand", "default/web"
    )


def test_a_pod_that_asks_for_the_node_itself_fits_on_no_other() -> None:
    pod = a_pod(spec={"node_selector": {names.HOSTNAME: "node-a"}})
    assert why(a_leaving(pod), a_pool()) == PodAsksForNode("default/web", "node-a")


def test_labels_of_users_keep_their_value_and_those_of_providers_are_the_providers() -> None:
    team = {"key": "example.com/team", "operator": "In", "values": ["web", "db"]}
    family = {"key": "karpenter.kwok.sh/family", "operator": "In", "values": ["m", "c"]}
    pool = a_pool(requirements=[team, family])
    labels = {"example.com/team": "db", "karpenter.kwok.sh/family": "m"}
    found = like(a_leaving(labels=labels), pool)
    assert values(found, "example.com/team") == {"db"}
    assert found.labels["example.com/team"] == "db"
    assert "karpenter.kwok.sh/family" not in found.labels


def test_the_labels_of_the_template_are_required_as_they_are_now() -> None:
    """The claim was made from an older template: it would drift at once with its label."""
    pool = a_pool(template_meta={"labels": {"team": "new"}})
    found = like(a_leaving(requirements=[a_requirement("team", "old")]), pool)
    assert found.template_only
    assert values(found, "team") == {"new"}


def test_a_least_number_of_values_that_cannot_be_reached_is_left_out() -> None:
    zones = {"key": names.ZONE, "operator": "In", "values": ["zone-a", "zone-b"], "minValues": 2}
    found = like(a_leaving(), a_pool(requirements=[zones]))
    assert found.requirements[names.ZONE].min_values is None


def test_it_is_large_enough_for_what_it_was_launched_for_and_for_what_is_there() -> None:
    claim = a_claim()  # 1 CPU, 1 Gi, 2 pods
    pods = [a_pod(str(n), requests={"cpu": "600m", "memory": "100Mi"}) for n in range(2)]
    daemon = a_pod("agent", owner="DaemonSet", requests={"cpu": "100m"})
    leaving = leaving_node(claim, a_node(), (*pods, daemon))
    found = requests_of(claim, (*leaving.pods, *leaving.staying))
    assert found["cpu"] == units(cpu=1.3)["cpu"]
    assert found["pods"] == units(pods=3)["pods"]
    assert found["memory"] == 2**30 * 10**9
