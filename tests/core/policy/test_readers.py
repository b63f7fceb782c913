"""Objects that fail by themselves are set aside before any decider sees them."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.policy.readers import READERS
from tenure.model.api import resource as r
from tenure.model.snapshot.snapshot import Tables
from tests.core.build import a_claim, a_node, a_pdb, a_pod, a_policy, a_pool, a_window
from tests.faults import ERRORS, faulty

OBJECTS = {
    r.PODS: a_pod(),
    r.NODES: a_node(),
    r.NODE_CLAIMS: a_claim(),
    r.NODE_POOLS: a_pool(),
    r.POD_DISRUPTION_BUDGETS: a_pdb(),
    r.MAINTENANCE_WINDOWS: a_window(),
    r.NODE_POOL_POLICIES: a_policy(),
}


@pytest.mark.parametrize("resource", READERS, ids=str)
def test_an_object_that_fails_by_itself_gets_a_stand_in_when_it_arrives(
    resource: r.Resource,
) -> None:
    tables, item = Tables(READERS), OBJECTS[resource]
    tables.put(resource, item)
    assert not tables.unreadable
    for error in ERRORS:
        tables.put(resource, faulty(item, error))
        (found,) = tables.unreadable.values()
        assert type(error()).__name__ in found.problem  # type: ignore[attr-defined]  # a stand-in
    tables.put(resource, item)
    assert not tables.unreadable, "until it changes"


@pytest.mark.parametrize(
    "odd",
    [
        a_pod(requests={"cpu": "much"}),
        a_pod(spec={"node_selector": {"a b": "c d"}}),
        a_claim(spec={"termination_grace_period": "soon"}),
        a_pool(limits={"cpu": "much"}),
    ],
    ids=lambda item: type(item).__name__,
)
def test_an_invalid_field_is_reported_by_the_deciders(odd: Any) -> None:
    tables = Tables(READERS)
    (resource,) = (kind for kind, item in OBJECTS.items() if type(item) is type(odd))
    tables.put(resource, odd)
    assert not tables.unreadable
