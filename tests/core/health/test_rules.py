"""Which conditions mean unhealthy, for how long each is tolerated, and by which policy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.health.facts import Policy, PoolDefault, PoolPolicy, ProviderPolicy
from tenure.core.health.rules import (
    FORCEFUL,
    GRACEFUL,
    Rules,
    UnhealthyCondition,
    unhealthy_conditions,
)
from tenure.model.api.meta import Condition
from tenure.model.api.node import Node
from tenure.model.api.nodepool import Repair
from tenure.model.cloud.repairs import RepairAction, RepairStatement
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import a_node

SINCE = datetime(2024, 11, 1, 15, 2, 48, tzinfo=UTC)
BORN = datetime(2024, 11, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PROVIDER = (
    RepairStatement(condition_type="Ready", status="False", toleration=30 * MINUTE),
    RepairStatement(condition_type="Ready", status="Unknown", reason=".*", toleration=30 * MINUTE),
    RepairStatement(
        condition_type="NetworkUnavailable", status="True", reason=".*", toleration=20 * MINUTE
    ),
)


def unhealthy_node(type_: str, status: str, reason: str = "Broken", at: datetime = SINCE) -> Node:
    condition = Condition(type=type_, status=status, reason=reason, last_transition_time=at)
    return a_node(status={"conditions": (condition,)}, creation_timestamp=BORN)


def a_block(*policies: dict[str, Any], **fields: Any) -> Repair:
    return msgspec.convert({"policies": list(policies), **fields}, Repair)


def found(node: Node, repair: Repair | None = None, **rules: Any) -> list[UnhealthyCondition]:
    given = {"repair": repair, "statements": PROVIDER, **rules}
    return list(unhealthy_conditions(node, Rules(**given)))


SEED = a_block(
    {"conditionType": "Ready", "toleration": "45m"},
    {"conditionType": "NetworkUnavailable", "toleration": "10m"},
    defaultTolerationDuration="30m",
)


@pytest.mark.parametrize(
    ("node", "due"),
    [
        (unhealthy_node("NetworkUnavailable", "True"), "2024-11-01T15:12:48Z"),
        (unhealthy_node("Ready", "False"), "2024-11-01T15:47:48Z"),
        (unhealthy_node("Ready", "Unknown"), "2024-11-01T15:47:48Z"),
    ],
    ids=["no network", "not ready", "unknown"],
)
def test_the_seeds_instants(node: Node, due: str) -> None:
    (unhealthy,) = found(node, SEED)
    assert unhealthy.due_at == datetime.fromisoformat(due)
    assert (unhealthy.mode, unhealthy.action) == (FORCEFUL, RepairAction.REPLACE)


@pytest.mark.parametrize(
    ("repair", "minutes", "policy"),
    [
        pytest.param(None, 30, ProviderPolicy(30 * MINUTE), id="no block"),
        pytest.param(
            a_block(defaultTolerationDuration="7m"),
            7,
            PoolDefault("7m"),
            id="the pool's default",
        ),
        pytest.param(
            a_block({"conditionType": "Ready", "toleration": "5m"}, defaultTolerationDuration="7m"),
            5,
            PoolPolicy("Ready", "5m"),
            id="the pool's entry",
        ),
        pytest.param(
            a_block({"conditionType": "Ready", "toleration": "Never"}),
            None,
            PoolPolicy("Ready", "Never"),
            id="never",
        ),
        pytest.param(
            a_block(defaultTolerationDuration="Never"),
            None,
            PoolDefault("Never"),
            id="never by default",
        ),
    ],
)
def test_precedence_of_policies(repair: Repair | None, minutes: int | None, policy: Policy) -> None:
    (unhealthy,) = found(unhealthy_node("Ready", "False"), repair)
    assert unhealthy.due_at == (SINCE + minutes * MINUTE if minutes is not None else None)
    assert unhealthy.policy == policy


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (["t", "s", "r", "rs"], "rs"),
        (["t", "s", "r"], "r"),
        (["t", "s"], "s"),
        (["t", "t2"], "t"),
        (["r2", "r"], "r2"),
    ],
)
def test_the_most_specific_entry_wins_then_the_first(entries: list[str], expected: str) -> None:
    tolerations = {"t": "1m", "t2": "2m", "s": "3m", "r": "4m", "r2": "5m", "rs": "6m"}
    policies = [
        {
            "conditionType": "Ready",
            "toleration": tolerations[name],
            **({"status": "False"} if "s" in name else {}),
            **({"reason": "^Bro"} if "r" in name else {}),
        }
        for name in entries
    ]
    (unhealthy,) = found(unhealthy_node("Ready", "False"), a_block(*policies))
    assert isinstance(unhealthy.policy, PoolPolicy)
    assert unhealthy.policy.toleration == tolerations[expected]


@pytest.mark.parametrize(
    ("node", "entry", "watched"),
    [
        pytest.param(
            unhealthy_node("DiskPressure", "True"),
            {"conditionType": "DiskPressure"},
            True,
            id="all",
        ),
        pytest.param(
            unhealthy_node("DiskPressure", "False"),
            {"conditionType": "DiskPressure"},
            False,
            id="healthy",
        ),
        pytest.param(unhealthy_node("DiskPressure", "True"), None, False, id="nothing watches it"),
        pytest.param(
            unhealthy_node("GpuBroken", "True"),
            {"conditionType": "GpuBroken", "status": "True"},
            True,
            id="the pool's own",
        ),
        pytest.param(
            unhealthy_node("GpuBroken", "True"),
            {"conditionType": "GpuBroken"},
            False,
            id="no status given",
        ),
        pytest.param(
            unhealthy_node("Ready", "True"), {"conditionType": "Ready"}, False, id="Ready"
        ),
    ],
)
def test_what_is_watched(node: Node, entry: dict[str, Any] | None, watched: bool) -> None:
    repair = a_block({**entry, "toleration": "1m"}) if entry else None
    assert bool(found(node, repair)) is watched


def test_what_only_the_pool_watches_is_replaced_without_a_bound() -> None:
    entry = {"conditionType": "GpuBroken", "status": "True", "toleration": "1m"}
    (unhealthy,) = found(unhealthy_node("GpuBroken", "True"), a_block(entry))
    assert (unhealthy.action, unhealthy.bound, unhealthy.priority) == (
        RepairAction.REPLACE,
        None,
        0,
    )


def test_what_an_entry_leaves_out_is_the_providers() -> None:
    entry = {"conditionType": "KWOKRebootRequired", "toleration": "2m"}
    node = unhealthy_node("KWOKRebootRequired", "True")
    (unhealthy,) = found(node, a_block(entry), statements=kwok_statements())
    assert (unhealthy.action, unhealthy.bound) == (RepairAction.REBOOT, MINUTE)
    assert unhealthy.due_at == SINCE + 2 * MINUTE
    told = {**entry, "action": "Replace", "terminationGracePeriod": "3m"}
    graceful = a_block(told, terminationMode="Graceful")
    (unhealthy,) = found(node, graceful, statements=kwok_statements())
    assert (unhealthy.action, unhealthy.bound) == (RepairAction.REPLACE, 3 * MINUTE)
    assert unhealthy.mode == GRACEFUL


def test_a_pool_without_a_block_is_graceful() -> None:
    (unhealthy,) = found(unhealthy_node("Ready", "False"))
    assert unhealthy.mode == GRACEFUL


def test_a_reason_that_no_statement_names_falls_to_the_fallback() -> None:
    statements = (
        RepairStatement(condition_type="Ready", status="False", toleration=30 * MINUTE),
        RepairStatement(
            condition_type="Ready", status="False", reason="^Disk", toleration=5 * MINUTE
        ),
    )
    (disk,) = found(unhealthy_node("Ready", "False", "DiskGone"), statements=statements)
    (other,) = found(unhealthy_node("Ready", "False", "Tired"), statements=statements)
    assert (disk.due_at, other.due_at) == (SINCE + 5 * MINUTE, SINCE + 30 * MINUTE)


def test_no_node_is_unhealthy_for_longer_than_it_lives_or_than_its_last_reboot() -> None:
    early = unhealthy_node("Ready", "False", at=BORN - timedelta(hours=5))
    (unhealthy,) = found(early)
    assert unhealthy.since == BORN
    (unhealthy,) = unhealthy_conditions(early, Rules(statements=PROVIDER), rebooted_at=SINCE)
    assert unhealthy.since == SINCE


@pytest.mark.parametrize("reason", ["(", "[z-a]"])
def test_an_expression_that_slipped_past_the_schema_matches_nothing(reason: str) -> None:
    entry = {"conditionType": "Ready", "reason": reason, "toleration": "1m"}
    (unhealthy,) = found(unhealthy_node("Ready", "False"), a_block(entry))
    assert unhealthy.policy == PROVIDERS


# -- entries that ask for a reason, and entries that cannot be used ----------------------

DISK = {"conditionType": "DiskPressure", "reason": "^ReadOnly", "toleration": "5m"}
KUBELET = {"conditionType": "Ready", "reason": "^Kubelet", "toleration": "5m"}
PROVIDERS = ProviderPolicy(30 * MINUTE)


@pytest.mark.parametrize(
    ("node", "repair", "policy"),
    [
        pytest.param(
            unhealthy_node("DiskPressure", "True", "Full"), a_block(DISK), None, id="nothing asks"
        ),
        pytest.param(
            unhealthy_node("DiskPressure", "True", "Full"),
            a_block(DISK, defaultTolerationDuration="10m"),
            None,
            id="the default adds nothing",
        ),
        pytest.param(
            unhealthy_node("DiskPressure", "True", "ReadOnlyFilesystem"),
            a_block(DISK, defaultTolerationDuration="10m"),
            PoolPolicy("DiskPressure", "5m", reason="^ReadOnly"),
            id="it is asked for",
        ),
        pytest.param(
            unhealthy_node("DiskPressure", "True", "Full"),
            a_block(DISK, {"conditionType": "DiskPressure", "toleration": "9m"}),
            PoolPolicy("DiskPressure", "9m"),
            id="another entry asks",
        ),
        pytest.param(
            unhealthy_node("Ready", "False", "Tired"),
            a_block(KUBELET, defaultTolerationDuration="10m"),
            PROVIDERS,
            id="the provider asks",
        ),
        pytest.param(
            unhealthy_node("Ready", "False", "Tired"),
            a_block({**KUBELET, "status": "Unknown"}, defaultTolerationDuration="10m"),
            PoolDefault("10m"),
            id="of the other status only",
        ),
        pytest.param(
            unhealthy_node("NetworkUnavailable", "True"),
            a_block(KUBELET, defaultTolerationDuration="10m"),
            PoolDefault("10m"),
            id="of another condition only",
        ),
        pytest.param(
            unhealthy_node("Ready", "False", "Tired"),
            a_block(KUBELET, defaultTolerationDuration="Never"),
            PoolDefault("Never"),
            id="Never takes away all the same",
        ),
        pytest.param(
            unhealthy_node("Ready", "False", "Tired"),
            a_block({**KUBELET, "reason": "("}, defaultTolerationDuration="10m"),
            PoolDefault("10m"),
            id="what cannot be used limits nothing",
        ),
    ],
)
def test_a_reason_limits_the_pools_policy(
    node: Node, repair: Repair, policy: Policy | None
) -> None:
    assert [unhealthy.policy for unhealthy in found(node, repair)] == ([policy] if policy else [])


HOUR = {"conditionType": "Foo", "status": "True", "toleration": "1h"}


@pytest.mark.parametrize(
    "ignored",
    [
        pytest.param({"conditionType": "Foo", "reason": "X", "toleration": "1m"}, id="no status"),
        pytest.param({**HOUR, "reason": "X", "toleration": "soon"}, id="no duration"),
        pytest.param({**HOUR, "reason": "X(", "toleration": "1m"}, id="no expression"),
        pytest.param({**HOUR, "reason": "X" * 257, "toleration": "1m"}, id="too long"),
        pytest.param({**HOUR, "reason": "X", "action": "Hope"}, id="no action"),
        pytest.param(
            {**HOUR, "reason": "X", "terminationGracePeriod": "1m"}, id="a bound without Graceful"
        ),
    ],
)
def test_an_entry_that_cannot_be_used_takes_no_part_in_the_choice(ignored: dict[str, Any]) -> None:
    """It would be the more specific one."""
    (unhealthy,) = found(unhealthy_node("Foo", "True", "X"), a_block(ignored, HOUR))
    assert unhealthy.policy == PoolPolicy("Foo", "1h", status="True")
    assert found(unhealthy_node("Foo", "True", "X"), a_block(ignored)) == []


def test_a_condition_that_is_asked_for_by_reason_only_does_not_count_with_another() -> None:
    """Without its reason it would count as unhealthy."""
    rules = Rules(repair=a_block(DISK), statements=PROVIDER)
    assert ("DiskPressure", "True") in rules.watched
    assert unhealthy_conditions(unhealthy_node("DiskPressure", "True", "Full"), rules) == ()
