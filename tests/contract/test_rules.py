"""Every validation rule of the custom kinds, kept and broken: the cases of ``tests/schema``."""

from __future__ import annotations

import pytest

from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects.kinds import ALL
from tests.contract.backends import Answer, Backend
from tests.schema.cases import CASES, GOOD_CASES, Case

BAD_CASES = [case for case in CASES if case.field]


@pytest.mark.parametrize("case", GOOD_CASES, ids=lambda case: case.says)
async def test_what_keeps_the_rules_is_accepted(api: Backend, case: Case) -> None:
    answer = await _tried(api, case)
    assert answer.status in (200, 201), answer


@pytest.mark.parametrize("case", BAD_CASES, ids=lambda case: case.says)
async def test_what_breaks_a_rule_is_refused_where_it_is_broken(api: Backend, case: Case) -> None:
    answer = await _tried(api, case)
    assert (answer.status, answer.reason) == (422, "Invalid"), answer
    there = [cause["message"] for cause in answer.causes if cause["field"] == case.field]
    assert any(case.message in message for message in there), answer.causes


async def _tried(api: Backend, case: Case) -> Answer:
    """The answer to creating the object, or to changing it where a change is evaluated."""
    resource = _resource(case)
    if case.old is None:
        return await api.send("POST", resource.path(), case.object, dryRun="All")
    name = api.unique("sample")
    before = await api.created(resource, {**case.old, "metadata": {"name": name}})
    metadata = {"name": name, "resourceVersion": before["metadata"]["resourceVersion"]}
    return await api.put(resource, {**case.object, "metadata": metadata})


def _resource(case: Case) -> Resource:
    api_version = case.object["apiVersion"]
    return next(one for one in ALL if (one.kind, one.api_version) == (case.kind, api_version))
