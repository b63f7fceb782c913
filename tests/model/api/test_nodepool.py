"""How pools are read: every form that an API server may hand out."""

from __future__ import annotations

import msgspec
import pytest

from tenure.model.api.nodepool import Budget, NodePool


def decode(text: str) -> NodePool:
    return msgspec.json.decode(text, type=NodePool)


@pytest.mark.parametrize("written", ["500", '"500"', "0.5"], ids=["number", "text", "fraction"])
def test_a_limit_is_read_in_the_form_it_was_written(written: str) -> None:
    pool = decode(f'{{"spec": {{"limits": {{"cpu": {written}}}}}}}')
    assert pool.spec.limits["cpu"] == msgspec.json.decode(written)


def test_without_budgets_a_tenth_of_the_pool_may_leave() -> None:
    assert decode("{}").spec.disruption.budgets == (Budget(nodes="10%"),)


def test_an_empty_list_of_budgets_is_not_an_absent_one() -> None:
    assert decode('{"spec": {"disruption": {"budgets": []}}}').spec.disruption.budgets == ()


def test_a_pool_without_a_repair_block_has_none() -> None:
    assert decode("{}").spec.repair is None


def test_an_empty_repair_block_is_forceful_and_stops_at_a_fifth() -> None:
    repair = decode('{"spec": {"repair": {}}}').spec.repair
    assert repair is not None
    assert (repair.termination_mode, repair.max_unhealthy) == ("Forceful", "20%")


def test_the_names_with_capitals_are_read() -> None:
    template = '{"template": {"spec": {"readinessTTL": "5m", "initializationTTL": "1h"}}}'
    spec = decode(f'{{"spec": {template}}}').spec.template.spec
    assert (spec.readiness_ttl, spec.initialization_ttl) == ("5m", "1h")


@pytest.mark.parametrize(
    "spec",
    [
        '{"disruption": {"consolidateAfter": "1d", "consolidationPolicy": "Whenever"}}',
        '{"weight": 1000}',
        '{"disruption": {"budgets": [{"nodes": "900%", "schedule": "whenever"}]}}',
        '{"fieldOfTheFuture": {"x": 1}}',
    ],
    ids=["a bad duration", "a bad number", "a bad budget", "an unknown field"],
)
def test_what_an_older_schema_let_in_can_still_be_read(spec: str) -> None:
    assert decode(f'{{"metadata": {{"name": "old"}}, "spec": {spec}}}').name == "old"


def test_replicas_make_a_pool_static_even_when_there_are_none() -> None:
    assert decode('{"spec": {"replicas": 0}}').static
    assert not decode("{}").static


def test_a_pool_without_a_weight_weighs_nothing() -> None:
    assert decode("{}").weight == 0
    assert decode('{"spec": {"weight": 7}}').weight == 7


def test_a_pool_is_ready_when_its_condition_says_so() -> None:
    conditions = '[{"type": "Ready", "status": "True", "reason": "Ready"}]'
    pool = decode(f'{{"status": {{"conditions": {conditions}}}}}')
    assert pool.ready
    ready = pool.condition("Ready")
    assert ready is not None
    assert ready.reason == "Ready"
    assert pool.node_class_ref.name == ""
