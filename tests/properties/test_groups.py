"""Claims that are replaced together, in every state that crashes, users and clouds may leave them in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenure.core.decision import Delete
from tenure.core.disrupt.orchestrate import ReplacementDecider
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.marks.command import command_of, is_replaced
from tenure.core.policy.deciders import UNMOVED, decide_all, deciders
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import (
    DISRUPTION_REASON,
    DO_NOT_DISRUPT,
    INTERRUPTION,
    REPLACED_BY,
    REPLACES,
)
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.runtime.evaluate.evaluator import Evaluator
from tests.core.build import (
    DISRUPTED,
    NOW,
    a_claim,
    a_class,
    a_node,
    a_pod,
    a_pool,
    a_window,
    ago,
    condition,
    types,
)
from tests.core.disrupt.merged import FORGETFUL, MERGE, MERGES, REASON
from tests.properties.deciderchecks import (
    SETTINGS,
    check_honest_recheck,
    check_one_verdict_per_subject,
)
from tests.properties.thoroughness import reached, tried
from tests.snapshots import RESOURCE_OF, snapshot_with

HALF = {"cpu": "1900m", "memory": "1Gi"}
KNOWN = Observations(instance_types=types())
LATER = [timedelta(seconds=seconds) for seconds in (1, 30, 61, 1000)]

#: Of a claim that is to be replaced.
OLD = (
    *("free", "committed", "marked", "marked", "marked"),
    *("terminating", "interrupted", "taken over", "protected", "unwanted", "no Node", "gone"),
)
#: Of a replacement: its stage, and what it is.
NEW = ("launched", "registered", "up", "up", "up", "terminating", "gone")
UIDS = ("uid-a,uid-b,uid-c", "uid-a,uid-b,uid-c", "uid-a,uid-b,uid-c", "uid-a,uid-b", "uid-a")
NAMED = ("x,y", "x,y", "x,y", "x", "")
BUDGETS = (
    [{"nodes": "100%"}],
    [{"nodes": "100%"}],
    [{"nodes": "2"}],
    [{"nodes": "0"}],
    [{"nodes": "100%"}, {"nodes": "5", "within": "1h"}],
)


@st.composite
def groups(draw: st.DrawFn) -> list[ApiObject]:
    found: list[ApiObject] = [a_class()]
    budgets = draw(st.sampled_from(BUDGETS))
    found += [a_pool(name, disruption={"budgets": budgets}) for name in ("general", "other")]
    if draw(st.integers(0, 7)) == 0:
        found.append(a_window("0 11 * * *", spec={"actions": ["Drift"]}))
    for name in "abc":
        found += _old(name, draw(st.sampled_from(OLD)), draw)
    for name in "xy":
        found += _new(name, draw(st.sampled_from(NEW)), draw)
    return found


def _old(name: str, state: str, draw: st.DrawFn) -> list[ApiObject]:
    if state == "gone":
        return []
    committed = state in ("committed", "marked", "terminating", "taken over", "no Node")
    marked = committed and state != "committed"
    named, reason = draw(st.sampled_from(NAMED)), "Drifted" if state == "taken over" else REASON
    says = {REPLACED_BY: named, DISRUPTION_REASON: reason} if committed else {}
    says |= {INTERRUPTION: "kwok 2026-03-02T11:59:40Z"} if state == "interrupted" else {}
    claim = a_claim(
        name,
        annotations=says,
        conditions=[condition("DisruptionReason", reason=reason)] if marked else [],
        labels={"karpenter.sh/nodepool": draw(st.sampled_from(["general", "general", "other"]))},
        deletion_timestamp=ago(5) if state == "terminating" else None,
    )
    if state == "no Node":
        return [claim]
    notes = {} if state == "unwanted" else {MERGE: "1"}
    notes |= {DO_NOT_DISRUPT: "true"} if state == "protected" else {}
    taints = (DISRUPTED,) if marked else ()
    pods = draw(st.integers(0, 2))
    return [
        claim,
        a_node(f"node-{name}", claim=name, annotations=notes, taints=taints),
        *(a_pod(f"{name}-{number}", node=f"node-{name}", requests=HALF) for number in range(pods)),
    ]


def _new(name: str, state: str, draw: st.DrawFn) -> list[ApiObject]:
    if state == "gone":
        return []
    says = {REPLACES: draw(st.sampled_from(UIDS))}
    stage = {"launched": 1, "registered": 2}.get(state, 3)
    fields: dict[str, Any] = {"deletion_timestamp": ago(5)} if state == "terminating" else {}
    made = draw(st.sampled_from([ago(5), ago(90)]))
    claim = a_claim(name, stage=stage, annotations=says, creation_timestamp=made, **fields)
    return [claim, a_node(f"node-{name}", claim=name)] if stage > 1 else [claim]


def snapshot_of(objects: list[ApiObject]) -> Snapshot:
    return snapshot_with(*objects, observations=KNOWN)


def commands_in(objects: list[ApiObject]) -> set[str]:
    """What there is, for the test that all of it is reached."""
    snapshot = snapshot_of(objects)
    found = set()
    for claim in snapshot.replaced_claims().values():
        command = command_of(claim, snapshot)
        if len(command.group) > 1 and not claim.deleting:
            found.add("in part" if command.uncommitted else "whole")
    verdicts = decide_all(DisruptionDecider(methods=FORGETFUL), snapshot, SETTINGS, NOW)
    found |= {"deleted" for one in verdicts if isinstance(one.action, Delete)}
    return found | {str(one.reason) for one in verdicts}


def test_groups_of_every_kind_are_drawn() -> None:
    wanted = {"in part", "whole", "deleted", "Replacing", "Replaced", "DisruptionCancelled"}
    wanted |= {"ReplacementLeftOver", "DisruptionWaits"}
    assert reached(groups(), commands_in, wanted, within=400) >= wanted


@tried(150)
@given(objects=groups(), later=st.sampled_from(LATER))
def test_one_verdict_each_and_none_changes_before_it_said_it_might(
    objects: list[ApiObject], later: timedelta
) -> None:
    snapshot = snapshot_of(objects)
    for decider in (DisruptionDecider(methods=MERGES), ReplacementDecider(MERGES)):
        check_one_verdict_per_subject(decider, snapshot, NOW)
        check_honest_recheck(decider, snapshot, NOW, later)


@tried(200)
@given(objects=groups())
def test_all_that_are_replaced_together_terminate_in_the_same_turn_or_none(
    objects: list[ApiObject],
) -> None:
    snapshot = snapshot_of(objects)
    verdicts = decide_all(DisruptionDecider(methods=MERGES), snapshot, SETTINGS, NOW)
    deleted = {one.subject.name for one in verdicts if isinstance(one.action, Delete)}
    for name in deleted:
        claim = snapshot.claims[name]
        if not is_replaced(claim):
            continue  # A replacement that is left over.
        assert set(command_of(claim, snapshot).group) <= deleted


@tried(300)
@given(before=groups(), other=groups(), which=st.integers(0, 99), later=st.sampled_from(LATER))
def test_evaluating_only_what_changed_equals_evaluating_everything(
    before: list[ApiObject], other: list[ApiObject], which: int, later: timedelta
) -> None:
    """One object changes, comes or goes; the others of its group hear of it."""
    tables, chosen = Tables(), deciders(SETTINGS, MERGES)
    ours = snapshot_of(before).ours
    evaluator = Evaluator(chosen, SETTINGS, unmoved=UNMOVED)
    first = [tables.put(RESOURCE_OF[type(item)], item) for item in before]
    evaluator.evaluate(Snapshot(tables, KNOWN, ours=ours), first, (), NOW)
    item = [*before, *other][which % len([*before, *other])]
    resource = RESOURCE_OF[type(item)]
    goes = item.key in tables.table(resource) and tables.table(resource)[item.key] == item
    change = tables.remove(resource, item.key) if goes else tables.put(resource, item)
    now = Snapshot(tables, KNOWN, ours=ours)
    evaluator.evaluate(now, [change], (), NOW + later)
    full = [v for one in chosen for v in decide_all(one, now, SETTINGS, NOW + later)]
    assert sorted(map(repr, evaluator.in_force())) == sorted(map(repr, full))
