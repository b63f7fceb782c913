"""Every validation rule with a good and a bad case: for this validator and a real API server.

A bad case names the field and a part of the message that must be reported there; what
else is reported is not its business.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tests.schema.objects import Json, an_object

NO_DAYS = "for 1d use 24h"


class Case(msgspec.Struct, frozen=True):
    says: str
    kind: str
    changes: Json
    #: Field and part of the message; empty where the object is fine.
    field: str = ""
    message: str = ""
    #: What the object was before, for rules that judge a change.
    before: Json | None = None

    @property
    def object(self) -> Json:
        return an_object(self.kind, self.changes)

    @property
    def old(self) -> Json | None:
        return None if self.before is None else an_object(self.kind, self.before)


def _requirement(key: str, operator: str, *values: str, **more: Any) -> Json:
    return {"key": key, "operator": operator, "values": list(values), **more}


def _pool(says: str, path: str, value: Any, field: str = "", message: str = "") -> Case:
    return Case(says, "NodePool", {path: value}, field, message)


def _template(says: str, path: str, value: Any, field: str = "", message: str = "") -> list[Case]:
    """The same rule for a pool's template and for a claim."""
    return [
        Case(
            f"{says} in a {kind}",
            kind,
            {f"{at}.{path}": value},
            f"{at}.{field}" if field else "",
            message,
        )
        for kind, at in (("NodePool", "spec.template.spec"), ("NodeClaim", "spec"))
    ]


LABELS = "spec.template.metadata.labels"
POOL_LABELS = [
    _pool("a label of one's own is fine", LABELS, {"example.com/team": "a"}),
    _pool("an empty label value is fine", LABELS, {"team": ""}),
    _pool("the capacity type may be a label", LABELS, {"karpenter.sh/capacity-type": "spot"}),
    _pool("a label value has no spaces", LABELS, {"team": "a b"}, f"{LABELS}.team", "match"),
    _pool("a label value is short", LABELS, {"t": "a" * 64}, f"{LABELS}.t", "more than 63"),
    _pool("a label is text", LABELS, {"team": 5}, f"{LABELS}.team", "of type string"),
    _pool("labels are few", LABELS, {f"l{i}": "" for i in range(101)}, LABELS, "at most 100"),
    _pool("the own domain is closed", LABELS, {"karpenter.sh/x": ""}, LABELS, "reserved"),
    _pool("so is a subdomain", LABELS, {"a.karpenter.sh/x": ""}, LABELS, "reserved"),
    _pool("so is a lookalike", LABELS, {"mykarpenter.sh/x": ""}, LABELS, "reserved"),
    _pool("a provider's domain is open", LABELS, {"karpenter.kwok.sh/x": ""}),
    _pool(
        "the pool label is not for users", LABELS, {"karpenter.sh/nodepool": "a"}, LABELS, "pool"
    ),
    _pool("the host name is no label", LABELS, {"kubernetes.io/hostname": "a"}, LABELS, "hostname"),
]

REQUIREMENTS = [
    *_template("In with a value", "requirements", [_requirement("a", "In", "b")]),
    *_template(
        "In without a value", "requirements", [_requirement("a", "In")], "requirements", "In"
    ),
    *_template(
        "In without a list of values",
        "requirements",
        [{"key": "a", "operator": "In"}],
        "requirements",
        "at least one value",
    ),
    *_template("NotIn without a value", "requirements", [_requirement("a", "NotIn")]),
    *_template("Exists", "requirements", [{"key": "a", "operator": "Exists"}]),
    *[
        case
        for operator in ("Gt", "Lt", "Gte", "Lte")
        for case in (
            *_template(
                f"{operator} with a number", "requirements", [_requirement("a", operator, "16")]
            ),
            *_template(
                f"{operator} with two numbers",
                "requirements",
                [_requirement("a", operator, "1", "2")],
                "requirements",
                "exactly one whole number",
            ),
            *_template(
                f"{operator} with a word",
                "requirements",
                [_requirement("a", operator, "many")],
                "requirements",
                "exactly one whole number",
            ),
        )
    ],
    *_template(
        "Gt with a negative number",
        "requirements",
        [_requirement("a", "Gt", "-1")],
        "requirements",
        "not negative",
    ),
    *_template(
        "an operator that does not exist",
        "requirements",
        [_requirement("a", "Matches", "b")],
        "requirements[0].operator",
        'supported values: "In"',
    ),
    *_template(
        "as many values as minValues",
        "requirements",
        [_requirement("a", "In", "b", "c", minValues=2)],
    ),
    *_template(
        "fewer values than minValues",
        "requirements",
        [_requirement("a", "In", "b", minValues=2)],
        "requirements",
        "minValues",
    ),
    *_template(
        "minValues of Exists", "requirements", [{"key": "a", "operator": "Exists", "minValues": 9}]
    ),
    *_template(
        "minValues of zero",
        "requirements",
        [_requirement("a", "Exists", minValues=0)],
        "requirements[0].minValues",
        "greater than or equal to 1",
    ),
    *_template(
        "minValues beyond fifty",
        "requirements",
        [_requirement("a", "Exists", minValues=51)],
        "requirements[0].minValues",
        "less than or equal to 50",
    ),
    *_template(
        "a key that is no name",
        "requirements",
        [_requirement("bad key", "Exists")],
        "requirements[0].key",
        "match",
    ),
    *_template(
        "a key that is too long",
        "requirements",
        [_requirement("a" * 317, "Exists")],
        "requirements[0].key",
        "more than 316",
    ),
    *_template(
        "a key in the reserved domain",
        "requirements",
        [_requirement("karpenter.sh/x", "Exists")],
        "requirements[0].key",
        "reserved",
    ),
    *_template(
        "the host name as key",
        "requirements",
        [_requirement("kubernetes.io/hostname", "In", "a")],
        "requirements[0].key",
        "hostname",
    ),
    *_template(
        "the capacity type as key",
        "requirements",
        [_requirement("karpenter.sh/capacity-type", "In", "spot")],
    ),
    *_template(
        "a value that no label can have",
        "requirements",
        [_requirement("a", "In", "b c")],
        "requirements[0].values[0]",
        "match",
    ),
    *_template(
        "a hundred and one requirements",
        "requirements",
        [_requirement("a", "Exists")] * 101,
        "requirements",
        "at most 100",
    ),
    *_template("no requirements", "requirements", None, "requirements", "Required value"),
    Case(
        "the pool as key in a NodePool",
        "NodePool",
        {"spec.template.spec.requirements": [_requirement("karpenter.sh/nodepool", "In", "a")]},
        "spec.template.spec.requirements[0].key",
        "nodepool",
    ),
    Case(
        "the pool as key in a NodeClaim",
        "NodeClaim",
        {"spec.requirements": [_requirement("karpenter.sh/nodepool", "In", "a")]},
    ),
]

TAINTS = [
    case
    for field in ("taints", "startupTaints")
    for case in (
        *_template(
            f"{field} with a key and an effect", field, [{"key": "a", "effect": "NoExecute"}]
        ),
        *_template(
            f"{field} with a value", field, [{"key": "a.b/c", "value": "d", "effect": "NoSchedule"}]
        ),
        *_template(
            f"{field} without an effect", field, [{"key": "a"}], f"{field}[0].effect", "Required"
        ),
        *_template(
            f"{field} with an unknown effect",
            field,
            [{"key": "a", "effect": "Never"}],
            f"{field}[0].effect",
            "supported values",
        ),
        *_template(
            f"{field} with an empty key",
            field,
            [{"key": "", "effect": "NoSchedule"}],
            f"{field}[0].key",
            "at least 1 chars",
        ),
        *_template(
            f"{field} with a value that is no name",
            field,
            [{"key": "a", "value": "b c", "effect": "NoSchedule"}],
            f"{field}[0].value",
            "match",
        ),
    )
]

NODE_CLASS = [
    *_template("no node class", "nodeClassRef", None, "nodeClassRef", "Required value"),
    *_template(
        "a group with a version", "nodeClassRef.group", "a.b/v1", "nodeClassRef.group", "match"
    ),
    *[
        case
        for part in ("group", "kind", "name")
        for case in (
            *_template(
                f"an empty {part}", f"nodeClassRef.{part}", "", f"nodeClassRef.{part}", "empty"
            ),
            *_template(
                f"no {part}", f"nodeClassRef.{part}", None, f"nodeClassRef.{part}", "Required"
            ),
        )
    ],
]

_REF = "spec.template.spec.nodeClassRef"
CHANGES = [
    Case("the node class may change its name", "NodePool", {f"{_REF}.name": "b"}, before={}),
    Case("its group stays", "NodePool", {f"{_REF}.group": "b"}, _REF, "keep its group", before={}),
    Case("its kind stays", "NodePool", {f"{_REF}.kind": "B"}, _REF, "keep its kind", before={}),
    Case("replicas may change", "NodePool", {"spec.replicas": 2}, before={"spec.replicas": 1}),
    Case("replicas do not come", "NodePool", {"spec.replicas": 1}, "spec", "gain", before={}),
    Case("replicas do not go", "NodePool", {}, "spec", "lose", before={"spec.replicas": 1}),
    Case("a claim may change its labels", "NodeClaim", {"metadata.labels": {"a": "b"}}, before={}),
    Case(
        "a claim keeps its spec",
        "NodeClaim",
        {"spec.expireAfter": "1h"},
        "spec",
        "must not change",
        before={},
    ),
]

STATIC = [
    Case("a pool may be static", "NodePool", {"spec.replicas": 0}),
    Case(
        "a static pool may limit its nodes",
        "NodePool",
        {"spec.replicas": 3, "spec.limits": {"nodes": 5}},
    ),
    Case(
        "a static pool limits nothing else",
        "NodePool",
        {"spec.replicas": 3, "spec.limits": {"nodes": 5, "cpu": 1}},
        "spec",
        "no limit but nodes",
    ),
    Case(
        "a static pool has no weight",
        "NodePool",
        {"spec.replicas": 3, "spec.weight": 1},
        "spec",
        "weight",
    ),
    _pool("replicas are not negative", "spec.replicas", -1, "spec.replicas", "equal to 0"),
]

NUMBERS = [
    _pool("a weight from 1", "spec.weight", 1),
    _pool("a weight to 100", "spec.weight", 100),
    _pool("a weight of zero", "spec.weight", 0, "spec.weight", "equal to 1"),
    _pool("a weight beyond 100", "spec.weight", 101, "spec.weight", "equal to 100"),
    _pool("a weight in words", "spec.weight", "ten", "spec.weight", "of type integer"),
    _pool("limits as numbers and text", "spec.limits", {"cpu": 500, "memory": "1.5Ti"}),
    _pool("a limit nobody can read", "spec.limits", {"cpu": "many"}, "spec.limits.cpu", "match"),
    _pool("a limit that is no amount", "spec.limits", {"cpu": True}, "spec.limits.cpu", "type"),
]


def _durations(kind: str, path: str, good: str, bad: str, message: str = NO_DAYS) -> list[Case]:
    fine = [Case(f"{path} of {text}", kind, {path: text}) for text in good.split()]
    wrong = [Case(f"{path} of {text}", kind, {path: text}, path, message) for text in bad.split()]
    return fine + wrong


PLAIN, GO = "0s 90s 1h30m 48h0m0s", "90s 1.5h 1h30m 5µs .5s 300ms"
DURATIONS = [
    *[
        case
        for kind, at in (("NodePool", "spec.template.spec"), ("NodeClaim", "spec"))
        for case in (
            *_durations(kind, f"{at}.terminationGracePeriod", PLAIN, "1d Never 1.5h -1h 5ms"),
            *_durations(kind, f"{at}.expireAfter", f"{PLAIN} Never", "1d never 1.5h -1h"),
            *_durations(kind, f"{at}.readinessTTL", f"{GO} +1h", "1d Never 0 0s -1h 1h30 h"),
            *_durations(kind, f"{at}.initializationTTL", f"{GO} Never", "1d 0s -1h never"),
        )
    ],
    *_durations("NodePool", "spec.disruption.consolidateAfter", f"{PLAIN} Never", "1d 1.5h"),
    *_durations("NodePool", "spec.disruption.maxPodProtection", GO, "1d 0s Never"),
    *_durations(
        "NodePool", "spec.repair.defaultTolerationDuration", f"{GO} 0 0s Never", "1d -5m 10"
    ),
    *_durations("KWOKNodeClass", "spec.nodeRegistrationDelay", PLAIN, "1d 1.5h"),
    _pool(
        "a duration of a hundred digits",
        "spec.disruption.consolidateAfter",
        "1" * 100 + "h",
        "spec.disruption.consolidateAfter",
        "more than 64",
    ),
]

BUDGETS_AT = "spec.disruption.budgets"


def _budget(says: str, budget: Json, field: str = "", message: str = "") -> Case:
    # What concerns two fields of a budget is reported at the list.
    return _pool(says, BUDGETS_AT, [budget], message and f"{BUDGETS_AT}{field}", message)


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
    _pool("fifty-one budgets", BUDGETS_AT, [{"nodes": "1"}] * 51, BUDGETS_AT, "at most 50"),
    _pool("no budgets", BUDGETS_AT, []),
]

POLICIES = [
    _pool("a policy", "spec.disruption.consolidationPolicy", policy)
    for policy in ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
] + [
    _pool(
        "no such policy",
        "spec.disruption.consolidationPolicy",
        "Sometimes",
        "spec.disruption.consolidationPolicy",
        "supported values",
    ),
    _pool("expiration at once", "spec.disruption.expirationPolicy", "Always"),
    _pool(
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
    return _pool(says, at, {"policies": [policy], **block}, message and f"{at}{field}", message)


_GRACE = {"terminationGracePeriod": "5m"}
REPAIR = [
    _pool("an empty repair block", "spec.repair", {}),
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
    _pool(
        "a policy without a toleration",
        "spec.repair",
        {"policies": [{"conditionType": "Ready"}]},
        "spec.repair.policies[0].toleration",
        "Required value",
    ),
    _pool(
        "a policy without a condition",
        "spec.repair",
        {"policies": [{"toleration": "5m"}]},
        "spec.repair.policies[0].conditionType",
        "Required value",
    ),
    _pool(
        "fifty-one policies",
        "spec.repair",
        {"policies": [{"conditionType": "Ready", "toleration": "5m"}] * 51},
        "spec.repair.policies",
        "at most 50",
    ),
]


def _selectors(kind: str, says: str, path: str, wrap: Any, at: str) -> list[Case]:
    def case(text: str, expression: Json, field: str = "", message: str = "") -> Case:
        value = wrap({"matchExpressions": [expression]})
        there = f"{at}.matchExpressions{field}" if message else ""
        return Case(f"{says} with {text}", kind, {path: value}, there, message)

    return [
        case("In and a value", _requirement("a", "In", "b")),
        case("NotIn and a value", _requirement("a", "NotIn", "b")),
        case("Exists", {"key": "a", "operator": "Exists"}),
        case("Gt and a number", _requirement("a", "Gt", "5")),
        case("In alone", _requirement("a", "In"), "", "at least one value"),
        case("NotIn alone", {"key": "a", "operator": "NotIn"}, "", "at least one value"),
        case("Exists and a value", _requirement("a", "Exists", "b"), "", "no values"),
        case("Lt and a word", _requirement("a", "Lt", "few"), "", "exactly one whole number"),
        case("no such operator", _requirement("a", "Like", "b"), "[0].operator", "supported"),
        case("a key that is no name", _requirement("a b", "Exists"), "[0].key", "match"),
        case("no key", {"operator": "Exists"}, "[0].key", "Required"),
    ]


SELECTORS = [
    *_selectors(
        "MaintenanceWindow", "a window", "spec.selector", lambda selector: selector, "spec.selector"
    ),
    *_selectors(
        "NodePool",
        "a budget",
        BUDGETS_AT,
        lambda selector: [{"nodes": "1", "selector": selector}],
        f"{BUDGETS_AT}[0].selector",
    ),
]


def _window(says: str, path: str, value: Any, field: str = "", message: str = "") -> Case:
    return Case(says, "MaintenanceWindow", {f"spec.{path}": value}, field, message)


def _dates(begin: str, end: str) -> list[Json]:
    return [{"from": begin, "until": end}]


_NIGHTLY = {"cron": "0 22 * * 1-5", "duration": "8h"}
_CHRISTMAS = ("2026-12-24T00:00:00Z", "2026-12-27T00:00:00+01:00")
WINDOWS = [
    _window("a window without a time", "schedules", []),
    _window("a schedule", "schedules", [_NIGHTLY]),
    _window("a schedule by name", "schedules", [{**_NIGHTLY, "cron": "@weekly"}]),
    _window("a schedule in a zone", "schedules", [{**_NIGHTLY, "timeZone": "Asia/Tokyo"}]),
    _window("day seven", "schedules", [{**_NIGHTLY, "cron": "0 0 * * 6-7"}]),
    _window(
        "a schedule without a cron",
        "schedules",
        [{"duration": "8h"}],
        "spec.schedules[0].cron",
        "Required",
    ),
    _window(
        "a schedule without an end",
        "schedules",
        [{"cron": "@daily"}],
        "spec.schedules[0].duration",
        "Required",
    ),
    _window(
        "a schedule for a day",
        "schedules",
        [{**_NIGHTLY, "duration": "1d"}],
        "spec.schedules[0].duration",
        NO_DAYS,
    ),
    _window(
        "a schedule for no time",
        "schedules",
        [{**_NIGHTLY, "duration": "0s"}],
        "spec.schedules[0].duration",
        "above zero",
    ),
    _window(
        "a cron of one field",
        "schedules",
        [{**_NIGHTLY, "cron": "*"}],
        "spec.schedules[0].cron",
        "match",
    ),
    _window(
        "a zone in words",
        "schedules",
        [{**_NIGHTLY, "timeZone": "my time"}],
        "spec.schedules[0].timeZone",
        "match",
    ),
    _window("too many schedules", "schedules", [_NIGHTLY] * 51, "spec.schedules", "at most 50"),
    _window("a holiday", "dates", _dates(*_CHRISTMAS)),
    _window("a holiday backwards", "dates", _dates(*_CHRISTMAS[::-1]), "spec.dates[0]", "later"),
    _window(
        "a holiday by day", "dates", _dates("2026-12-24", "x"), "spec.dates[0].from", "date-time"
    ),
    _window("every action", "actions", ["Expiration", "Consolidation", "Drift", "Repair"]),
    _window("the halves of an action", "actions", ["EmptyConsolidation", "NonEmptyConsolidation"]),
    _window("no action", "actions", [], "spec.actions", "at least 1 items"),
    _window("actions left out", "actions", None, "spec.actions", "Required value"),
    _window("no such action", "actions", ["Sleep"], "spec.actions[0]", "supported values"),
    _window("an action twice", "actions", ["Drift", "Drift"], "spec.actions[1]", "Duplicate"),
    _window("a window that allows", "type", "Allow"),
    _window("no such type", "type", "Maybe", "spec.type", 'supported values: "Block", "Allow"'),
]

NODE_CLASSES = [
    Case("a class with an image", "KWOKNodeClass", {"spec.image": "v1"}),
    Case("a class without a spec", "KWOKNodeClass", {"spec": None}),
    Case("an empty image", "KWOKNodeClass", {"spec.image": ""}, "spec.image", "at least 1"),
]

CASES = [
    *POOL_LABELS,
    *REQUIREMENTS,
    *TAINTS,
    *NODE_CLASS,
    *CHANGES,
    *STATIC,
    *NUMBERS,
    *DURATIONS,
    *BUDGETS,
    *POLICIES,
    *REPAIR,
    *SELECTORS,
    *WINDOWS,
    *NODE_CLASSES,
]
