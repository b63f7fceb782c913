"""Repair and time-outs beside Karpenter: only what a user has asked for, and never what is Karpenter's."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.beside.facts.karpenter import (
    KarpenterNotFound,
    KarpenterNotReady,
    KarpenterRepairs,
    KarpenterRollsOut,
    ReadyNoted,
)
from tenure.core.beside.memory import MemoryDecider
from tenure.core.beside.repair import RepairBesideDecider
from tenure.core.decision import Delete, Ground, Patch, Verdict
from tenure.core.gates.facts import RepairNotRequested
from tenure.core.policy.deciders import decide_all
from tenure.core.reasons import Reason
from tenure.core.repair.facts import (
    ConditionUnhealthy,
    DeadlineMarksDropped,
    DeadlineNotOurs,
    LostUntil,
    NodeFound,
    NodeLost,
    NotUpInTime,
    RebootLeft,
    RepairPlanned,
    ToleratedUntil,
)
from tenure.model.api import names
from tenure.model.api.meta import format_time
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.cloud.repairs import RepairAction
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import EVERY_CLASS
from tenure.providers.absent import NO_PROVIDER
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.beside.scenes import annotations_of, karpenter
from tests.core.build import (
    FOREIGN,
    LAUNCHED,
    NOW,
    REGISTERED,
    a_claim,
    a_leaving_claim,
    a_node,
    a_policy,
    a_pool,
    about,
    ago,
    ahead,
    condition,
    fact_of,
)
from tests.core.outage import a_member, pools
from tests.snapshots import snapshot_with

SETTINGS = Settings(beside_karpenter=True)
POOL = a_pool(ref=FOREIGN)
KARPENTER = karpenter()
FIVE_MINUTES = a_policy(readinessTTL="5m")
FORCEFUL = {"defaultTolerationDuration": "5m", "maxUnhealthy": "100%"}
REPAIR = a_policy(repair=FORCEFUL)
#: A stamp of ours.
BY = {
    names.TERMINATION_BY: "tenure",
    names.TERMINATION_BECAUSE: "NodeRepair",
    names.TERMINATION_AT: format_time(ago(1)),
}
STAMPED = {names.TERMINATION_TIMESTAMP: format_time(ago(1)), **BY}


def verdicts(
    *objects: Any, now: datetime = NOW, settings: Settings = SETTINGS, decider: Any = None
) -> list[Verdict]:
    known = Observations(repair_statements=NO_PROVIDER.repair_statements)
    snapshot = snapshot_with(*objects, observations=known, ours=EVERY_CLASS)
    return decide_all(decider or RepairBesideDecider(settings), snapshot, settings, now)


def on_claim(*objects: Any, **more: Any) -> Verdict:
    return about(verdicts(*objects, **more), "NodeClaim/a")


def nothing_ends(*objects: Any) -> bool:
    """It is reported at the most."""
    found = verdicts(*objects)
    idle = {Reason.BOOTING, Reason.UNHEALTHY, Reason.REPAIR_OFF}
    return all(one.action is None and one.reason in idle for one in found)


def booting(seconds: float = 310, **fields: Any) -> tuple[NodeClaim, Any]:
    """A Node that has registered so long ago, and has never been Ready."""
    claim = a_claim(stage=REGISTERED, ref=FOREIGN, creation_timestamp=ago(seconds + 30), **fields)
    return claim, a_node(ready=False, creation_timestamp=ago(seconds))


def unhealthy(seconds: float = 310, **fields: Any) -> tuple[NodeClaim, Any]:
    """A Node that has not been Ready for so long, and was before."""
    since = condition("Ready", "Unknown", "NodeStatusUnknown", at=ago(seconds))
    return a_claim(ref=FOREIGN, **fields), a_node(status={"conditions": (since,)})


# -- time-outs -------------------------------------------------------------------------


def test_a_readiness_ttl_of_a_policy_stamps_the_claim_with_our_marks_and_then_deletes_it() -> None:
    verdict = on_claim(POOL, KARPENTER, FIVE_MINUTES, *booting())
    assert verdict.reason is Reason.READINESS_TIMEOUT
    assert fact_of(verdict, NotUpInTime).ttl == "5m"
    assert isinstance(verdict.action, Patch)
    assert annotations_of(verdict) == {
        names.TERMINATION_TIMESTAMP: "",
        names.TERMINATION_BY: "tenure",
        names.TERMINATION_BECAUSE: "ReadinessTimeout",
        names.TERMINATION_AT: "",
    }
    dated = (names.TERMINATION_TIMESTAMP, names.TERMINATION_AT)
    assert (verdict.action.ground, verdict.action.dated) == (Ground.TIME_OUT, dated[0])
    assert verdict.action.dated_mark == dated[1], "the same instant"
    assert verdict.action.precondition is not None, "the Node is read again"
    then = on_claim(POOL, KARPENTER, FIVE_MINUTES, *booting(annotations=STAMPED))
    assert isinstance(then.action, Delete)
    assert (then.action.resource_version, then.action.ground) == ("7", Ground.TIME_OUT)


def test_before_the_ttl_is_over_it_boots() -> None:
    verdict = on_claim(POOL, KARPENTER, FIVE_MINUTES, *booting(200))
    assert (verdict.reason, verdict.action) == (Reason.BOOTING, None)
    assert verdict.recheck_at == ahead(100)


@pytest.mark.parametrize("ttl", [None, "15m", "soon"])
def test_a_ttl_that_no_user_has_written_terminates_nothing(ttl: str | None) -> None:
    """15m is what the API server writes; what cannot be read is none."""
    assert nothing_ends(POOL, KARPENTER, *booting(3600, spec={"readiness_ttl": ttl}))


def test_a_node_without_a_written_ttl_is_new_and_no_news_until_its_condition_is_due() -> None:
    new = on_claim(POOL, KARPENTER, REPAIR, *booting(60))
    assert (new.reason, new.action) == (Reason.BOOTING, None)
    assert new.recheck_at == ahead(240)


def test_a_policy_that_says_the_default_acts_on_it() -> None:
    verdict = on_claim(POOL, KARPENTER, a_policy(readinessTTL="15m"), *booting(910))
    assert verdict.reason is Reason.READINESS_TIMEOUT


def test_a_ttl_of_the_claim_itself_acts() -> None:
    verdict = on_claim(POOL, KARPENTER, *booting(spec={"readiness_ttl": "5m"}))
    assert (verdict.reason, verdict.action is None) == (Reason.READINESS_TIMEOUT, False)


def test_policies_that_are_refused_terminate_nothing() -> None:
    tied = a_policy("one", readinessTTL="20m"), a_policy("two", readinessTTL="30m")
    assert nothing_ends(POOL, KARPENTER, *tied, *booting(7200))


def test_a_claim_that_never_registers_ends_before_karpenters_fifteen_minutes() -> None:
    claim = a_claim(stage=LAUNCHED, ref=FOREIGN, conditions=[condition("Launched", at=ago(301))])
    verdict = on_claim(POOL, KARPENTER, FIVE_MINUTES, claim)
    assert verdict.reason is Reason.REGISTRATION_TIMEOUT
    assert annotations_of(verdict)[names.TERMINATION_BECAUSE] == "RegistrationTimeout"


@pytest.mark.parametrize(
    "evidence",
    [
        {"annotations": {names.READY_ONCE_AT: format_time(ago(200))}},
        {"annotations": {names.READY_ONCE_AT: "yes"}},
        {"conditions": [condition("ReadyOnce")]},
    ],
)
def test_a_node_that_was_ready_once_does_not_time_out(evidence: dict[str, Any]) -> None:
    assert nothing_ends(POOL, KARPENTER, FIVE_MINUTES, *booting(3600, **evidence))


def test_the_label_of_the_node_is_evidence_too() -> None:
    claim, node = booting(3600)
    labels = {**node.metadata.labels, names.INITIALIZED: "true"}
    labelled = msgspec.structs.replace(
        node, metadata=msgspec.structs.replace(node.metadata, labels=labels)
    )
    assert nothing_ends(POOL, KARPENTER, FIVE_MINUTES, claim, labelled)


def test_an_initialization_ttl_counts_from_the_note() -> None:
    policy = a_policy(initializationTTL="2m", repair=FORCEFUL)
    noted = {names.READY_ONCE_AT: format_time(ago(130))}
    claim = a_claim(stage=REGISTERED, ref=FOREIGN, annotations=noted)
    verdict = on_claim(POOL, KARPENTER, policy, claim, a_node())
    assert (verdict.reason, verdict.action is None) == (Reason.INITIALIZATION_TIMEOUT, False)
    unknown = a_claim(stage=REGISTERED, ref=FOREIGN, annotations={names.READY_ONCE_AT: "x"})
    assert not verdicts(POOL, KARPENTER, policy, unknown, a_node()), "since when is not known"


def test_a_graceful_time_out_is_left_to_the_pipeline() -> None:
    policy = a_policy(initializationTTL="2m", repair=FORCEFUL | {"terminationMode": "Graceful"})
    noted = {names.READY_ONCE_AT: format_time(ago(130))}
    claim = a_claim(stage=REGISTERED, ref=FOREIGN, annotations=noted)
    verdict = on_claim(POOL, KARPENTER, policy, claim, a_node())
    assert (verdict.reason, verdict.action) == (Reason.REPAIR_DUE, None)


def test_what_counts_as_unhealthy_is_what_karpenters_kwok_provider_states_but_for_ready() -> None:
    assert NO_PROVIDER.repair_statements == kwok_statements(timedelta(minutes=30))


# -- a Node that is gone ---------------------------------------------------------------


def test_a_lost_node_is_noted_as_an_annotation_and_ends_after_the_ttl() -> None:
    first = on_claim(POOL, KARPENTER, FIVE_MINUTES, a_claim(ref=FOREIGN))
    assert fact_of(first, NodeLost).noticed_at is None
    assert annotations_of(first) == {names.NODE_LOST_AT: ""}
    noted = {names.NODE_LOST_AT: format_time(ago(200))}
    waits = on_claim(POOL, KARPENTER, FIVE_MINUTES, a_claim(ref=FOREIGN, annotations=noted))
    assert (fact_of(waits, LostUntil).at, waits.action) == (ahead(100), None)
    long_ago = {names.NODE_LOST_AT: format_time(ago(301))}
    over = on_claim(POOL, KARPENTER, FIVE_MINUTES, a_claim(ref=FOREIGN, annotations=long_ago))
    assert annotations_of(over)[names.TERMINATION_BECAUSE] == "NodeLost"


def test_a_node_that_is_back_takes_the_note_away_even_without_a_policy() -> None:
    claim = a_claim(ref=FOREIGN, annotations={names.NODE_LOST_AT: format_time(ago(200))})
    verdict = on_claim(POOL, KARPENTER, claim, a_node())
    assert annotations_of(verdict) == {names.NODE_LOST_AT: None}
    assert fact_of(verdict, NodeFound).node == "node-a"


def test_without_a_written_ttl_a_lost_node_is_karpenters() -> None:
    assert not verdicts(POOL, KARPENTER, REPAIR, a_claim(ref=FOREIGN))


# -- conditions ------------------------------------------------------------------------


def test_a_forceful_policy_stamps_and_then_deletes() -> None:
    verdict = on_claim(POOL, KARPENTER, REPAIR, *unhealthy())
    assert verdict.reason is Reason.REPAIRING
    assert annotations_of(verdict)[names.TERMINATION_BECAUSE] == "NodeRepair"
    then = on_claim(POOL, KARPENTER, REPAIR, *unhealthy(annotations=STAMPED))
    assert isinstance(then.action, Delete)
    assert then.commits is not None, "it is counted as a repair"


def test_a_pool_without_a_repair_block_is_not_repaired() -> None:
    verdict = on_claim(POOL, KARPENTER, FIVE_MINUTES, *unhealthy(7200))
    assert (verdict.reason, verdict.action) == (Reason.REPAIR_OFF, None)
    assert fact_of(verdict, RepairNotRequested).pool == "general"
    waits = on_claim(POOL, KARPENTER, FIVE_MINUTES, *unhealthy(10))
    assert fact_of(waits, RepairNotRequested).pool == "general"


def test_a_block_without_a_policy_for_the_condition_tolerates_what_karpenters_providers_do() -> (
    None
):
    policy = a_policy(repair={"maxUnhealthy": "100%"})
    waits = on_claim(POOL, KARPENTER, policy, *unhealthy(1700))
    assert fact_of(waits, ToleratedUntil).until == ahead(100)
    assert on_claim(POOL, KARPENTER, policy, *unhealthy(1801)).action is not None


def test_a_node_that_was_never_ready_is_repaired_by_policy_where_no_ttl_is_written() -> None:
    verdict = on_claim(POOL, KARPENTER, REPAIR, *booting(700))
    assert (verdict.reason, verdict.action is None) == (Reason.REPAIRING, False)


GATED = [
    pytest.param(karpenter(env={"FEATURE_GATES": "NodeRepair=true"}), True, id="on"),
    pytest.param(karpenter(args=("--feature-gates=nonsense",)), False, id="unknown"),
]


@pytest.mark.parametrize(("deployment", "known"), GATED)
def test_while_karpenter_repairs_or_may_conditions_wait_and_time_outs_go_on(
    deployment: Any, known: bool
) -> None:
    verdict = on_claim(POOL, deployment, REPAIR, *unhealthy())
    assert (verdict.reason, verdict.action) == (Reason.REPAIR_LEFT, None)
    assert fact_of(verdict, KarpenterRepairs).known is known
    node = about(verdicts(POOL, deployment, REPAIR, *unhealthy()), "Node/node-a")
    assert node.reason is Reason.REPAIR_LEFT, "the Node says so, too"
    timed_out = on_claim(POOL, deployment, FIVE_MINUTES, *booting())
    assert timed_out.action is not None


def test_an_unknown_karpenter_means_that_nothing_acts_and_each_verdict_says_why() -> None:
    for objects in ((REPAIR, *unhealthy()), (FIVE_MINUTES, *booting())):
        verdict = on_claim(POOL, *objects)
        assert (verdict.reason, verdict.action) == (Reason.LEVER_WAITS, None)
        assert isinstance(verdict.facts[-1], KarpenterNotFound)
    stamped = on_claim(POOL, *unhealthy(10, annotations=STAMPED))
    assert stamped.action is None, "not even a stale deadline is removed"


IDLE = [
    pytest.param(karpenter(replicas=0), KarpenterNotReady, id="scaled to 0"),
    pytest.param(karpenter(replicas=2, ready=0), KarpenterNotReady, id="not ready"),
    pytest.param(karpenter(old=1), KarpenterRollsOut, id="rolled out"),
]


@pytest.mark.parametrize(("deployment", "why"), IDLE)
def test_while_karpenter_does_not_act_nothing_is_ended_and_each_verdict_says_why(
    deployment: Any, why: type
) -> None:
    for objects in ((REPAIR, *unhealthy()), (FIVE_MINUTES, *booting())):
        verdict = on_claim(POOL, deployment, *objects)
        assert (verdict.reason, verdict.action) == (Reason.LEVER_WAITS, None)
        assert isinstance(verdict.facts[-1], why)
    stamped = on_claim(POOL, deployment, *unhealthy(10, annotations=STAMPED))
    assert annotations_of(stamped)[names.TERMINATION_TIMESTAMP] is None


def test_a_reboot_is_left_to_karpenter() -> None:
    entry = {"conditionType": "Ready", "toleration": "5m", "action": "Reboot"}
    policy = a_policy(repair={"maxUnhealthy": "100%", "policies": [entry]})
    verdict = on_claim(POOL, KARPENTER, policy, *unhealthy())
    assert (verdict.reason, verdict.action) == (Reason.REPAIR_LEFT, None)
    assert fact_of(verdict, RebootLeft).claim == "a"
    assert fact_of(verdict, ConditionUnhealthy).condition == "Ready"
    assert str(fact_of(verdict, RebootLeft)).endswith("Karpenter's feature gate NodeRepair is off")
    verdict = on_claim(
        POOL, karpenter(env={"FEATURE_GATES": "NodeRepair=true"}), policy, *unhealthy()
    )
    assert verdict.reason is Reason.REPAIR_LEFT
    assert fact_of(verdict, KarpenterRepairs).known, "then it is Karpenter's"


def test_a_graceful_repair_is_left_to_the_pipeline() -> None:
    policy = a_policy(repair=FORCEFUL | {"terminationMode": "Graceful"})
    verdict = on_claim(POOL, KARPENTER, policy, *unhealthy())
    assert (verdict.reason, verdict.action) == (Reason.REPAIR_DUE, None)
    assert fact_of(verdict, RepairPlanned).action is RepairAction.REPLACE


def test_a_veto_and_the_breaker_hold_as_without_karpenter() -> None:
    vetoed = on_claim(
        POOL, KARPENTER, REPAIR, *unhealthy(annotations={names.DO_NOT_REPAIR: "true"})
    )
    assert (vetoed.reason, vetoed.action) == (Reason.REPAIR_VETOED, None)
    none = a_policy(repair=FORCEFUL | {"maxUnhealthy": "0"})
    tripped = on_claim(POOL, KARPENTER, none, *unhealthy())
    assert (tripped.reason, tripped.action) == (Reason.REPAIR_BLOCKED, None)


# -- deadlines that stand there --------------------------------------------------------


def test_a_deadline_of_ours_on_a_claim_that_is_no_longer_due_is_removed_with_its_marks() -> None:
    probe = {**STAMPED, names.PROBE_BESIDE: "zone=a 2026-03-02T11:00:00Z"}
    verdict = on_claim(POOL, KARPENTER, REPAIR, a_claim(ref=FOREIGN, annotations=probe), a_node())
    assert verdict.reason is Reason.STALE_DEADLINE
    assert annotations_of(verdict) == dict.fromkeys(probe)


def test_a_deadline_of_another_program_is_left_alone() -> None:
    foreign = {names.TERMINATION_TIMESTAMP: format_time(ago(1))}
    assert not verdicts(
        POOL, KARPENTER, REPAIR, a_claim(ref=FOREIGN, annotations=foreign), a_node()
    )
    verdict = on_claim(POOL, KARPENTER, REPAIR, *unhealthy(annotations=foreign))
    assert (verdict.reason, verdict.action) == (Reason.REPAIRING, None)
    assert fact_of(verdict, DeadlineNotOurs).claim == "a"


def test_a_deadline_that_another_program_writes_over_ours_is_left_alone_and_our_marks_go() -> None:
    """Also where it was removed: the marks say nothing then."""
    later = {**STAMPED, names.TERMINATION_TIMESTAMP: format_time(ahead(600))}
    for written in (later, BY):
        claim = a_claim(ref=FOREIGN, annotations=written)
        verdict = on_claim(POOL, KARPENTER, REPAIR, claim, a_node())
        assert verdict.reason is Reason.STALE_DEADLINE
        value = written.get(names.TERMINATION_TIMESTAMP, "")
        assert fact_of(verdict, DeadlineMarksDropped).written == value
        assert annotations_of(verdict) == dict.fromkeys(BY)
    verdict = on_claim(POOL, KARPENTER, REPAIR, *unhealthy(annotations=later))
    assert fact_of(verdict, DeadlineNotOurs).claim == "a"
    assert annotations_of(verdict) == dict.fromkeys(BY), "and nothing is deleted"


def test_a_claim_that_is_being_deleted_has_its_deadline_brought_forward() -> None:
    later = {names.TERMINATION_TIMESTAMP: format_time(ahead(600))}
    claim = a_leaving_claim(ref=FOREIGN, annotations=later)
    verdict = on_claim(POOL, KARPENTER, REPAIR, claim, unhealthy()[1])
    assert annotations_of(verdict)[names.TERMINATION_BY] == "tenure"


# -- failure domains -------------------------------------------------------------------


def a_dead_zone(probe: str = "", **noted: str) -> list[Any]:
    """Three of four Nodes of a zone, of two pools, for 15 minutes."""
    red, blue = pools()
    if probe:
        metadata = msgspec.structs.replace(red.metadata, annotations={names.PROBE_BESIDE: probe})
        red = msgspec.structs.replace(red, metadata=metadata)
    dead = [
        one
        for name in ("red-1", "red-2", "blue-1")
        for one in a_member(name, unhealthy_since=ago(900))
    ]
    return [red, blue, *dead, *a_member("blue-2"), KARPENTER]


def test_the_probe_is_noted_under_our_own_key_and_then_repaired() -> None:
    found = verdicts(*a_dead_zone())
    noted = next(one for one in found if one.reason is Reason.REPAIR_PROBE)
    assert isinstance(noted.action, Patch)
    assert annotations_of(noted) == {names.PROBE_BESIDE: "zone=zone-c red-1"}
    assert noted.action.dated == names.PROBE_BESIDE
    held = about(found, "NodeClaim/red-1")
    assert (held.reason, held.action) == (Reason.REPAIR_BLOCKED, None)
    then = verdicts(*a_dead_zone(f"zone=zone-c red-1 {format_time(ago(10))}"))
    written = annotations_of(about(then, "NodeClaim/red-1"))
    assert written[names.PROBE_BESIDE] == f"zone=zone-c {format_time(ago(10))}"
    assert about(then, "NodeClaim/red-2").action is None


def test_no_probe_is_chosen_for_conditions_while_karpenter_repairs() -> None:
    *rest, _ = a_dead_zone()
    on = karpenter(env={"FEATURE_GATES": "NodeRepair=true"})
    assert Reason.REPAIR_PROBE not in {one.reason for one in verdicts(*rest, on)}


# -- memory ----------------------------------------------------------------------------


def remembered(*objects: Any) -> list[Verdict]:
    return verdicts(*objects, decider=MemoryDecider(SETTINGS))


def test_a_first_ready_is_noted_once_and_only_where_a_ttl_is_written() -> None:
    claim = a_claim(stage=REGISTERED, ref=FOREIGN)
    (verdict,) = remembered(POOL, KARPENTER, FIVE_MINUTES, claim, a_node())
    assert verdict.reason is Reason.READY_NOTED
    assert annotations_of(verdict) == {names.READY_ONCE_AT: ""}
    assert not remembered(POOL, KARPENTER, claim, a_node())
    noted = {names.READY_ONCE_AT: format_time(ago(60))}
    known = a_claim(stage=REGISTERED, ref=FOREIGN, annotations=noted)
    (then,) = remembered(POOL, KARPENTER, FIVE_MINUTES, known, a_node(ready=False))
    assert (then.action, fact_of(then, ReadyNoted).at) == (None, ago(60))


@pytest.mark.parametrize(
    "objects",
    [
        (a_claim(ref=FOREIGN), a_node()),
        (a_claim(stage=REGISTERED, ref=FOREIGN), a_node(ready=False)),
        (a_leaving_claim(stage=REGISTERED, ref=FOREIGN), a_node()),
        (a_claim(stage=REGISTERED, ref=FOREIGN), a_node(), a_node("node-b")),
        (a_claim(stage=REGISTERED, ref=FOREIGN),),
    ],
)
def test_nothing_else_is_noted(objects: tuple[Any, ...]) -> None:
    assert not remembered(POOL, KARPENTER, FIVE_MINUTES, *objects)


def test_an_unknown_karpenter_means_that_nothing_is_noted() -> None:
    (verdict,) = remembered(POOL, FIVE_MINUTES, a_claim(stage=REGISTERED, ref=FOREIGN), a_node())
    assert (verdict.reason, verdict.action) == (Reason.LEVER_WAITS, None)
