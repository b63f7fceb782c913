"""What an update may not do, static pools, and plain numbers."""

from __future__ import annotations

from tests.schema.cases.case import Case, pool_case

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
    pool_case("replicas are not negative", "spec.replicas", -1, "spec.replicas", "equal to 0"),
]

NUMBERS = [
    pool_case("a weight from 1", "spec.weight", 1),
    pool_case("a weight to 100", "spec.weight", 100),
    pool_case("a weight of zero", "spec.weight", 0, "spec.weight", "equal to 1"),
    pool_case("a weight beyond 100", "spec.weight", 101, "spec.weight", "equal to 100"),
    pool_case("a weight in words", "spec.weight", "ten", "spec.weight", "of type integer"),
    pool_case("limits as numbers and text", "spec.limits", {"cpu": 500, "memory": "1.5Ti"}),
    pool_case(
        "a limit that cannot be read", "spec.limits", {"cpu": "many"}, "spec.limits.cpu", "match"
    ),
    pool_case("a limit that is no amount", "spec.limits", {"cpu": True}, "spec.limits.cpu", "type"),
]
