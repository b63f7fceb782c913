"""What keeps a node: the gate that ends last is told, and the objects of all of them are listed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.decision import Verdict
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.forecast.forecast import Horizon, forecast
from tenure.core.gates.facts import BlockedByObject, BudgetUse
from tenure.core.gates.operations import Gate
from tenure.core.protect.protection import Protection
from tenure.core.reasons import Reason
from tenure.core.terminate.facts.pods import PdbNeverAllows
from tenure.core.windows.facts import OutsideAllowWindows, WindowBlocks
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.nodepool import NodePool
from tenure.model.api.window import MaintenanceWindow
from tests.core.build import (
    NOW,
    SETTINGS,
    a_claim,
    a_class,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pdb,
    a_pod,
    a_pool,
    about,
    ago,
    ahead,
    condition,
    evaluated,
    meta,
    types,
)
from tests.snapshots import snapshot_with

HOUR = 3600
DRIFTED = condition("Drifted", at=ago(60))
#: It allows nothing before 02:00; now it is 12:00.
NIGHT = {"type": "Allow", "schedules": [{"cron": "0 2 * * *", "duration": "2h"}]}
NEVER: dict[str, Any] = {"type": "Block"}
CLOSED = [{"nodes": "0"}]
#: Until 13:00.
CLOSED_NOW = [{"nodes": "0", "schedule": "0 11 * * *", "duration": "2h"}, {"nodes": "100%"}]
OPEN = [{"nodes": "100%"}]


def a_window(name: str, spec: dict[str, Any]) -> MaintenanceWindow:
    found = msgspec.convert({"spec": {"actions": ["Drift"], **spec}}, MaintenanceWindow)
    return msgspec.structs.replace(found, metadata=meta(name))


def pool_with(budgets: list[dict[str, str]]) -> NodePool:
    return a_pool(disruption={"budgets": budgets})


def drifted(**pod: Any) -> list[Any]:
    claim = a_claim(conditions=[DRIFTED], spec={"expire_after": "Never"})
    return [claim, a_node(), a_pod(conditions=[condition("Ready")], **pod)]


def protected(value: str) -> list[Any]:
    return drifted(annotations={DO_NOT_DISRUPT: value})


def kept_by_pdb() -> list[Any]:
    return [*drifted(), a_pdb(expected_pods=1, current_healthy=1, desired_healthy=1)]


def on_claim(*objects: Any) -> Verdict:
    known: dict[str, Any] = {"instance_types": types()}
    found = evaluated(DisruptionDecider(), a_class(), *objects, **known)
    return about(found, "NodeClaim/a")


def test_a_pdb_that_never_allows_an_eviction_comes_before_a_window_that_opens() -> None:
    """The window comes first in the list of gates. To wait for it would be in vain."""
    told = on_claim(pool_with(OPEN), a_window("nights", NIGHT), *kept_by_pdb())
    assert (told.reason, told.gate) == (Reason.DISRUPTION_BLOCKED, Gate.PODS)
    assert isinstance(told.facts[1], BlockedByObject)
    assert isinstance(told.facts[1].fact, PdbNeverAllows)
    pdb, window = told.blockers
    assert str(pdb.subject) == "PodDisruptionBudget/default/web"
    assert (pdb.until, pdb.lasting) == (None, True)
    assert str(window.subject) == "MaintenanceWindow/nights"
    assert (window.until, window.lasting) == (ahead(14 * HOUR), False)


def test_all_gates_are_listed_and_what_ends_last_comes_first() -> None:
    told = on_claim(pool_with(CLOSED_NOW), a_window("nights", NIGHT), *protected("5h"))
    assert told.gate == Gate.WINDOW
    assert [(str(one.subject), one.until) for one in told.blockers] == [
        ("MaintenanceWindow/nights", ahead(14 * HOUR)),
        ("Pod/default/web", ahead(4 * HOUR)),
        ("NodePool/general", ahead(HOUR)),
    ]


def test_what_ends_with_others_comes_last() -> None:
    """A budget that other nodes use up opens when these are gone, and nobody knows when."""
    others = [a_leaving_claim("b"), a_leaving_node("node-b", claim="b")]
    one = [{"nodes": "1"}]
    told = on_claim(pool_with(one), a_window("nights", NIGHT), *drifted(), *others)
    assert told.gate == Gate.WINDOW
    last = told.blockers[-1]
    assert (str(last.subject), last.until, last.lasting) == ("NodePool/general", None, False)
    assert isinstance(last.fact, BudgetUse)


def test_of_those_that_only_a_user_ends_the_first_gate_is_told() -> None:
    told = on_claim(pool_with(CLOSED), a_window("freeze", NEVER), *kept_by_pdb())
    assert told.gate == Gate.WINDOW
    assert [(one.subject.kind, one.lasting) for one in told.blockers] == [
        ("MaintenanceWindow", True),
        ("NodePool", True),
        ("PodDisruptionBudget", True),
    ]


def test_a_switch_is_named_by_its_flag() -> None:
    off = msgspec.structs.replace(SETTINGS, voluntary_disruption=False)
    objects = (a_class(), pool_with(OPEN), *drifted())
    found = evaluated(DisruptionDecider(), *objects, settings=off, instance_types=types())
    (switch,) = about(found, "NodeClaim/a").blockers
    assert (str(switch.subject), switch.lasting) == ("Setting/--voluntary-disruption", True)


def test_it_is_evaluated_again_when_any_of_them_may_change() -> None:
    told = on_claim(pool_with(CLOSED_NOW), a_window("nights", NIGHT), *kept_by_pdb())
    assert told.recheck_at == ahead(HOUR)


@pytest.mark.parametrize("windows", [[], [NIGHT], [NEVER]], ids=["open", "night", "never"])
@pytest.mark.parametrize("budgets", [OPEN, CLOSED_NOW, CLOSED], ids=["open", "until 13:00", "0"])
@pytest.mark.parametrize(
    "objects", [drifted(), protected("5h"), protected("true"), kept_by_pdb()],
    ids=["free", "5h", "protected", "pdb"],
)  # fmt: skip
def test_verdict_and_calendar_agree_on_what_keeps_a_node_for_ever(
    windows: list[Any], budgets: list[Any], objects: list[Any]
) -> None:
    spans = [a_window(f"w{index}", spec) for index, spec in enumerate(windows)]
    everything = [pool_with(budgets), *spans, *objects]
    told = on_claim(*everything)
    found = forecast(snapshot_with(a_class(), *everything), SETTINGS, NOW, Horizon())
    (rotation,) = found.pools[0].rotations
    for_ever = bool(told.blockers) and told.blockers[0].lasting
    assert bool(rotation.never) is for_ever
    if for_ever:
        assert kind_of(rotation.why[0][1]) == told.gate
    else:
        assert rotation.started == 1


def kind_of(why: object) -> Gate:
    match why:
        case WindowBlocks() | OutsideAllowWindows():
            return Gate.WINDOW
        case Protection() | PdbNeverAllows():
            return Gate.PODS
        case _:
            return Gate.BUDGET
