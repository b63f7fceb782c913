"""The checks behind the webhook and the conditions: what no schema can say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.kinds import type_for
from tenure.schema.problems import Problems, problems_in, problems_of, problems_of_pool
from tenure.schema.structure.validate import kind_for
from tenure.sim.apiserver.objects.customkinds import SERVED_KINDS
from tests.schema.cases import GOOD_CASES
from tests.schema.objects import Json, a_pool, an_object


def pool(changes: Json) -> NodePool:
    return msgspec.convert(a_pool(changes), NodePool)


def problems(kind: str, changes: Json) -> Problems:
    obj = an_object(kind, changes)
    return everything_wrong(obj)


def everything_wrong(obj: Json) -> Problems:
    kind = kind_for(obj["apiVersion"].partition("/")[0], obj["kind"], SERVED_KINDS)
    assert kind is not None
    return problems_in(msgspec.convert(obj, type_for(kind.resource)), kind)


def says(part: str, problems: Problems) -> bool:
    return any(part in str(problem) for problem in problems)


def requirement(key: str, operator: str, *values: str, **more: Any) -> Json:
    written = {"key": key, "operator": operator, "values": list(values), **more}
    return {"spec.template.spec.requirements": [written]}


def taints(*pairs: tuple[str, str]) -> list[Json]:
    return [{"key": key, "effect": effect} for key, effect in pairs]


LABELS = "spec.template.metadata.labels"
TEMPLATE = "spec.template.spec"
CAPACITY = "karpenter.sh/capacity-type"

BAD_TEMPLATES: list[tuple[str, Json, str]] = [
    ("a name that cannot be a label", {"metadata.name": "a" * 64}, "at most 63 characters"),
    ("the pool's own label", {LABELS: {"karpenter.sh/nodepool": "a"}}, "a label that is yours"),
    ("a reserved label", {LABELS: {"karpenter.sh/custom": "a"}}, "outside the domain karpenter.sh"),
    ("a reserved subdomain", {LABELS: {"a.karpenter.sh/b": "a"}}, "outside the domain"),
    ("a host name", {LABELS: {"kubernetes.io/hostname": "a"}}, "a label that nodes share"),
    ("a key that is no name", {LABELS: {"a b": "a"}}, "a label key"),
    ("a name that is too long", {LABELS: {"a" * 64: "a"}}, "a label key"),
    ("a domain that is none", {LABELS: {"A_B/c": "a"}}, "a label key"),
    ("a value that is none", {LABELS: {"a": "b c"}}, "a label value"),
    (
        "a taint twice",
        {f"{TEMPLATE}.taints": taints(("a", "NoSchedule"), ("a", "NoSchedule"))},
        "each key with an effect once",
    ),
    (
        "a taint also at the start",
        {
            f"{TEMPLATE}.taints": taints(("a", "NoSchedule")),
            f"{TEMPLATE}.startupTaints": taints(("a", "NoSchedule")),
        },
        "spec.template.spec.startupTaints[0]: got 'a:NoSchedule'",
    ),
    ("an effect that is none", {f"{TEMPLATE}.taints": taints(("a", "Maybe"))}, "NoExecute"),
    ("a taint key that is none", {f"{TEMPLATE}.taints": taints(("", "NoSchedule"))}, "a taint key"),
    (
        "a taint value that is none",
        {f"{TEMPLATE}.taints": [{"key": "a", "value": "b c", "effect": "NoSchedule"}]},
        "a taint value",
    ),
    ("the pool as a requirement", requirement("karpenter.sh/nodepool", "In", "a"), "is yours"),
    ("a reserved requirement", requirement("karpenter.sh/x", "Exists"), "outside the domain"),
    ("no such operator", requirement("a", "Like", "b"), "requirements[0].operator"),
    ("In without values", requirement("a", "In"), "at least one value"),
    ("Gt with a word", requirement("a", "Gt", "many"), "requirements[0].values"),
    ("too few values", requirement("a", "In", "b", minValues=2), "requirements[0]"),
    ("a value too long", requirement("a", "In", "b" * 64), "requirements[0].values[0]"),
    ("no capacity type", requirement(CAPACITY, "In", "free"), "one of on-demand, spot, reserved"),
    (
        "too few capacity types",
        requirement(CAPACITY, "In", "spot", "free", minValues=2),
        "at least 2 of on-demand, spot, reserved",
    ),
    ("a day", {f"{TEMPLATE}.expireAfter": "30d"}, "Use 720h."),
    ("no time to get ready", {f"{TEMPLATE}.readinessTTL": "0s"}, "a duration above zero"),
    ("less than the smallest unit", {f"{TEMPLATE}.readinessTTL": "0.1ns"}, "above zero"),
    ("longer than Go can count", {f"{TEMPLATE}.expireAfter": "9999999999h"}, "at most 2562047h"),
    ("a limit with a broken exponent", {"spec.limits": {"cpu": "1e1.5"}}, "spec.limits[cpu]"),
    ("a negative grace", {f"{TEMPLATE}.terminationGracePeriod": "-5m"}, "not negative"),
]

GOOD_TEMPLATES = [
    ("an old name of a well-known label", requirement("beta.kubernetes.io/arch", "In", "amd64")),
    ("an unknown capacity type beside a known one", requirement(CAPACITY, "In", "spot", "x")),
    ("a capacity type excluded", requirement(CAPACITY, "NotIn", "free")),
    ("a lookalike domain, at run time", {LABELS: {"mykarpenter.sh/x": "a"}}),
    (
        "a taint with two effects",
        {
            f"{TEMPLATE}.taints": taints(("a", "NoSchedule"), ("a", "NoExecute")),
        },
    ),
]

BUDGETS = "spec.disruption.budgets"
HOURS = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}
BAD_DISRUPTIONS: list[tuple[str, Json, str]] = [
    ("a cron that only looks like one", {BUDGETS: [{**HOURS, "schedule": "a b c d e"}]}, "a cron"),
    ("an unknown zone", {BUDGETS: [{**HOURS, "timeZone": "Mars/Base"}]}, "an IANA time zone"),
    ("a zone that is a folder", {BUDGETS: [{**HOURS, "timeZone": "Europe"}]}, "an IANA time zone"),
    ("a schedule alone", {BUDGETS: [{"nodes": "1", "schedule": "@daily"}]}, "together"),
    ("a share beyond all", {BUDGETS: [{"nodes": "300%"}]}, "a number or a percentage"),
    ("an unknown reason", {BUDGETS: [{"nodes": "1", "reasons": ["Bored"]}]}, "reasons[0]"),
    ("a label that is none", {BUDGETS: [{"nodes": "1", "per": "a b"}]}, "budgets[0].per"),
    ("a label that is a duration", {BUDGETS: [{"nodes": "1", "per": "1h"}]}, "use within: 1h"),
    ("a velocity over days", {BUDGETS: [{"nodes": "1", "within": "25h"}]}, "at most 24h"),
    ("a velocity over no time", {BUDGETS: [{"nodes": "1", "within": "0m"}]}, "above zero"),
    ("a velocity in words", {BUDGETS: [{"nodes": "1", "within": "hour"}]}, "budgets[0].within"),
    ("an unknown policy", {"spec.disruption.consolidationPolicy": "X"}, "one of WhenEmpty"),
    ("an unknown expiration", {"spec.disruption.expirationPolicy": "X"}, "one of WhenAllowed"),
    ("a wait in days", {"spec.disruption.consolidateAfter": "1d"}, "Use 24h."),
    ("protection for no time", {"spec.disruption.maxPodProtection": "0s"}, "above zero"),
]


def policy(**fields: str) -> Json:
    return {"spec.repair": {"policies": [{"conditionType": "Ready", "toleration": "5m", **fields}]}}


BAD_REPAIRS = [
    (
        "a condition that is not watched",
        policy(conditionType="GpuBroken"),
        (
            "spec.repair.policies[0].status: missing, expected the status that means unhealthy, because "
            'the provider does not watch GpuBroken. Write for example status: "True".'
        ),
    ),
    ("a misspelt condition", policy(conditionType="Redy"), "Did you mean Ready?"),
    ("no condition", policy(conditionType="", status="True"), "a node condition"),
    ("an unknown status", policy(status="Maybe"), "one of True, False, Unknown"),
    ("a reason that is no expression", policy(reason="("), "an RE2 expression"),
    ("a reason with a lookahead, which RE2 has not", policy(reason="(?=a)"), "an RE2 expression"),
    ("a reason that is too long", policy(reason="a" * 257), "at most 256 characters"),
    ("a toleration in days", policy(toleration="1d"), "Use 24h."),
    (
        "a bound for a forceful end",
        policy(terminationGracePeriod="5m"),
        "terminationMode: Graceful",
    ),
    ("an unknown action", policy(action="Pray"), "one of Replace, Reboot, None"),
    ("an unknown mode", policy(terminationMode="Kind"), "one of Forceful, Graceful"),
    ("a breaker that cannot be read", {"spec.repair": {"maxUnhealthy": "most"}}, "a percentage"),
    ("a bad default", {"spec.repair": {"defaultTolerationDuration": "soon"}}, "or Never"),
]


def schedule(**fields: str) -> Json:
    return {"spec.schedules": [{"cron": "@daily", "duration": "8h", **fields}]}


def dates(begin: str, end: str) -> Json:
    return {"spec.dates": [{"from": begin, "until": end}]}


BAD_WINDOWS = [
    ("a bad cron", schedule(cron="61 * * * *"), "spec.schedules[0].cron"),
    ("an unknown zone", schedule(timeZone="Atlantis"), "an IANA time zone"),
    ("no length", schedule(duration="0s"), "above zero"),
    ("no action", {"spec.actions": []}, "at least one action"),
    ("an unknown action", {"spec.actions": ["Sleep"]}, "spec.actions[0]"),
    ("an unknown type", {"spec.type": "Maybe"}, "one of Block, Allow"),
    ("a date that is none", dates("tomorrow", "2026-12-27T00:00:00Z"), "an RFC 3339 instant"),
    ("a day that is none", dates("2026-02-30T00:00:00Z", "2026-12-27T00:00:00Z"), "RFC 3339"),
    ("dates backwards", dates("2026-12-27T00:00:00Z", "2026-12-24T00:00:00Z"), "an instant after"),
]


def selecting(operator: str, *values: str) -> Json:
    expression = {"key": "a", "operator": operator, "values": list(values)}
    return {"spec.selector.matchExpressions": [expression]}


BAD_SELECTORS = [
    ("no such operator", selecting("Gte", "5"), "one of In, NotIn, Exists"),
    ("In without values", selecting("In"), "at least one value"),
    ("NotIn without values", selecting("NotIn"), "at least one value"),
    ("Exists with values", selecting("Exists", "b"), "no values for Exists"),
    ("Lt with a word", selecting("Lt", "few"), "matchExpressions[0].values"),
    ("a value that is none", selecting("In", "b c"), "matchExpressions[0].values[0]"),
    (
        "a key that is none",
        {"spec.selector.matchExpressions": [{"key": "a b", "operator": "Exists"}]},
        "a label key",
    ),
]


BAD_CLAIMS: list[tuple[str, Json, str]] = [
    (
        "a taint twice",
        {"spec.taints": taints(("a", "NoSchedule"), ("a", "NoSchedule"))},
        "spec.taints[1]: got 'a:NoSchedule'",
    ),
    (
        "Gt with a word",
        {"spec.requirements": [{"key": "a", "operator": "Gt", "values": ["many"]}]},
        "spec.requirements[0].values",
    ),
    (
        "a name that is too long",
        {"spec.requirements": [{"key": "a" * 64, "operator": "Exists"}]},
        "a label key",
    ),
    ("no time to get ready", {"spec.readinessTTL": "0s"}, "a duration above zero"),
    ("a broken exponent", {"spec.resources": {"requests": {"cpu": "1e1.5"}}}, "requests[cpu]"),
]


def table(cases: list[tuple[str, Json, str]]) -> list[Any]:
    return [pytest.param(changes, part, id=says) for says, changes, part in cases]


@pytest.mark.parametrize(("changes", "part"), table(BAD_TEMPLATES))
def test_a_bad_template_is_described(changes: Json, part: str) -> None:
    assert says(part, problems_of_pool(pool(changes)).template), changes


@pytest.mark.parametrize(("changes", "part"), table(BAD_DISRUPTIONS))
def test_a_bad_disruption_block_is_described(changes: Json, part: str) -> None:
    found = problems_of_pool(pool(changes))
    assert says(part, found.disruption)
    assert found.template == (), "provisioning goes on"


@pytest.mark.parametrize(("changes", "part"), table(BAD_REPAIRS))
def test_a_bad_repair_block_is_described(changes: Json, part: str) -> None:
    found = problems_of_pool(pool(changes))
    assert says(part, found.repair)
    assert found.template == (), "provisioning goes on"


@pytest.mark.parametrize(("changes", "part"), table(BAD_WINDOWS + BAD_SELECTORS))
def test_a_bad_window_is_described(changes: Json, part: str) -> None:
    assert says(part, problems("MaintenanceWindow", changes))


@pytest.mark.parametrize(("changes", "part"), table(BAD_CLAIMS))
def test_a_bad_claim_is_described(changes: Json, part: str) -> None:
    assert says(part, problems("NodeClaim", changes))


def test_a_claim_may_name_its_pool_and_its_host() -> None:
    """A pool may not ask for these; the claims that are made for it do."""
    named = {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["general"]}
    host = {"key": "kubernetes.io/hostname", "operator": "Exists"}
    assert problems("NodeClaim", {"spec.requirements": [named, host]}) == ()


def test_a_delay_that_cannot_be_counted_is_described() -> None:
    changes = {"spec.nodeRegistrationDelay": "9999999999h"}
    (problem,) = problems("KWOKNodeClass", changes)
    assert problem.at == "spec.nodeRegistrationDelay"
    assert "at most 2562047h" in str(problem)


@pytest.mark.parametrize(
    "changes", [pytest.param(changes, id=says) for says, changes in GOOD_TEMPLATES]
)
def test_what_karpenter_tolerates_at_run_time_is_tolerated(changes: Json) -> None:
    assert problems_of_pool(pool(changes)).template == ()


def test_a_condition_that_the_provider_watches_needs_no_status() -> None:
    watching = pool(policy(conditionType="KWOKUnhealthy"))
    assert problems_of(watching, watched={"KWOKUnhealthy"}) == ()


def test_a_pool_without_a_repair_block_has_nothing_wrong_in_it() -> None:
    assert problems_of_pool(pool({})).repair == ()


def test_all_that_is_wrong_with_a_pool_is_listed_block_by_block() -> None:
    changes = {f"{TEMPLATE}.expireAfter": "30d", **policy(reason="("), BUDGETS: [{"nodes": "x"}]}
    assert [problem.at for problem in problems_of(pool(changes))] == [
        "spec.template.spec.expireAfter",
        "spec.disruption.budgets[0].nodes",
        "spec.repair.policies[0].reason",
    ]


@pytest.mark.parametrize("case", GOOD_CASES, ids=lambda case: case.says)
def test_what_admission_lets_in_is_fine_at_run_time_too(case: Any) -> None:
    assert everything_wrong(case.object) == ()
