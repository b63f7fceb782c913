"""Which pods can change places."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import NOTHING_KEPT
from tenure.packing.demand.alike import are_alike, can_change_places

ZONE = "topology.kubernetes.io/zone"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def a_pod(name: str = "web", *, nominated: str = "", **spec: Any) -> Pod:
    status = {"nominatedNodeName": nominated}
    given = {"metadata": {"name": name, "uid": name}, "spec": spec, "status": status}
    return msgspec.convert(given, Pod)


def sized(cpu: str, **more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}, **more}]}


def spread(app: str, key: str = ZONE, **fields: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    return {
        "topologySpreadConstraints": [{"topologyKey": key, "labelSelector": selector, **fields}]
    }


def apart(app: str, kind: str = "podAntiAffinity", strength: str = _REQUIRED) -> dict[str, Any]:
    term: dict[str, Any] = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    term = {"weight": 1, "podAffinityTerm": term} if strength == _PREFERRED else term
    return {"affinity": {kind: {strength: [term]}}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({}, {}, id="equal pods"),
        pytest.param(sized("1"), sized("8"), id="pods of different size"),
        pytest.param(spread("a"), spread("b"), id="each spread among those of its own workload"),
        pytest.param(apart("a"), apart("b"), id="each apart from those of its own workload"),
        pytest.param({"priority": 1}, {"priority": 9}, id="pods of different priority"),
        pytest.param({}, spread("a", whenUnsatisfiable="ScheduleAnyway"), id="a soft spread"),
        pytest.param({}, apart("a", "podAffinity", _PREFERRED), id="a preference"),
    ],
)
def test_these_can_change_places(one: Any, other: Any) -> None:
    assert are_alike([a_pod("a", **one), a_pod("b", **other)], NOTHING_KEPT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"nodeSelector": {ZONE: "a"}}, {}, id="one may run in one zone only"),
        pytest.param({"tolerations": [{"operator": "Exists"}]}, {}, id="one tolerates a taint"),
        pytest.param(spread("a"), {}, id="one is spread"),
        pytest.param(spread("a"), spread("b", "rack"), id="spread over other domains"),
        pytest.param(spread("a"), spread("b", maxSkew=2), id="spread less evenly"),
        pytest.param(apart("a"), {}, id="one is apart from others"),
        pytest.param(
            sized("1", ports=[{"containerPort": 80, "hostPort": 80}]), {}, id="one has a host port"
        ),
        pytest.param(
            apart("a", "podAffinity"),
            apart("a", "podAffinity"),
            id="they follow pods that are bound",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
            id="they have volumes",
        ),
    ],
)
def test_these_cannot(one: Any, other: Any) -> None:
    assert not are_alike([a_pod("a", **one), a_pod("b", **other)], NOTHING_KEPT)


def test_once_a_pod_names_a_node_the_others_do_not_get_its_room() -> None:
    pods = [a_pod("a"), a_pod("b", nominated="n1")]
    assert are_alike(pods, NOTHING_KEPT)
    assert not can_change_places(pods, NOTHING_KEPT)
