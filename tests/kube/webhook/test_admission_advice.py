"""Which warnings come with objects that are legal and probably not meant."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tenure.schema.advice import by_force
from tenure.schema.fieldmarks import MARKS
from tests.folders import ROOT
from tests.kube.reviews import Json, a_review, admission
from tests.schema.objects import an_object

MAY_DAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
LIMITS = ROOT / "docs" / "limits.md"
SPEC = "spec.template.spec"


def warnings(kind: str, changes: Json) -> list[str]:
    _, reviewed = admission().answer(a_review(an_object(kind, changes)), MAY_DAY)
    assert reviewed.problems == ()
    return list(reviewed.warnings)


def on(key: str, *needs: tuple[str, list[str]]) -> list[Json]:
    return [{"key": key, "operator": operator, "values": values} for operator, values in needs]


def daily(**dates: str) -> Json:
    return {"spec.schedules": [{"cron": "@daily", "duration": "8h"}], **dates}


ZONE = "topology.kubernetes.io/zone"
CASES: list[tuple[str, str, Json, list[str]]] = [
    (
        "values that exclude each other",
        "NodePool",
        {f"{SPEC}.requirements": on(ZONE, ("In", ["a"]), ("In", ["b"]))},
        [f"{SPEC}.requirements: those on {ZONE} contradict each other, so no node fits"],
    ),
    (
        "the same in a claim",
        "NodeClaim",
        {"spec.requirements": on("x.example/n", ("Gt", ["5"]), ("Lt", ["3"]))},
        ["spec.requirements: those on x.example/n contradict each other, so no node fits"],
    ),
    (
        "values that overlap",
        "NodePool",
        {f"{SPEC}.requirements": on(ZONE, ("In", ["a", "b"]), ("NotIn", ["b"]))},
        [],
    ),
    (
        "values that are not looked at",
        "NodePool",
        {f"{SPEC}.requirements": on(ZONE, ("Exists", ["a"]))},
        [f"{SPEC}.requirements[0].values: not looked at, because the operator is Exists"],
    ),
    (
        "a limit below zero",
        "NodePool",
        {"spec.limits": {"cpu": "-1"}},
        ["spec.limits[cpu]: below zero, so the pool launches nothing"],
    ),
    (
        "a day that never comes",
        "MaintenanceWindow",
        {"spec.schedules": [{"cron": "0 0 30 2 *", "duration": "8h"}]},
        ["spec.schedules[0].cron: there is no such day, so it never begins"],
    ),
    (
        "dates that are past",
        "MaintenanceWindow",
        {"spec.dates": [{"from": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"}]},
        ["spec.dates[0].until: is past, so these dates never come again"],
    ),
    (
        "dates that come",
        "MaintenanceWindow",
        {"spec.dates": [{"from": "2026-12-24T00:00:00Z", "until": "2026-12-26T00:00:00Z"}]},
        [],
    ),
]


@pytest.mark.parametrize(
    ("kind", "changes", "said"), [pytest.param(*case, id=says) for says, *case in CASES]
)
def test_what_is_probably_not_meant_is_said(kind: str, changes: Json, said: list[str]) -> None:
    assert warnings(kind, changes) == said


IDLE: list[tuple[str, Any, bool]] = [
    (f"{SPEC}.readinessTTL", "5m", False),
    (f"{SPEC}.initializationTTL", "1h", False),
    ("spec.repair", {"policies": []}, False),
    ("spec.repair", {"terminationMode": "Graceful"}, False),
    ("spec.disruption.budgets", [{"nodes": "1"}], False),
    ("spec.disruption.budgets", [{"nodes": "1", "reasons": ["Underutilized", "Empty"]}], False),
    ("spec.disruption.budgets", [{"nodes": "1"}, {"nodes": "0", "reasons": ["Empty"]}], False),
    (
        "spec.disruption.budgets",
        [{"nodes": "1"}, {"nodes": "0", "reasons": ["Underutilized"]}],
        False,
    ),
    ("spec.disruption.budgets", [{"nodes": "10%"}], False),
    ("spec.disruption.consolidationPolicy", "WhenEmpty", False),
    ("spec.disruption.consolidationPolicy", "WhenEmptyOrUnderutilized", False),
    ("spec.disruption.consolidateAfter", "5m", False),
    (f"{SPEC}.expireAfter", "48h", False),
    ("spec.replicas", 3, True),
]


@pytest.mark.parametrize(
    ("field", "value", "said"), [pytest.param(*case, id=f"{case[0]}={case[1]}") for case in IDLE]
)
def test_what_does_nothing_yet_is_said_unless_it_is_the_default(
    field: str, value: Any, said: bool
) -> None:
    found = [w for w in warnings("NodePool", {field: value}) if f"{field}: does nothing yet" in w]
    assert bool(found) == said


def test_that_a_grace_period_drifts_nodes_is_said_when_it_is_set_or_changed() -> None:
    def told(new: str, old: str | None = None) -> bool:
        made = [
            an_object("NodePool", {f"{SPEC}.terminationGracePeriod": value, "spec.weight": weight})
            for weight, value in ((1, new), (2, old))
            if value is not None
        ]
        _, reviewed = admission().answer(a_review(*made), MAY_DAY)
        return any("count as drifted" in warning for warning in reviewed.warnings)

    assert told("1h")
    assert told("2h", old="1h")
    assert not told("1h", old="1h"), "another field has changed"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (None, {}, True),
        (None, {"terminationMode": "Graceful"}, False),
        ({"maxUnhealthy": 1}, {}, False),
    ],
)
def test_a_repair_block_that_is_added_turns_repair_forceful(
    old: Json | None, new: Json, said: bool
) -> None:
    before = an_object("NodePool", {} if old is None else {"spec.repair": old})
    body = a_review(an_object("NodePool", {"spec.repair": new}), before)
    _, reviewed = admission().answer(body, MAY_DAY)
    assert reviewed.warnings == ((str(by_force()),) if said else ())


GPU = {"spec.repair": {"policies": [{"conditionType": "GpuBroken", "toleration": "5m"}]}}


def test_whether_the_provider_watches_a_condition_may_not_be_known() -> None:
    """Then a policy without a status is let in, with a word; else it is refused."""
    assert warnings("NodePool", GPU) == [
        (
            "spec.repair.policies[0]: which status of GpuBroken means unhealthy is not said, and the "
            "policy is ignored unless the provider watches that condition"
        )
    ]
    body = a_review(an_object("NodePool", GPU))
    _, refused = admission("Ready").answer(body, MAY_DAY)
    assert [problem.at for problem in refused.problems] == ["spec.repair.policies[0].status"]
    _, let_in = admission("GpuBroken").answer(body, MAY_DAY)
    assert (let_in.problems, let_in.warnings) == ((), ())


def test_whatever_does_nothing_yet_stands_among_the_limits() -> None:
    """What is done one day loses its warning and its entry together."""
    page = LIMITS.read_text()
    limits = {one.limit for marks in MARKS.values() for one in marks.values() if one.limit}
    assert "Static capacity" in limits
    assert [limit for limit in sorted(limits) if limit not in page] == []
