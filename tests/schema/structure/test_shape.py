"""Pruning, defaulting and strict field names."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.api.fields import PLAIN_DURATION
from tenure.schema.structure.phrases import phrase
from tenure.schema.structure.validate import CustomResourceSchema
from tenure.sim.apiserver.objects.customkinds import SERVED_KINDS, schema_for
from tests.schema.objects import Json, a_pool, a_window, an_object


def pool_schema() -> CustomResourceSchema:
    schema = schema_for("karpenter.sh", "NodePool")
    assert schema is not None
    return schema


def test_the_defaults_of_a_pool_are_written_into_it() -> None:
    spec = pool_schema().default(a_pool())["spec"]
    assert spec["disruption"] == {
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
        "expirationPolicy": "WhenAllowed",
    }
    assert spec["template"]["spec"]["expireAfter"] == "720h"
    assert spec["template"]["spec"]["readinessTTL"] == "15m"
    assert "terminationGracePeriod" not in spec["template"]["spec"]
    assert "repair" not in spec


def test_a_repair_block_gets_its_defaults_only_when_it_is_there() -> None:
    spec = pool_schema().default(a_pool({"spec.repair": {}}))["spec"]
    assert spec["repair"] == {"terminationMode": "Forceful", "maxUnhealthy": "20%"}


def test_an_empty_list_of_budgets_stays_empty() -> None:
    spec = pool_schema().default(a_pool({"spec.disruption.budgets": []}))["spec"]
    assert spec["disruption"]["budgets"] == []


def test_what_is_written_is_not_defaulted() -> None:
    written = a_pool({"spec.template.spec.expireAfter": "Never"})
    assert pool_schema().default(written)["spec"]["template"]["spec"]["expireAfter"] == "Never"


def test_a_null_is_as_absent_outside_lists() -> None:
    pool = a_pool()
    pool["spec"] |= {"weight": None, "disruption": None, "limits": {"cpu": None}}
    spec = pool_schema().default(pool)["spec"]
    assert "weight" not in spec
    assert spec["limits"] == {}
    assert spec["disruption"]["consolidateAfter"] == "0s"


def test_a_null_in_a_list_is_an_error() -> None:
    pool = pool_schema().default(a_pool({"spec.disruption.budgets": [None]}))
    assert [error.field for error in pool_schema().validate(pool)] == [
        "spec.disruption.budgets[0]",
        "<nil>",
    ]


def test_a_class_is_born_ready() -> None:
    schema = schema_for("karpenter.kwok.sh", "KWOKNodeClass")
    assert schema is not None
    status = schema.default(an_object("KWOKNodeClass"))["status"]
    assert [(c["type"], c["status"]) for c in status["conditions"]] == [("Ready", "True")]


def test_a_window_blocks_unless_it_says_otherwise() -> None:
    schema = schema_for("karpenter.sh", "MaintenanceWindow")
    assert schema is not None
    assert schema.default(a_window())["spec"]["type"] == "Block"


def test_unknown_fields_are_named_with_their_path_and_dropped() -> None:
    pool = a_pool({"spec.disruption.budgets": [{"nodes": "1", "nodez": "2"}], "spec.foo.bar": 1})
    pool["metadata"]["labelz"] = {}
    assert pool_schema().unknown_fields(pool) == [
        "metadata.labelz",
        "spec.disruption.budgets[0].nodez",
        "spec.foo",
    ]
    pruned = pool_schema().prune(pool)
    assert pruned["spec"]["disruption"]["budgets"] == [{"nodes": "1"}]
    assert pruned["metadata"] == {"name": "sample"}
    assert pool_schema().unknown_fields(pruned) == []


def test_labels_limits_and_owner_references_are_never_unknown() -> None:
    pool = a_pool({"spec.limits": {"example.com/gpu": 1}})
    pool["metadata"] |= {"labels": {"a.b/c": "d"}, "ownerReferences": [{"uid": "x", "odd": 1}]}
    assert pool_schema().unknown_fields(pool) == []
    assert pool_schema().prune(pool) is pool


def test_a_kind_that_is_not_ours_has_no_schema() -> None:
    assert schema_for("apps", "Deployment") is None


# Objects that look like ours, with anything in any place.
FIELD_NAMES = sorted(
    {"spec", "status", "template", "budgets", "nodes", "repair", "policies", "requirements"}
    | {"disruption", "selector", "matchExpressions", "schedules", "actions", "conditions"}
    | {"limits", "labels", "nodeClassRef", "weight", "type", "key", "values", "unheardOf"}
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELD_NAMES), inner, max_size=5)
    ),
    max_leaves=25,
)
KINDS = [pytest.param(custom.resource, id=custom.resource.kind) for custom in SERVED_KINDS]


@pytest.mark.parametrize("resource", KINDS)
@given(spec=ANYTHING, status=ANYTHING)
def test_whatever_is_written_settles_after_one_pass_and_can_be_checked(
    resource: Any, spec: Any, status: Any
) -> None:
    schema = schema_for(resource.group, resource.kind)
    assert schema is not None
    written: Json = {"metadata": {"name": "x"}, "spec": spec, "status": status}
    untouched = deepcopy(written)
    stored = schema.default(schema.prune(written))
    assert repr(written) == repr(untouched)
    assert repr(schema.default(schema.prune(stored))) == repr(stored)
    assert schema.unknown_fields(stored) == []
    schema.validate(stored)
    schema.validate(stored, old=written)


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("14d", "Write 336h: there are no days."),
        ("2 weeks", "Write 336h: there are no days."),
        ("5 minutes", "Write 5m."),
        ("90 Sec", "Write 90s."),
        ("soon", "Use for example 90s, 15m or 1h30m."),
    ],
)
def test_a_duration_that_was_meant_is_said(written: str, hint: str) -> None:
    assert phrase(PLAIN_DURATION, written) == ("whole hours, minutes or seconds", hint)
