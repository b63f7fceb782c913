"""What a pool's template and a claim have in common: labels, requirements, taints."""

from __future__ import annotations

from tests.schema.cases.case import Case, pool_case, requirement, template_cases

LABELS = "spec.template.metadata.labels"
POOL_LABELS = [
    pool_case("a label of one's own is fine", LABELS, {"example.com/team": "a"}),
    pool_case("an empty label value is fine", LABELS, {"team": ""}),
    pool_case("the capacity type may be a label", LABELS, {"karpenter.sh/capacity-type": "spot"}),
    pool_case("a label value has no spaces", LABELS, {"team": "a b"}, f"{LABELS}.team", "match"),
    pool_case("a label value is short", LABELS, {"t": "a" * 64}, f"{LABELS}.t", "more than 63"),
    pool_case("a label is text", LABELS, {"team": 5}, f"{LABELS}.team", "of type string"),
    pool_case("labels are few", LABELS, {f"l{i}": "" for i in range(101)}, LABELS, "at most 100"),
    pool_case("the own domain is closed", LABELS, {"karpenter.sh/x": ""}, LABELS, "reserved"),
    pool_case("so is a subdomain", LABELS, {"a.karpenter.sh/x": ""}, LABELS, "reserved"),
    pool_case("so is a lookalike", LABELS, {"mykarpenter.sh/x": ""}, LABELS, "reserved"),
    pool_case("a provider's domain is open", LABELS, {"karpenter.kwok.sh/x": ""}),
    pool_case(
        "the pool label is not for users", LABELS, {"karpenter.sh/nodepool": "a"}, LABELS, "pool"
    ),
    pool_case(
        "the host name is no label", LABELS, {"kubernetes.io/hostname": "a"}, LABELS, "hostname"
    ),
]

REQUIREMENTS = [
    *template_cases("In with a value", "requirements", [requirement("a", "In", "b")]),
    *template_cases(
        "In without a value", "requirements", [requirement("a", "In")], "requirements", "In"
    ),
    *template_cases(
        "In without a list of values",
        "requirements",
        [{"key": "a", "operator": "In"}],
        "requirements",
        "at least one value",
    ),
    *template_cases("NotIn without a value", "requirements", [requirement("a", "NotIn")]),
    *template_cases("Exists", "requirements", [{"key": "a", "operator": "Exists"}]),
    *[
        case
        for operator in ("Gt", "Lt", "Gte", "Lte")
        for case in (
            *template_cases(
                f"{operator} with a number", "requirements", [requirement("a", operator, "16")]
            ),
            *template_cases(
                f"{operator} with two numbers",
                "requirements",
                [requirement("a", operator, "1", "2")],
                "requirements",
                "exactly one whole number",
            ),
            *template_cases(
                f"{operator} with a word",
                "requirements",
                [requirement("a", operator, "many")],
                "requirements",
                "exactly one whole number",
            ),
        )
    ],
    *template_cases(
        "Gt with a negative number",
        "requirements",
        [requirement("a", "Gt", "-1")],
        "requirements",
        "not negative",
    ),
    *template_cases(
        "an operator that does not exist",
        "requirements",
        [requirement("a", "Matches", "b")],
        "requirements[0].operator",
        'supported values: "In"',
    ),
    *template_cases(
        "as many values as minValues",
        "requirements",
        [requirement("a", "In", "b", "c", minValues=2)],
    ),
    *template_cases(
        "fewer values than minValues",
        "requirements",
        [requirement("a", "In", "b", minValues=2)],
        "requirements",
        "minValues",
    ),
    *template_cases(
        "minValues of Exists", "requirements", [{"key": "a", "operator": "Exists", "minValues": 9}]
    ),
    *template_cases(
        "minValues of zero",
        "requirements",
        [requirement("a", "Exists", minValues=0)],
        "requirements[0].minValues",
        "greater than or equal to 1",
    ),
    *template_cases(
        "minValues beyond fifty",
        "requirements",
        [requirement("a", "Exists", minValues=51)],
        "requirements[0].minValues",
        "less than or equal to 50",
    ),
    *template_cases(
        "a key that is no name",
        "requirements",
        [requirement("bad key", "Exists")],
        "requirements[0].key",
        "match",
    ),
    *template_cases(
        "a key that is too long",
        "requirements",
        [requirement("a" * 317, "Exists")],
        "requirements[0].key",
        "more than 316",
    ),
    *template_cases(
        "a key in the reserved domain",
        "requirements",
        [requirement("karpenter.sh/x", "Exists")],
        "requirements[0].key",
        "reserved",
    ),
    *template_cases(
        "the host name as key",
        "requirements",
        [requirement("kubernetes.io/hostname", "In", "a")],
        "requirements[0].key",
        "hostname",
    ),
    *template_cases(
        "the capacity type as key",
        "requirements",
        [requirement("karpenter.sh/capacity-type", "In", "spot")],
    ),
    *template_cases(
        "a value that no label can have",
        "requirements",
        [requirement("a", "In", "b c")],
        "requirements[0].values[0]",
        "match",
    ),
    *template_cases(
        "a hundred and one requirements",
        "requirements",
        [requirement("a", "Exists")] * 101,
        "requirements",
        "at most 100",
    ),
    *template_cases("no requirements", "requirements", None, "requirements", "Required value"),
    Case(
        "the pool as key in a NodePool",
        "NodePool",
        {"spec.template.spec.requirements": [requirement("karpenter.sh/nodepool", "In", "a")]},
        "spec.template.spec.requirements[0].key",
        "nodepool",
    ),
    Case(
        "the pool as key in a NodeClaim",
        "NodeClaim",
        {"spec.requirements": [requirement("karpenter.sh/nodepool", "In", "a")]},
    ),
]

TAINTS = [
    case
    for field in ("taints", "startupTaints")
    for case in (
        *template_cases(
            f"{field} with a key and an effect", field, [{"key": "a", "effect": "NoExecute"}]
        ),
        *template_cases(
            f"{field} with a value", field, [{"key": "a.b/c", "value": "d", "effect": "NoSchedule"}]
        ),
        *template_cases(
            f"{field} without an effect", field, [{"key": "a"}], f"{field}[0].effect", "Required"
        ),
        *template_cases(
            f"{field} with an unknown effect",
            field,
            [{"key": "a", "effect": "Never"}],
            f"{field}[0].effect",
            "supported values",
        ),
        *template_cases(
            f"{field} with an empty key",
            field,
            [{"key": "", "effect": "NoSchedule"}],
            f"{field}[0].key",
            "at least 1 chars",
        ),
        *template_cases(
            f"{field} with a value that is no name",
            field,
            [{"key": "a", "value": "b c", "effect": "NoSchedule"}],
            f"{field}[0].value",
            "match",
        ),
    )
]

NODE_CLASS = [
    *template_cases("no node class", "nodeClassRef", None, "nodeClassRef", "Required value"),
    *template_cases(
        "a group with a version", "nodeClassRef.group", "a.b/v1", "nodeClassRef.group", "match"
    ),
    *[
        case
        for part in ("group", "kind", "name")
        for case in (
            *template_cases(
                f"an empty {part}", f"nodeClassRef.{part}", "", f"nodeClassRef.{part}", "empty"
            ),
            *template_cases(
                f"no {part}", f"nodeClassRef.{part}", None, f"nodeClassRef.{part}", "Required"
            ),
        )
    ],
]
