"""The timetable of a drain, before it happens and while it does: exact instants."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tenure.core.facts import Quoted
from tenure.core.marks.deadline import ComingDeadline, Deadline
from tenure.core.protect.protection import Protection
from tenure.core.terminate.facts.pods import (
    Ignored,
    PdbAllowsNoMore,
    PdbNeverAllows,
    PodIgnored,
    SeveralPdbs,
)
from tenure.core.terminate.facts.termination import PodsBlocked, VolumeAttached
from tenure.core.terminate.podtimes import PodTimes
from tenure.core.terminate.schedule import Timetable, timetable
from tenure.model.api.meta import FOR_EVER, ApiObject
from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.model.api.workload import VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import EvictionAnswer, Observations
from tests.core.build import (
    NOW,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pdb,
    a_pod,
    ago,
    ahead,
    condition,
    meta,
)
from tests.snapshots import snapshot_with

SETTINGS = Settings()


def table_of(
    *objects: ApiObject,
    now: datetime = NOW,
    coming: Sequence[ComingDeadline] = (),
    **known: Any,
) -> Timetable:
    snapshot = snapshot_with(*objects, observations=Observations(**known))
    return timetable(snapshot.nodes["node-a"], snapshot, SETTINGS, now, coming)


def the(table: Timetable, pod: str = "default/web") -> PodTimes:
    (row,) = (row for row in table.pods if row.pod == pod)
    return row


def a_bounded_claim(period: str = "15m", **fields: Any) -> Any:
    return a_claim(spec={"termination_grace_period": period}, **fields)


def with_grace(seconds: int, name: str = "web", **fields: Any) -> Any:
    return a_pod(name, spec={"termination_grace_period_seconds": seconds}, **fields)


def test_a_node_whose_claim_is_being_deleted_counts_as_terminating() -> None:
    claim = a_bounded_claim(deletion_timestamp=ago(60), finalizers=("karpenter.sh/termination",))
    table = table_of(claim, a_node(), with_grace(600))
    assert table.leaving
    assert table.began_at == ago(60)


def test_a_node_that_is_not_terminating_is_shown_as_if_it_were_deleted_now() -> None:
    table = table_of(a_bounded_claim(), a_node(), with_grace(600))
    assert not table.leaving
    assert table.began_at == NOW
    assert table.deadline is not None
    assert table.deadline.at == ahead(900)
    row = the(table)
    assert (row.asked_at, row.forced_at, row.stopped_by) == (NOW, ahead(300), ahead(600))
    assert row.blocked_by == ()
    assert table.ends_by == ahead(660), "a pod that does not stop is waited for a minute more"


def test_a_terminating_node_counts_from_its_claims_deletion() -> None:
    claim = a_leaving_claim(spec={"termination_grace_period": "15m"})
    table = table_of(claim, a_leaving_node(), with_grace(600, protected="true"))
    assert table.leaving
    assert table.began_at == ago(30)
    row = the(table)
    assert (row.asked_at, row.forced_at, row.stopped_by) == (None, ahead(270), ahead(870))
    assert table.ends_by == ahead(870 + 60)


def test_a_pdb_that_never_allows_an_eviction_is_shown_with_its_numbers() -> None:
    budget = a_pdb(desired_healthy=1, current_healthy=1, expected_pods=1)
    pod = with_grace(60, conditions=[condition("Ready")])
    bounded = table_of(a_bounded_claim(), a_node(), budget, pod)
    row = the(bounded)
    (blocker,) = row.blocked_by
    assert blocker.fact == PdbNeverAllows("default/web", "minAvailable 1", 1)
    assert row.asked_at == ahead(10), "asked all the same, in case the budget's status is stale"
    assert (row.forced_at, row.stopped_by) == (ahead(840), ahead(900))
    assert bounded.ends_by == ahead(960)

    endless = table_of(a_claim(), a_node(), budget, pod)
    assert (the(endless).forced_at, the(endless).stopped_by, endless.ends_by) == (None, None, None)
    assert endless.endless == (PodsBlocked(("default/web",), blocker.fact),)


def test_of_the_pods_that_one_pdb_blocks_one_is_tried_first() -> None:
    budget = a_pdb(desired_healthy=2, current_healthy=2, expected_pods=3)
    ready = [condition("Ready")]
    pods = [a_pod(name, conditions=ready) for name in ("web-1", "web-2")]
    table = table_of(a_claim(), a_node(), budget, *pods)
    assert [row.asked_at for row in table.pods] == [ahead(10), ahead(10)]


def test_an_allowance_that_other_pods_use_first_is_shown() -> None:
    budget = a_pdb(desired_healthy=2, current_healthy=3, expected_pods=3, disruptions_allowed=1)
    ready = [condition("Ready")]
    pods = [a_pod(name, conditions=ready) for name in ("web-1", "web-2")]
    first, second = table_of(a_claim(), a_node(), budget, *pods).pods
    assert (first.asked_at, first.blocked_by) == (NOW, ())
    (blocker,) = second.blocked_by
    assert blocker.fact == PdbAllowsNoMore(
        *("default/web", "minAvailable 2"),
        pods=3,
        healthy=3,
        must_be_healthy=2,
        first=("default/web-1",),
        uncounted=True,
    )


def test_several_budgets_are_named() -> None:
    budgets = [a_pdb(name, expected_pods=3, disruptions_allowed=1) for name in ("one", "two")]
    table = table_of(a_claim(), a_node(), *budgets, a_pod())
    (blocker,) = the(table).blocked_by
    assert blocker.fact == SeveralPdbs(("default/one", "default/two"))


def test_a_protected_pod_is_evicted_when_its_protection_ends() -> None:
    table = table_of(a_claim(), a_node(), a_pod(protected="2h", creation_timestamp=ago(3600)))
    row = the(table)
    (blocker,) = row.blocked_by
    assert blocker.until == row.asked_at == ahead(3600)
    assert row.stopped_by == ahead(3630)
    assert table.ends_by == ahead(3690)


def test_a_protection_without_an_end_blocks_a_drain_without_a_deadline_for_ever() -> None:
    table = table_of(a_claim(), a_node(), a_pod(protected="true"))
    assert (the(table).asked_at, the(table).stopped_by, table.ends_by) == (None, None, None)
    assert table.endless == (PodsBlocked(("default/web",), Protection("true", FOR_EVER)),)


def test_later_tiers_are_evicted_when_the_earlier_ones_have_stopped() -> None:
    daemon = a_pod("agent", owner="DaemonSet")
    critical = a_pod(
        "dns", spec={"priority_class_name": "system-cluster-critical"}, protected="30m"
    )
    table = table_of(a_claim(), a_node(), a_pod(), daemon, critical)
    assert [row.tier for row in table.pods] == ["plain pods", "daemon pods", "critical pods"]
    agent, dns = the(table, "default/agent"), the(table, "default/dns")
    assert agent.asked_at == NOW, "at the earliest: a pod may stop at once"
    assert agent.stopped_by == ahead(30 + 60 + 30)
    assert [blocker.tier for blocker in dns.blocked_by] == [True], (
        "its protection is over: made an hour ago"
    )
    assert dns.stopped_by == ahead(30 + 60 + 30 + 60 + 30)
    assert table.ends_by == ahead(30 + 60 + 30 + 60 + 30 + 60)


def test_what_blocks_an_earlier_tier_blocks_the_later_ones() -> None:
    daemon = a_pod("agent", owner="DaemonSet")
    endless = table_of(a_claim(), a_node(), a_pod(protected="true"), daemon)
    agent = the(endless, "default/agent")
    assert (agent.asked_at, agent.stopped_by) == (None, None)
    assert len(endless.endless) == 1, "only the root is named"

    bounded = table_of(a_bounded_claim(), a_node(), with_grace(600, protected="true"), daemon)
    agent = the(bounded, "default/agent")
    assert agent.asked_at == ahead(300), "the protected one is forced then, and may stop at once"
    assert (agent.forced_at, agent.stopped_by) == (ahead(870), ahead(900))


def test_a_grace_above_the_period_is_forced_at_once_and_cut() -> None:
    row = the(table_of(a_bounded_claim("5m"), a_node(), with_grace(600)))
    assert row.forced_at == ago(300), "that was before the beginning, so now"
    assert (row.asked_at, row.stopped_by) == (None, ahead(300))


def test_a_terminating_pod_stops_by_the_deadline() -> None:
    going = with_grace(1800, deletion_timestamp=ahead(1700), deletion_grace_period_seconds=1800)
    table = table_of(a_bounded_claim(), a_node(), going)
    row = the(table)
    assert row.terminating
    assert (row.forced_at, row.stopped_by) == (NOW, ahead(900))
    unbounded = the(table_of(a_claim(), a_node(), going))
    assert (unbounded.forced_at, unbounded.stopped_by) == (None, ahead(1700))


def test_a_refused_eviction_quotes_the_api() -> None:
    answer = EvictionAnswer(at=ago(1), retry_at=ahead(4), message="too many requests")
    table = table_of(a_claim(), a_leaving_node(), a_pod(), evictions={"uid-web": answer})
    row = the(table)
    assert row.asked_at == ahead(4)
    assert [blocker.fact for blocker in row.blocked_by] == [Quoted("too many requests")]
    assert table.ends_by is None


def test_pods_that_are_not_waited_for_are_listed_apart() -> None:
    table = table_of(a_claim(), a_node(), a_pod(phase="Succeeded"))
    assert table.pods == ()
    assert [(one.pod, one.why) for one in table.bystanders] == [
        ("default/web", PodIgnored(Ignored.SUCCEEDED, "node-a"))
    ]
    assert table.ends_by == ahead(5), "the shortest drain"


def an_attachment() -> VolumeAttachment:
    source = VolumeAttachmentSource(persistent_volume_name="pv-data")
    spec = VolumeAttachmentSpec(node_name="node-a", source=source)
    return VolumeAttachment(metadata=meta("csi-1"), spec=spec)


def test_volumes_block_for_ever_without_a_deadline_and_until_it_with_one() -> None:
    endless = table_of(a_claim(), a_node(), an_attachment())
    assert endless.ends_by is None
    assert endless.volumes == (VolumeAttached("csi-1", "pv-data", "node-a"),)
    assert endless.endless == endless.volumes
    bounded = table_of(a_bounded_claim(), a_node(), an_attachment())
    assert bounded.ends_by == ahead(900)


def test_a_stamp_on_a_claim_that_is_not_deleted_does_not_count() -> None:
    claim = a_bounded_claim(annotations={TERMINATION_TIMESTAMP: "2026-03-02T12:00:01Z"})
    table = table_of(claim, a_node())
    assert table.deadline is not None
    assert table.deadline.at == ahead(900)


def test_a_pod_that_was_not_deleted_in_time_has_a_minute_from_its_deletion() -> None:
    """The replica was down at the deadline; the instance is not terminated at once."""
    claim = a_leaving_claim(spec={"termination_grace_period": "10m"})
    pod = with_grace(30, protected="true", creation_timestamp=ago(3600))
    table = table_of(claim, a_leaving_node(), pod, now=ahead(1200))
    assert the(table).stopped_by == ahead(1230)
    assert table.ends_by == ahead(1260)


# -- a deadline that is set later ----------------------------------------------------------


def coming(since: int, at: int) -> ComingDeadline:
    return ComingDeadline(ahead(since), Deadline(ahead(at), "repair"))


def test_a_deadline_that_comes_forces_no_pod_before_it_is_set() -> None:
    claim, pod = a_leaving_claim(), with_grace(600, protected="true")
    table = table_of(claim, a_leaving_node(), pod, coming=[coming(60, 300)])
    row = the(table)
    assert (row.asked_at, row.forced_at, row.stopped_by) == (None, ahead(60), ahead(300))
    assert (table.deadline, table.endless, table.ends_by) == (None, (), ahead(360))


def test_at_a_deadline_that_is_over_when_it_is_set_a_pod_has_one_second() -> None:
    claim, pod = a_leaving_claim(), with_grace(30, protected="true")
    row = the(table_of(claim, a_leaving_node(), pod, coming=[coming(60, 60)]))
    assert (row.forced_at, row.stopped_by) == (ahead(60), ahead(61))


def test_the_present_deadline_may_force_a_pod_first() -> None:
    claim = a_leaving_claim(spec={"termination_grace_period": "2m"})
    pod = with_grace(60, protected="true")
    row = the(table_of(claim, a_leaving_node(), pod, coming=[coming(60, 60)]))
    assert (row.forced_at, row.stopped_by) == (ahead(30), ahead(60))


def test_a_deadline_that_comes_cuts_the_grace_of_a_terminating_pod() -> None:
    pod = with_grace(600, deletion_timestamp=ahead(590), deletion_grace_period_seconds=600)
    row = the(table_of(a_leaving_claim(), a_leaving_node(), pod, coming=[coming(60, 300)]))
    assert (row.terminating, row.forced_at, row.stopped_by) == (True, ahead(60), ahead(300))


def test_of_two_deadlines_that_come_the_last_one_counts() -> None:
    claim, pod = a_leaving_claim(), with_grace(30, protected="true")
    both = [coming(60, 600), coming(120, 120)]
    table = table_of(claim, a_leaving_node(), pod, coming=both)
    assert (the(table).forced_at, table.ends_by) == (ahead(120), ahead(180))
