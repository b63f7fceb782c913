"""Budgets, policies and repair."""

from __future__ import annotations

from typing import Any

from tests.schema.cases.case import NO_DAYS, Case, pool_case
from tests.schema.objects import Json

BUDGETS_AT = "spec.disruption.budgets"


def _budget(says: str, budget: Json, field: str = "", message: str = "") -> Case:
    # What concerns two fields of a budget is reported at the list.
    return pool_case(says, BUDGETS_AT, [budget], message and f"{BUDGETS_AT}{field}", message)


_SCHEDULE = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}
_IN_EVERY_ZONE = {"per": "topology.kubernetes.io/zone"}
BUDGETS = [
    _budget("a budget in percent", {"nodes": "10%"}),
    _budget("a budget in nodes", {"nodes": "100"}),
    _budget("a budget beyond all", {"nodes": "101%"}, "[0].nodes", "match"),
    _budget("a budget below zero", {"nodes": "-1"}, "[0].nodes", "match"),
    _budget("a budget as a number", {"nodes": 1}, "[0].nodes", "of type string"),
    _budget("a budget with a schedule", _SCHEDULE),
    _budget("a budget by name", {**_SCHEDULE, "schedule": "@daily"}),
    _budget("a budget in a zone", {**_SCHEDULE, "timeZone": "Europe/Berlin"}),
    _budget("a schedule alone", {"nodes": "0", "schedule": "@daily"}, "", "together"),
    _budget("a schedule that is no cron", {**_SCHEDULE, "schedule": "*"}, "[0].schedule", "match"),
    _budget("a zone alone", {"nodes": "0", "timeZone": "UTC"}, "", "where it has a timeZone"),
    _budget("a zone in words", {**_SCHEDULE, "timeZone": "my time"}, "[0].timeZone", "match"),
    _budget("minutes", {**_SCHEDULE, "duration": "8h30m"}),
    _budget("what Go prints", {**_SCHEDULE, "duration": "8h30m0s"}),
    _budget("seconds", {**_SCHEDULE, "duration": "30s"}, "[0].duration", "hours and minutes"),
    _budget("days", {**_SCHEDULE, "duration": "1d"}, "[0].duration", NO_DAYS),
    _budget("per zone", {"nodes": "1", **_IN_EVERY_ZONE}),
    _budget("per something that is no label", {"nodes": "1", "per": "a b"}, "[0].per", "match"),
    _budget("per hour", {"nodes": "1", "per": "1h"}, "[0].per", "use within"),
    _budget("in any hour", {"nodes": "2", "within": "1h"}),
    _budget("in any half hour of every zone", {"nodes": "2", "within": "30m", **_IN_EVERY_ZONE}),
    _budget("in any day", {"nodes": "10%", "within": "24h0m0s"}),
    _budget("in any 1440 minutes", {"nodes": "10%", "within": "1440m"}),
    _budget("in more than a day", {"nodes": "2", "within": "24h1m"}, "[0].within", "at most 24h"),
    _budget("in no time", {"nodes": "2", "within": "0h0m"}, "[0].within", "above zero"),
    _budget("in any day, as days", {"nodes": "2", "within": "1d"}, "[0].within", NO_DAYS),
    *[
        _budget(f"a budget for {reason}", {"nodes": "1", "reasons": [reason]})
        for reason in ("Underutilized", "Empty", "Drifted", "Unhealthy", "Expired")
    ],
    _budget("no such reason", {"nodes": "1", "reasons": ["Bored"]}, "[0].reasons[0]", "supported"),
    _budget(
        "a reason twice",
        {"nodes": "1", "reasons": ["Empty", "Empty"]},
        "[0].reasons[1]",
        "Duplicate value",
    ),
    pool_case("fifty-one budgets", BUDGETS_AT, [{"nodes": "1"}] * 51, BUDGETS_AT, "at most 50"),
    pool_case("no budgets", BUDGETS_AT, []),
]

POLICIES = [
    pool_case("a policy", "spec.disruption.consolidationPolicy", policy)
    for policy in ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
] + [
    pool_case(
        "no such policy",
        "spec.disruption.consolidationPolicy",
        "Sometimes",
        "spec.disruption.consolidationPolicy",
        "supported values",
    ),
    pool_case("expiration at once", "spec.disruption.expirationPolicy", "Always"),
    pool_case(
        "no such expiration",
        "spec.disruption.expirationPolicy",
        "Sometimes",
        "spec.disruption.expirationPolicy",
        'supported values: "WhenAllowed", "Always"',
    ),
]


def _repair(says: str, policy: Json, field: str = "", message: str = "", **block: Any) -> Case:
    policy = {"conditionType": "Ready", "toleration": "10m", **policy}
    at = "spec.repair"
    return pool_case(says, at, {"policies": [policy], **block}, message and f"{at}{field}", message)


_GRACE = {"terminationGracePeriod": "5m"}
REPAIR = [
    pool_case("an empty repair block", "spec.repair", {}),
    _repair("a policy with a toleration", {}),
    _repair("a toleration of zero", {"toleration": "0s"}),
    _repair("a toleration without end", {"toleration": "Never"}),
    _repair("a toleration in days", {"toleration": "1d"}, ".policies[0].toleration", NO_DAYS),
    _repair("a negative toleration", {"toleration": "-1m"}, ".policies[0].toleration", "Go"),
    _repair("a status", {"conditionType": "GpuBroken", "status": "True"}),
    _repair("a status in lower case", {"status": "true"}, ".policies[0].status", "supported"),
    _repair("a reason", {"reason": "^Kubelet"}),
    _repair("a reason too long", {"reason": "a" * 257}, ".policies[0].reason", "more than 256"),
    _repair("an action", {"action": "Reboot"}),
    _repair("no such action", {"action": "Pray"}, ".policies[0].action", "supported values"),
    _repair("a graceful policy with a bound", {"terminationMode": "Graceful", **_GRACE}),
    _repair("a graceful block with a bound", _GRACE, terminationMode="Graceful"),
    _repair("a bound in a forceful block", _GRACE, "", "Graceful"),
    _repair(
        "a forceful policy with a bound in a graceful block",
        {"terminationMode": "Forceful", **_GRACE},
        "",
        "Graceful",
        terminationMode="Graceful",
    ),
    _repair(
        "a bound in days",
        {"terminationMode": "Graceful", "terminationGracePeriod": "1d"},
        ".policies[0].terminationGracePeriod",
        NO_DAYS,
    ),
    _repair("no such mode", {}, ".terminationMode", "supported values", terminationMode="Kind"),
    _repair("a breaker in percent", {}, maxUnhealthy="40%"),
    _repair("a breaker in nodes", {}, maxUnhealthy=0),
    _repair("a breaker in text", {}, maxUnhealthy="3"),
    _repair("a breaker beyond all", {}, ".maxUnhealthy", "match", maxUnhealthy="101%"),
    _repair("a breaker below zero", {}, ".maxUnhealthy", "equal to 0", maxUnhealthy=-1),
    pool_case(
        "a policy without a toleration",
        "spec.repair",
        {"policies": [{"conditionType": "Ready"}]},
        "spec.repair.policies[0].toleration",
        "Required value",
    ),
    pool_case(
        "a policy without a condition",
        "spec.repair",
        {"policies": [{"toleration": "5m"}]},
        "spec.repair.policies[0].conditionType",
        "Required value",
    ),
    pool_case(
        "fifty-one policies",
        "spec.repair",
        {"policies": [{"conditionType": "Ready", "toleration": "5m"}] * 51},
        "spec.repair.policies",
        "at most 50",
    ),
]
