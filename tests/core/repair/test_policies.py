"""By which rules a node would be repaired, and by whose word, before anything is wrong with it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.health.facts import PoolPolicy, ProviderPolicy
from tenure.core.health.rules import Rules, unhealthy_conditions
from tenure.core.repair.facts import Means, Remedy
from tenure.core.repair.policies import Prospect, remedy, what_would_happen
from tenure.model.api.meta import Condition
from tenure.model.api.node import Node
from tenure.model.cloud.repairs import RepairAction, RepairStatement
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import TEN_MINUTES_AGO, a_node, a_pool

PROVIDER = kwok_statements(ready=timedelta(minutes=30))
MINUTE = timedelta(minutes=1)


def rules(*policies: dict[str, Any], stated: Any = PROVIDER, **block: Any) -> Rules:
    pool = a_pool(repair={"policies": list(policies), **block}) if policies or block else a_pool()
    return Rules(repair=pool.spec.repair, statements=stated)


def an_unhealthy_node(type_: str, status: str, reason: str = "Broken") -> Node:
    told = Condition(type=type_, status=status, reason=reason, last_transition_time=TEN_MINUTES_AGO)
    return a_node(ready=None, status={"conditions": (told,)})


def rows(node: Node, by: Rules) -> list[tuple[str, str, Remedy]]:
    """Condition, what means unhealthy, what is done."""
    return [
        (row.condition_type, " ".join((*row.statuses, row.reason)).strip(), row.then)
        for row in what_would_happen(node, by)
    ]


def test_without_a_block_the_provider_says_it_all() -> None:
    assert rows(a_node(), rules()) == [
        ("Ready", "False Unknown", Remedy(Means.GRACEFUL, timedelta())),
        ("KWOKRebootRequired", "True", Remedy(Means.REBOOT, MINUTE)),
        ("KWOKUnhealthy", "True", Remedy(Means.GRACEFUL, timedelta(seconds=45))),
    ]


def test_a_block_says_it_for_its_conditions_and_makes_others_watched() -> None:
    by = rules(
        {"conditionType": "Ready", "toleration": "45m"},
        {"conditionType": "KWOKUnhealthy", "toleration": "Never"},
        {"conditionType": "GpuBroken", "status": "True", "toleration": "5m", "action": "None"},
    )
    found = {row.condition_type: row for row in what_would_happen(a_node(), by)}
    assert found["Ready"] == Prospect(
        condition_type="Ready",
        statuses=("False", "Unknown"),
        reason="",
        toleration=45 * MINUTE,
        then=Remedy(Means.FORCEFUL),
        policy=PoolPolicy("Ready", "45m"),
        now=a_node().status.conditions[0],
    )
    never = found["KWOKUnhealthy"]
    assert (never.toleration, never.then) == (None, Remedy(Means.NOTHING))
    assert found["GpuBroken"].then == Remedy(Means.REPORT)
    assert found["KWOKRebootRequired"].policy == ProviderPolicy(timedelta(seconds=30))


def test_the_more_specific_comes_first() -> None:
    by = rules(
        {"conditionType": "Ready", "toleration": "40m"},
        {"conditionType": "Ready", "status": "Unknown", "toleration": "30m"},
        {"conditionType": "Ready", "reason": "^Kubelet", "toleration": "20m"},
        {"conditionType": "Ready", "status": "Unknown", "reason": "^Net", "toleration": "10m"},
        stated=(),
    )
    found = [(row.statuses, row.reason, row.toleration) for row in what_would_happen(a_node(), by)]
    assert found == [
        (("Unknown",), "^Net", 10 * MINUTE),
        (("False", "Unknown"), "^Kubelet", 20 * MINUTE),
        (("Unknown",), "", 30 * MINUTE),
        (("False",), "", 40 * MINUTE),
    ]


def test_what_the_provider_tells_apart_by_reason_is_told_apart() -> None:
    stated = (
        RepairStatement(condition_type="Ready", status="False", toleration=30 * MINUTE),
        RepairStatement(
            condition_type="Ready",
            status="False",
            reason="^Disk",
            toleration=5 * MINUTE,
            action=RepairAction.REBOOT,
        ),
    )
    assert rows(a_node(), rules(stated=stated)) == [
        ("Ready", "False ^Disk", Remedy(Means.REBOOT)),
        ("Ready", "False", Remedy(Means.GRACEFUL)),
    ]


def test_an_unhealthy_node_has_its_instant_in_the_row_that_counts() -> None:
    by = rules(
        {"conditionType": "Ready", "reason": "^Kubelet", "toleration": "20m"},
        {"conditionType": "Ready", "toleration": "40m"},
    )
    kubelet, other = (
        [(row.reason, row.since, row.due_at) for row in what_would_happen(node, by)][:2]
        for node in (
            an_unhealthy_node("Ready", "False", "KubeletDead"),
            an_unhealthy_node("Ready", "False"),
        )
    )
    idle = (None, None)
    assert kubelet == [
        ("^Kubelet", TEN_MINUTES_AGO, TEN_MINUTES_AGO + 20 * MINUTE),
        ("", *idle),
    ]
    assert other == [("^Kubelet", *idle), ("", TEN_MINUTES_AGO, TEN_MINUTES_AGO + 40 * MINUTE)]


def test_conditions_that_the_node_has_come_first() -> None:
    unhealthy_node = an_unhealthy_node("KWOKUnhealthy", "True")
    assert [row[0] for row in rows(unhealthy_node, rules())] == [
        "KWOKUnhealthy",
        "KWOKRebootRequired",
        "Ready",
    ]


@pytest.mark.parametrize(
    ("mode", "grace", "then"),
    [
        ("Forceful", None, Remedy(Means.FORCEFUL)),
        ("Graceful", None, Remedy(Means.GRACEFUL)),
        ("Graceful", "10m", Remedy(Means.GRACEFUL, 10 * MINUTE)),
        ("Graceful", "0s", Remedy(Means.GRACEFUL, timedelta())),
    ],
)
def test_how_it_goes_is_said(mode: str, grace: str | None, then: Remedy) -> None:
    entry = {"conditionType": "DiskPressure", "toleration": "5m", "terminationMode": mode}
    by = rules(entry | ({"terminationGracePeriod": grace} if grace else {}), stated=())
    assert rows(a_node(), by) == [("DiskPressure", "True", then)]


@given(
    policies=st.lists(
        st.fixed_dictionaries(
            {
                "conditionType": st.sampled_from(["Ready", "KWOKUnhealthy", "DiskPressure"]),
                "toleration": st.sampled_from(["5m", "1h", "Never"]),
            },
            optional={
                "status": st.sampled_from(["True", "False", "Unknown"]),
                "reason": st.sampled_from(["^A", "B$", ".*"]),
                "action": st.sampled_from(["Replace", "Reboot", "None"]),
                "terminationMode": st.sampled_from(["Forceful", "Graceful"]),
            },
        ),
        max_size=4,
    ),
    type_=st.sampled_from(["Ready", "KWOKUnhealthy", "KWOKRebootRequired", "DiskPressure"]),
    status=st.sampled_from(["True", "False", "Unknown"]),
    reason=st.sampled_from(["", "AB", "C"]),
    default=st.sampled_from([None, "7m"]),
)
def test_what_comes_true_was_foretold(
    policies: list[dict[str, Any]], type_: str, status: str, reason: str, default: str | None
) -> None:
    """Whatever is made of an unhealthy condition is in a row, with the same policy and instant."""
    block = {"defaultTolerationDuration": default} if default else {}
    by = rules(*policies, **block)
    node = an_unhealthy_node(type_, status, reason)
    told = [
        (row.policy, row.then, row.since, row.due_at)
        for row in what_would_happen(node, by)
        if row.since is not None
    ]
    came = [
        (one.policy, remedy(one), one.since, one.due_at) for one in unhealthy_conditions(node, by)
    ]
    assert sorted(told, key=repr) == sorted(came, key=repr)
