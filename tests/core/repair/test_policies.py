"""By which rules a node would be repaired, and by whose word, before anything is wrong with it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.health.rules import Rules, unhealthy_conditions
from tenure.core.repair.policies import Prospect, in_words, what_would_happen
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


def rows(node: Node, by: Rules) -> list[tuple[str, str, str]]:
    """Condition, what means unhealthy, what is done."""
    return [
        (row.condition_type, " ".join((*row.statuses, row.reason)).strip(), row.then)
        for row in what_would_happen(node, by)
    ]


def test_without_a_block_the_provider_says_it_all() -> None:
    assert rows(a_node(), rules()) == [
        ("Ready", "False Unknown", "replaced gracefully, then terminated at once"),
        ("KWOKRebootRequired", "True", "rebooted, drained for 1m at the most"),
        ("KWOKUnhealthy", "True", "replaced gracefully, drained within 45s"),
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
        then="replaced forcefully",
        policy="the pool's policy for Ready: toleration 45m",
        now=a_node().status.conditions[0],
    )
    assert (found["KWOKUnhealthy"].toleration, found["KWOKUnhealthy"].then) == (None, "nothing")
    assert found["GpuBroken"].then == "reported only"
    assert found["KWOKRebootRequired"].policy == "the provider's toleration of 30s"


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
        ("Ready", "False ^Disk", "drained and rebooted"),
        ("Ready", "False", "replaced gracefully"),
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
        ("Forceful", None, "replaced forcefully"),
        ("Graceful", None, "replaced gracefully"),
        ("Graceful", "10m", "replaced gracefully, drained within 10m"),
        ("Graceful", "0s", "replaced gracefully, then terminated at once"),
    ],
)
def test_how_it_goes_is_said(mode: str, grace: str | None, then: str) -> None:
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
    """Whatever is made of a unhealthy condition stands in a row, with the same word and instant."""
    block = {"defaultTolerationDuration": default} if default else {}
    by = rules(*policies, **block)
    node = an_unhealthy_node(type_, status, reason)
    told = [
        (row.policy, row.then, row.since, row.due_at)
        for row in what_would_happen(node, by)
        if row.since is not None
    ]
    came = [
        (one.policy, in_words(one), one.since, one.due_at) for one in unhealthy_conditions(node, by)
    ]
    assert sorted(told, key=repr) == sorted(came, key=repr)
