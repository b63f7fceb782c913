"""What the checkers let Tenure write and delete beside Karpenter: each promise can be broken."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api import names
from tenure.model.api import resource as r
from tenure.sim.apiserver.routes import Route
from tenure.sim.check.promises import beyond_levers, karpenter_repairs

AT = "2026-03-02T12:00:00Z"
LATER = "2026-03-02T13:00:00Z"
THEIRS = {names.TERMINATION_TIMESTAMP: AT}
OURS = {
    **THEIRS,
    names.TERMINATION_BY: "tenure",
    names.TERMINATION_BECAUSE: "Replaced",
    names.TERMINATION_AT: AT,
}
EDITED = {**OURS, names.TERMINATION_TIMESTAMP: LATER}
COMMAND = {
    names.REPLACED_BY: "b",
    names.DISRUPTION_REASON: "Expired",
    names.DISRUPTED_BY: "tenure",
    names.DISRUPTED_SINCE: AT,
}
MADE = {names.CREATED_BY: "tenure", names.REPLACES: "uid-a"}
LEVER = {
    names.DO_NOT_DISRUPT: "true",
    names.DO_NOT_DISRUPT_BY: "tenure",
    names.DO_NOT_DISRUPT_BECAUSE: "replaces NodeClaim a",
    names.DO_NOT_DISRUPT_UNTIL: "unknown",
}
LABELS = {names.NODEPOOL: "web"}


def stored(annotations: dict[str, Any], **meta: Any) -> dict[str, Any]:
    metadata = {"name": "a", "uid": "uid-a", "resourceVersion": "7", "annotations": annotations}
    return {"metadata": {**metadata, **meta}}


def deletes(there: dict[str, Any], **meta: Any) -> str:
    body = {"preconditions": {"uid": "uid-a", "resourceVersion": "7"}}
    target = Route(r.NODE_CLAIMS, name="a")
    return beyond_levers("DELETE", target, body, stored(there, **meta), {})


def writes(
    there: dict[str, Any],
    written: dict[str, Any],
    resource: r.Resource = r.NODE_CLAIMS,
    **meta: Any,
) -> str:
    metadata = {"annotations": written, "uid": "uid-a", "resourceVersion": "7"}
    target = Route(resource, name="a")
    return beyond_levers("PATCH", target, {"metadata": metadata}, stored(there, **meta), {})


def creates(annotations: dict[str, Any], there: dict[str, Any], **meta: Any) -> str:
    """A replacement with these annotations, of claim a that has those."""
    owner = {"kind": "NodePool", "name": "web", "uid": "uid-web"}
    group = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    metadata = {"labels": LABELS, "annotations": annotations, "ownerReferences": [owner], **meta}
    template = {"spec": {"nodeClassRef": group}}
    pool = {"metadata": {"name": "web", "uid": "uid-web"}, "spec": {"template": template}}
    state = {r.NODE_POOLS: {"web": pool}, r.NODE_CLAIMS: {"a": stored(there, labels=LABELS)}}
    body = {"metadata": metadata, "spec": {"nodeClassRef": group}}
    return beyond_levers("POST", Route(r.NODE_CLAIMS, name=""), body, None, state)


def without(there: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in there.items() if key not in keys}


@pytest.mark.parametrize("there", [COMMAND, {**COMMAND, **OURS}, MADE, OURS, {**MADE, **OURS}])
def test_what_tenure_replaces_has_created_or_stamped_is_deleted(there: dict[str, Any]) -> None:
    assert deletes(there) == ""


@pytest.mark.parametrize(
    "there",
    [
        {},
        {names.REPLACED_BY: "b"},
        without(COMMAND, names.DISRUPTED_BY),
        {**COMMAND, names.DISRUPTED_BY: "a user"},
        {**COMMAND, names.DISRUPTION_REASON: "Drifted"},
        {names.CREATED_BY: "tenure"},
        {**MADE, names.CREATED_BY: "a user"},
        without(OURS, names.TERMINATION_BY),
        without(OURS, names.TERMINATION_AT),
        {**OURS, names.TERMINATION_TIMESTAMP: "soon", names.TERMINATION_AT: "soon"},
    ],
)
def test_any_other_claim_is_not(there: dict[str, Any]) -> None:
    assert "of ours" in deletes(there) or "another program's" in deletes(there)


@pytest.mark.parametrize("deadline", [THEIRS, EDITED])
@pytest.mark.parametrize("there", [COMMAND, MADE, {}])
def test_a_claim_with_a_deadline_of_another_program_is_not(
    there: dict[str, Any], deadline: dict[str, Any]
) -> None:
    assert "its deadline is another program's" in deletes({**there, **deadline})


def test_a_deadline_is_set_and_goes_with_its_marks() -> None:
    for there in ({}, COMMAND):
        assert writes(there, OURS) == ""
        assert "without its marks" in writes(there, THEIRS)
        assert "without its marks" in writes(there, EDITED)
        for mark in set(OURS) - set(THEIRS):
            assert "without its marks" in writes(there, without(OURS, mark))
        assert writes({**there, **OURS}, dict.fromkeys(OURS)) == ""
        assert "without a deadline" in writes({**there, **OURS}, dict.fromkeys(THEIRS))


@pytest.mark.parametrize("deadline", [THEIRS, EDITED])
def test_a_deadline_of_another_program_stays_in_the_middle_of_a_command(
    deadline: dict[str, Any],
) -> None:
    there = {**COMMAND, **deadline}
    said = "the deadline is another program's"
    assert said in writes(there, OURS)
    assert said in writes(there, dict.fromkeys(THEIRS))
    assert said in writes(there, dict.fromkeys(there))
    marks = set(there) - set(THEIRS)
    assert writes(there, dict.fromkeys(marks)) == "", "only our marks go"
    assert writes(there, OURS, deletionTimestamp=AT) == "", "it is brought forward"
    assert "another program's" in writes(deadline, COMMAND), "no command begins"


@pytest.mark.parametrize("deadline", [THEIRS, EDITED, OURS])
@pytest.mark.parametrize("there", [COMMAND, {names.REPLACED_BY: "b"}, {}])
def test_a_claim_that_is_being_deleted_keeps_its_deadline(
    there: dict[str, Any], deadline: dict[str, Any]
) -> None:
    """Without it the drain would wait again, in the middle: the guard refuses that, too."""
    annotations = {**there, **deadline}
    for gone in (dict.fromkeys(THEIRS), dict.fromkeys(OURS), dict.fromkeys(annotations)):
        said = writes(annotations, gone, deletionTimestamp=AT)
        assert "the deadline of a NodeClaim that is being deleted" in said


def test_marks_are_not_written_beside_another_programs_deadline() -> None:
    assert "not of this deadline" in writes(
        THEIRS, without(OURS, *THEIRS) | {names.TERMINATION_AT: "x"}
    )
    assert "not of this deadline" in writes({}, {names.TERMINATION_BY: "tenure"})


def test_the_lever_of_a_replacement_goes_only_where_it_is_ours() -> None:
    assert writes({**MADE, **LEVER}, dict.fromkeys({**MADE, **LEVER})) == ""
    for theirs in (
        {**LEVER, names.DO_NOT_DISRUPT: "2h"},
        {**LEVER, names.DO_NOT_DISRUPT_BY: "a user"},
        {names.DO_NOT_DISRUPT: "true"},
    ):
        there = {**MADE, **theirs}
        assert "a user's value" in writes(there, dict.fromkeys(there))


def test_the_lever_of_a_node_goes_only_where_it_is_ours() -> None:
    assert writes(LEVER, dict.fromkeys(LEVER), r.NODES) == ""
    for theirs in (
        {**LEVER, names.DO_NOT_DISRUPT: "2h"},
        {**LEVER, names.DO_NOT_DISRUPT_BY: "a user"},
        {names.DO_NOT_DISRUPT: "true"},
    ):
        assert "is a user's" in writes(theirs, dict.fromkeys(LEVER), r.NODES)


def test_a_replacement_is_created_for_a_claim_whose_deadline_is_not_another_programs() -> None:
    assert creates({**MADE, **LEVER}, {}) == ""
    assert creates({**MADE, **LEVER}, OURS) == ""
    for deadline in (THEIRS, EDITED):
        assert "deadline is another program's" in creates({**MADE, **LEVER}, deadline)


@pytest.mark.parametrize(
    "lever",
    [
        {**LEVER, names.DO_NOT_DISRUPT: "2h"},
        {**LEVER, names.DO_NOT_DISRUPT_BY: "a user"},
        {**LEVER, names.DO_NOT_DISRUPT_UNTIL: ""},
        without(LEVER, names.DO_NOT_DISRUPT_BECAUSE),
    ],
)
def test_a_replacement_has_a_whole_lever_of_ours(lever: dict[str, Any]) -> None:
    assert "while it is empty" in creates({**MADE, **lever}, {})


def test_a_replacement_belongs_to_its_pool() -> None:
    assert "of no NodePool" in creates({**MADE, **LEVER}, {}, ownerReferences=[])


def test_a_command_of_others_gets_no_mark_of_ours() -> None:
    """It is rolled back, or left alone."""
    for theirs in (without(COMMAND, names.DISRUPTED_BY), {**COMMAND, names.DISRUPTED_BY: "a user"}):
        assert "without a mark of ours" in writes(theirs, {names.REPLACED_BY: "b,c"})
        assert "without a mark of ours" in writes(theirs, {names.REPAIR_REASON: "Unhealthy"})
        assert "without a mark of ours" in writes(theirs, {names.DISRUPTION_REASON: "Unhealthy"})
        assert writes(theirs, dict.fromkeys(COMMAND)) == ""


@pytest.mark.parametrize(
    ("container", "repairs"),
    [
        ({}, False),
        ({"env": [{"name": "FEATURE_GATES", "value": "NodeRepair=false"}]}, False),
        ({"env": [{"name": "FEATURE_GATES", "value": "nodeRepair=True"}]}, True),
        ({"args": ["--feature-gates=NodeRepair=true"]}, True),
        ({"env": [{"name": "FEATURE_GATES", "valueFrom": {}}]}, True),
        (
            {
                "args": ["--feature-gates=A=true"],
                "env": [{"name": "FEATURE_GATES", "valueFrom": {}}],
            },
            False,
        ),
    ],
)
def test_karpenter_repairs_where_its_gate_is_on_or_not_known(
    container: dict[str, Any], repairs: bool
) -> None:
    spec = {"template": {"spec": {"containers": [container]}}}
    labels = {"app.kubernetes.io/name": "karpenter"}
    assert karpenter_repairs("", [{"metadata": {"labels": labels}, "spec": spec}]) is repairs
    assert karpenter_repairs("NodeRepair=true", []) is True
