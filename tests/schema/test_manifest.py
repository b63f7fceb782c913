"""A user's manifest: one line per mistake, with the field, the value and what to write."""

from __future__ import annotations

import pytest

from tenure.errors import SpecError
from tenure.schema import manifest as manifests
from tenure.sim.apiserver.objects.customkinds import SERVED_KINDS
from tests.schema.cases import CASES, GOOD_CASES, Case
from tests.schema.objects import Json, a_pool, a_window, an_object

REQUIREMENTS = "spec.template.spec.requirements"
MISTAKES = [
    (
        "a misspelt field",
        a_pool({"spec.disruption.budgetz": []}),
        'unknown field "spec.disruption.budgetz". Did you mean "budgets"?',
    ),
    (
        "an unknown field",
        an_object("KWOKNodeClass", {"spec.xyz": {"a": 1}}),
        ('unknown field "spec.xyz". Known here: nodeRegistrationDelay, image.'),
    ),
    (
        "a field of another place, which no guess explains",
        a_window({"spec.duration": "4h"}),
        'unknown field "spec.duration". Known here: ',
    ),
    (
        "a day",
        a_pool({"spec.template.spec.expireAfter": "1d"}),
        (
            "spec.template.spec.expireAfter: got '1d', expected a Go duration such as 1h30m, "
            "or Never. Use 24h."
        ),
    ),
    (
        "a fraction where Karpenter takes none",
        a_pool({"spec.template.spec.expireAfter": "1.5h"}),
        "spec.template.spec.expireAfter: got '1.5h', expected whole hours, minutes or seconds",
    ),
    (
        "a malformed cron",
        a_window({"spec.schedules": [{"cron": "0 25 * * *", "duration": "8h"}]}),
        "spec.schedules[0].cron: got '0 25 * * *', expected a cron",
    ),
    (
        "an unknown operator",
        a_pool({REQUIREMENTS: [{"key": "a", "operator": "in", "values": ["b"]}]}),
        (
            f"{REQUIREMENTS}[0].operator: got 'in', expected one of In, NotIn, Exists, DoesNotExist, "
            'Gt, Lt, Gte, Lte. Did you mean "In"?'
        ),
    ),
    (
        "a wrong type",
        a_pool({"spec.weight": "ten"}),
        "spec.weight: got 'ten', expected a whole number. Use for example 10.",
    ),
    (
        "something missing",
        a_pool({"spec.template.spec.nodeClassRef": None}),
        (
            "spec.template.spec.nodeClassRef: got nothing, expected a value. "
            "The node class that the provider makes the instance from."
        ),
    ),
    (
        "a choice that does not exist",
        a_pool({"spec.repair": {"policies": [], "terminationMode": "Kind"}}),
        (
            "spec.repair.terminationMode: got 'Kind', expected one of Forceful, Graceful. "
            "Use for example Forceful."
        ),
    ),
    (
        "a rule over several fields",
        a_pool({"spec.replicas": 1, "spec.weight": 5}),
        "expected it to have no weight beside replicas",
    ),
    (
        "an old version",
        {**a_pool(), "apiVersion": "karpenter.sh/v1beta1"},
        "apiVersion: got 'karpenter.sh/v1beta1', expected karpenter.sh/v1",
    ),
]


def check_manifest(manifest: Json, at: str = "") -> list[SpecError]:
    return manifests.check_manifest(manifest, SERVED_KINDS, at)


@pytest.mark.parametrize(
    ("manifest", "line"), [pytest.param(obj, line, id=says) for says, obj, line in MISTAKES]
)
def test_a_mistake_gets_one_line(manifest: Json, line: str) -> None:
    problems = check_manifest(manifest)
    assert len(problems) == 1
    assert line in str(problems[0])
    assert "\n" not in str(problems[0])


def test_the_place_of_the_manifest_leads_the_line() -> None:
    problems = check_manifest(a_pool({"spec.weight": 0}), "pool.yaml")
    assert str(problems[0]) == "pool.yaml: spec.weight: got 0, expected 1 or more"


def test_a_condition_of_an_unknown_provider_is_not_held_against_the_writer() -> None:
    policy = {"conditionType": "GpuBroken", "toleration": "5m"}
    assert check_manifest(a_pool({"spec.repair": {"policies": [policy]}})) == []


def test_a_kind_that_is_not_ours_is_not_checked() -> None:
    assert check_manifest({"apiVersion": "apps/v1", "kind": "Deployment", "sepc": {}}) == []


def test_a_long_value_is_cut_short() -> None:
    problem = str(check_manifest(a_pool({"spec.limits": list(range(100))}))[0])
    assert "…" in problem
    assert len(problem) < 300


@pytest.mark.parametrize("case", GOOD_CASES, ids=lambda case: case.says)
def test_a_good_manifest_gets_no_line(case: Case) -> None:
    assert check_manifest(case.object) == []


BAD = [case for case in CASES if case.field and case.before is None]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.says)
def test_whatever_admission_refuses_gets_a_line_at_its_place(case: Case) -> None:
    places = [problem.at for problem in check_manifest(case.object)]
    assert any(place.startswith(case.field) for place in places), places
