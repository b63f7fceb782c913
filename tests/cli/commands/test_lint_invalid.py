"""Whatever input lint gets, it reports findings and never crashes."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.cli.lint.rules import all_remarks
from tenure.cli.lint.source import Source
from tenure.parse.yamltext import documents_in
from tests.cli.commands.test_lint import a_deployment, a_pdb, a_pool
from tests.core.build import NOW

WINDOW = {
    "apiVersion": "karpenter.sh/v1alpha1",
    "kind": "MaintenanceWindow",
    "metadata": {"name": "w"},
    "spec": {"schedules": [{"cron": "0 6 * * 1-5", "duration": "8h"}], "actions": ["Drift"]},
}
SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {"maxReplicas": 5, "scaleTargetRef": {"kind": "Deployment", "name": "web"}},
}
SOUND: list[dict[str, Any]] = [
    a_pool(period="1h", limits={"cpu": "9"}, disruption={"maxPodProtection": "4h"}),
    a_deployment(protected="4h", terminationGracePeriodSeconds=7200, nodeSelector={"a": "b"}),
    a_deployment(kind="StatefulSet", tolerations=[{"key": "gpu", "operator": "Exists"}]),
    a_pdb(minAvailable=2),
    WINDOW,
    SCALER,
]
JUNK = st.sampled_from(
    [None, True, 0, -1, 2**70, 1.5, "", "x", "\u0000", "100%", [], [None], ["x"], {}, {"x": None}]
)


@st.composite
def broken(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Sound objects, with junk in a few places."""
    objects = copy.deepcopy(SOUND)
    for _ in range(draw(st.integers(1, 4))):
        place: Any = draw(st.sampled_from(objects))
        for _ in range(draw(st.integers(0, 6))):
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = draw(st.sampled_from(keys)) if keys else None
            if key is None or not isinstance(place[key], dict | list) or not place[key]:
                break
            place = place[key]
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if keys:
            place[draw(st.sampled_from(keys))] = copy.deepcopy(draw(JUNK))
    return objects


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(objects=broken())
def test_junk_is_found_and_never_a_crash(objects: list[dict[str, Any]]) -> None:
    sources = [
        Source(documents_in(json.dumps(value), "x.yaml")[0], "", value)
        for value in objects
        if isinstance(value.get("kind"), str) and isinstance(value.get("apiVersion"), str)
    ]
    for _, remark in all_remarks(sources, NOW):
        assert str(remark)
        assert remark.line >= 1
