"""How often nodes may be launched for an owner whose pods do not stay on them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.decision import Create, Patch, Verdict
from tenure.core.launchbreaker.facts import BreakerOpen, TooManyInVain
from tenure.core.launchbreaker.ledger import (
    LENGTH_MAX,
    Entry,
    Kept,
    launched_for,
    ledger_of,
    marked_served,
    read_launched_for,
    written,
)
from tenure.core.policy.deciders import decide_all
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.reasons import Reason
from tenure.model.api import names
from tenure.model.api.meta import ApiObject, OwnerReference, format_time
from tenure.model.api.node import Taint
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import (
    ClaimRefusal,
    DepartedClaim,
    Observations,
    TerminationAnswer,
)
from tenure.model.snapshot.unreadable import stand_in
from tenure.packing.demand.problem import Problem
from tenure.packing.demand.steps import Steps
from tenure.packing.pack import packing
from tenure.packing.result import Packing
from tests.core.build import (
    FOREIGN,
    NOW,
    SETTINGS,
    a_claim,
    a_class,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    ago,
    ahead,
    condition,
    types,
)
from tests.snapshots import snapshot_with

MINUTE = timedelta(minutes=1)
WEB = "StatefulSet/default/web"
#: The owner's pods cannot stay on a node that has it.
AGENT = Taint(key="example.com/agent", effect="NoExecute")


def of(pod: Pod, owner: str = "web") -> Pod:
    owners = (OwnerReference(kind="StatefulSet", name=owner, uid=owner, controller=True),)
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=owners)
    )


def waiting(name: str = "web-0", owner: str = "web", **fields: Any) -> Pod:
    return of(a_pending_pod(name, **fields), owner)


def a_launch(name: str, at: datetime, *, owner: str = "web", **fields: Any) -> list[ApiObject]:
    """A claim that was created for the owner then, and its Node, half a minute later."""
    said = launched_for([of(a_pod(f"{owner}-0"), owner)])
    annotations = {names.LAUNCHED_FOR: said, **fields.pop("annotations", {})}
    claim = a_claim(name, creation_timestamp=at, annotations=annotations, **fields)
    came = at + timedelta(seconds=30)
    return [claim, a_node(f"node-{name}", claim=name, taints=(AGENT,), creation_timestamp=came)]


def launches(*minutes_ago: float, **fields: Any) -> list[ApiObject]:
    found: list[ApiObject] = []
    for number, minutes in enumerate(minutes_ago):
        found += a_launch(f"n{number}", NOW - minutes * MINUTE, **fields)
    return found


def decided(
    *objects: ApiObject, now: datetime = NOW, settings: Settings = SETTINGS, **known: Any
) -> list[Verdict]:
    if not any(isinstance(one, NodePool) for one in objects):
        objects = (a_pool(), *objects)
    known = {"instance_types": types(), **known}
    snapshot = snapshot_with(a_class(), *objects, observations=Observations(**known))
    return decide_all(ProvisionDecider(), snapshot, settings, now)


def on(verdicts: list[Verdict], kind: str, name: str = "") -> Verdict:
    (found,) = (v for v in verdicts if v.subject.kind == kind and name in v.subject.name)
    return found


def created(verdicts: list[Verdict]) -> list[Create]:
    return [v.action for v in verdicts if isinstance(v.action, Create)]


def remembered(verdicts: list[Verdict]) -> Any:
    action = on(verdicts, "NodePool").action
    assert isinstance(action, Patch)
    return action.body["metadata"]["annotations"][names.LAUNCH_BREAKER]


def a_pool_that_remembers(text: str) -> NodePool:
    return a_pool(annotations={names.LAUNCH_BREAKER: text})


def test_a_new_claim_names_the_owners_of_its_pods() -> None:
    (create,) = created(decided(waiting(), waiting("cache-0", "cache")))
    said = read_launched_for(create.body["metadata"]["annotations"][names.LAUNCHED_FOR])
    assert [(one.owner, one.pods, one.names) for one in said] == [
        ("StatefulSet/default/cache", 1, ("cache-0",)),
        (WEB, 1, ("web-0",)),
    ]


def test_two_launches_in_vain_hold_nothing_but_are_remembered() -> None:
    verdicts = decided(*launches(5, 2), waiting())
    assert len(created(verdicts)) == 1
    assert on(verdicts, "NodePool").reason is Reason.PODS_PENDING_AGAIN
    assert set(json.loads(remembered(verdicts))) == {WEB}


def test_the_third_within_ten_minutes_opens_the_breaker() -> None:
    verdicts = decided(*launches(5, 3, 0.6), waiting())
    assert created(verdicts) == []
    told = on(verdicts, "Pod")
    assert (told.reason, told.recheck_at) == (Reason.LAUNCH_BREAKER_OPEN, ago(36) + MINUTE)
    is_open = BreakerOpen(WEB, 3, 3, NOW - 5 * MINUTE, "n2", ago(36) + MINUTE)
    assert told.facts == (is_open,)
    pool = on(verdicts, "NodePool")
    assert (pool.reason, pool.facts) == (Reason.LAUNCH_BREAKER_OPEN, (is_open,))


def test_a_closed_breaker_is_not_blamed_for_a_claim_that_the_api_server_refused() -> None:
    pod = waiting()
    refusal = ClaimRefusal(claim="general-x", message="denied", at=ago(10), retry_at=ahead(50))
    verdicts = decided(*launches(5), pod, refused_claims={pod.uid: refusal})
    assert on(verdicts, "Pod").reason is Reason.FAILED_SCHEDULING


def test_three_within_more_than_ten_minutes_do_not() -> None:
    assert len(created(decided(*launches(11, 5, 0.6), waiting()))) == 1


def test_nodes_that_were_launched_together_count_once() -> None:
    assert len(created(decided(*launches(2, 2, 2, 1.9), waiting()))) == 1


BACK_OFF = [
    pytest.param((3, 2, 1.1), True, id="1m"),
    pytest.param((4, 3, 2, 0.9), False, id="then 2m"),
    pytest.param((6, 5, 4, 2.1), True, id="over"),
    pytest.param((10, 9, 8, 7, 3.9), False, id="then 4m"),
    pytest.param((150, 149, 148, 147, 145, 141, 133, 117, 87, 57, 29), False, id="at most 30m"),
    pytest.param((151, 150, 149, 148, 146, 142, 134, 118, 88, 58, 31), True, id="and no more"),
]


@pytest.mark.parametrize(("minutes_ago", "launches_again"), BACK_OFF)
def test_while_it_is_open_launches_back_off(minutes_ago: Any, launches_again: bool) -> None:
    assert bool(created(decided(*launches(*minutes_ago), waiting()))) is launches_again


def test_no_more_than_twelve_nodes_an_hour_while_it_is_open() -> None:
    """The breaker opened long ago; then twelve nodes were launched together."""
    many = launches(55, 54, 53, *[40] * 12)
    verdicts = decided(*many, waiting())
    told = on(verdicts, "Pod")
    assert (told.reason, told.recheck_at) == (Reason.LAUNCH_BREAKER_OPEN, ahead(5 * 60))
    next_at = NOW + 20 * MINUTE
    assert told.facts == (BreakerOpen(WEB, 15, 15, NOW - 55 * MINUTE, "n9", next_at),)


def test_a_launch_while_it_is_open_has_no_more_nodes_than_are_left() -> None:
    pods = [waiting(f"web-{n}", requests={"cpu": "3"}) for n in range(6)]
    verdicts = decided(*launches(55, 54, 53, *[40] * 8), *pods)
    assert len(created(verdicts)) == 4
    held = [
        v for v in verdicts if v.reason is Reason.LAUNCH_BREAKER_OPEN and v.subject.kind == "Pod"
    ]
    assert len(held) == 2


def test_one_owners_breaker_never_holds_anothers_pods() -> None:
    verdicts = decided(*launches(5, 3, 0.6), waiting(), waiting("cache-0", "cache"))
    (create,) = created(verdicts)
    said = read_launched_for(create.body["metadata"]["annotations"][names.LAUNCHED_FOR])
    assert [one.owner for one in said] == ["StatefulSet/default/cache"]
    assert on(verdicts, "Pod", "cache").reason is Reason.NOMINATED
    assert on(verdicts, "Pod", "web").reason is Reason.LAUNCH_BREAKER_OPEN


def test_nodes_that_pods_of_an_open_breaker_took_open_no_other_breaker() -> None:
    """kube-scheduler gives the nodes of one owner to older pods of another that gets none."""
    mine = launches(8, 5, 0.5)
    others = [of(a_pod(f"greedy-{n}", node=f"node-n{n}"), "greedy") for n in range(3)]
    opened = (
        '"opened":"2026-03-02T11:30:00Z","launches":[{"claim":"g","at":"2026-03-02T11:29:00Z"}]'
    )
    pool = a_pool_that_remembers(f'{{"StatefulSet/default/greedy":{{{opened}}}}}')
    verdicts = decided(pool, *mine, *others, waiting())
    assert len(created(verdicts)) == 1
    assert created(decided(*mine, *others, waiting())) == [], "no breaker held the others"


def test_nodes_that_such_pods_took_still_count_for_the_hours_limit() -> None:
    mine, others = [], []
    for number in range(64):
        mine += a_launch(f"n{number}", NOW - 50 * MINUTE + number * timedelta(seconds=1))
        others.append(of(a_pod(f"greedy-{number}", node=f"node-n{number}"), "greedy"))
    opened = (
        '"opened":"2026-03-02T11:30:00Z","launches":[{"claim":"g","at":"2026-03-02T11:29:00Z"}]'
    )
    pool = a_pool_that_remembers(f'{{"StatefulSet/default/greedy":{{{opened}}}}}')
    assert created(decided(pool, *mine, *others, waiting())) == []


def test_a_held_pod_may_go_to_a_node_that_exists() -> None:
    free = [a_claim("free"), a_node("node-free", claim="free")]
    verdicts = decided(*launches(5, 3, 0.6), *free, waiting(since=ago(5)))
    assert (on(verdicts, "Pod").reason, created(verdicts)) == (Reason.NOMINATED, [])


@pytest.mark.parametrize(("revisions", "held"), [(3, False), (4, True)])
def test_more_than_three_revisions_in_vain_are_no_rollout(revisions: int, held: bool) -> None:
    there: list[ApiObject] = []
    for number in range(revisions):
        said = json.dumps([{"owner": WEB, "names": ["web-0"], "revision": f"h{number}"}])
        at = NOW - (revisions - number) * 0.7 * MINUTE
        there += a_launch(f"n{number}", at, annotations={names.LAUNCHED_FOR: said})
    verdicts = decided(*there, waiting(labels={"controller-revision-hash": "next"}))
    reason = Reason.LAUNCH_BREAKER_OPEN if held else Reason.NOMINATED
    assert on(verdicts, "Pod").reason is reason


NOT_COUNTED: list[Any] = [
    pytest.param({"deletion_timestamp": ago(5)}, id="we take the node away"),
    pytest.param({"annotations": {names.REPLACED_BY: "other"}}, id="it is being replaced"),
    pytest.param({"annotations": {names.REBOOT_HISTORY: "then"}}, id="it was rebooted"),
    pytest.param({"conditions": (condition("Rebooting"),)}, id="it is being rebooted"),
    pytest.param({"conditions": (condition("NodeLost"),)}, id="its Node was lost"),
]


@pytest.mark.parametrize("fields", NOT_COUNTED)
def test_what_we_or_the_cloud_took_away_does_not_count(fields: Any) -> None:
    assert len(created(decided(*launches(5, 3, 0.6, **fields), waiting()))) == 1


def test_a_lost_instance_does_not_count() -> None:
    vanished = {f"uid-n{number}": NOW for number in range(3)}
    assert len(created(decided(*launches(5, 3, 0.6), waiting(), vanished=vanished))) == 1
    too_early = dict.fromkeys(vanished, ago(590))
    assert created(decided(*launches(5, 3, 0.6), waiting(), vanished=too_early)) == []


def test_a_node_on_which_a_pod_of_the_owner_runs_or_has_finished_does_not_count() -> None:
    there = [
        of(a_pod("web-7", node="node-n0")),
        of(a_pod("web-8", node="node-n1", phase="Succeeded")),
    ]
    assert len(created(decided(*launches(5, 3, 0.6), *there, waiting()))) == 1


FAILED: list[Any] = [
    pytest.param({}, {}, False, id="its container failed"),
    pytest.param({"reason": "DeadlineExceeded"}, {}, False, id="its own deadline"),
    pytest.param({"reason": "Evicted"}, {}, True, id="evicted by the kubelet"),
    pytest.param({"reason": "OutOfcpu"}, {}, True, id="refused by the kubelet"),
    pytest.param({"start_time": None}, {}, True, id="it never started"),
    pytest.param({"conditions": (condition("DisruptionTarget"),)}, {}, True, id="disrupted"),
    pytest.param({}, {"deletion_timestamp": ago(5)}, True, id="deleted"),
]


@pytest.mark.parametrize(("status", "metadata", "counts"), FAILED)
def test_a_node_on_which_a_pod_failed_by_itself_does_not_count(
    status: Any, metadata: Any, counts: bool
) -> None:
    there = of(a_pod("web-7", node="node-n0", phase="Failed", **metadata))
    status = {"start_time": ago(60), **status}
    failed = msgspec.structs.replace(there, status=msgspec.structs.replace(there.status, **status))
    verdicts = decided(*launches(5, 3, 0.6), failed, waiting())
    assert (created(verdicts) == []) is counts


def test_a_node_whose_pods_run_elsewhere_does_not_count() -> None:
    """The scheduler may put them where it likes."""
    elsewhere = [
        a_claim("free"),
        a_node("node-free", claim="free"),
        of(a_pod("web-0", node="node-free")),
    ]
    large = waiting("web-1", requests={"cpu": "3800m"})
    assert len(created(decided(*launches(5, 3, 0.6), *elsewhere, large))) == 1


def test_a_node_that_has_served_a_pod_that_is_gone_does_not_count() -> None:
    verdicts = decided(*launches(5, 3, 0.6), waiting(), served_claims={"uid-n1": {WEB}})
    assert created(verdicts)
    told = on(verdicts, "NodeClaim", "n1")
    assert told.reason is Reason.LAUNCH_SERVED
    assert isinstance(told.action, Patch)
    text = told.action.body["metadata"]["annotations"][names.LAUNCHED_FOR]
    assert [one.served for one in read_launched_for(text)] == [True]


def test_that_a_node_has_served_is_read_off_its_claim_after_a_restart() -> None:
    said = marked_served(launched_for([of(a_pod("web-0"))]), {WEB})
    first, *others = (a_launch(f"n{n}", NOW - m * MINUTE) for n, m in enumerate((5, 3, 0.6)))
    marked = a_launch("n0", NOW - 5 * MINUTE, annotations={names.LAUNCHED_FOR: said})
    rest = [thing for launch in others for thing in launch]
    assert created(decided(*first, *rest, waiting())) == []
    assert len(created(decided(*marked, *rest, waiting()))) == 1


def test_another_owners_pod_that_ended_well_does_not_matter() -> None:
    other = {"uid-n1": {"StatefulSet/default/cache"}}
    assert created(decided(*launches(5, 3, 0.6), waiting(), served_claims=other)) == []


def test_what_counts_as_lost_follows_the_setting() -> None:
    """An instance that a list lacked five minutes after its launch."""
    vanished = {f"uid-n{number}": ago(300) for number in range(3)}
    long = msgspec.structs.replace(SETTINGS, garbage_period=timedelta(hours=1))
    short = msgspec.structs.replace(SETTINGS, garbage_period=timedelta(seconds=1))
    there = [*launches(5, 3, 0.6), waiting()]
    assert created(decided(*there, settings=long, vanished=vanished)) == []
    assert len(created(decided(*there, settings=short, vanished=vanished))) == 1


def test_what_was_remembered_survives_the_claims() -> None:
    text = remembered(decided(*launches(5, 3, 0.6), waiting()))
    verdicts = decided(a_pool_that_remembers(text), waiting())
    assert (on(verdicts, "Pod").reason, created(verdicts)) == (Reason.LAUNCH_BREAKER_OPEN, [])
    assert on(verdicts, "NodePool").action is None, "it is written already"


def test_a_pod_that_has_run_for_ten_minutes_closes_it() -> None:
    text = remembered(decided(*launches(5, 3, 0.6), waiting()))
    pool, opened = a_pool_that_remembers(text), ago(36)
    free = [a_claim("free"), a_node("node-free", claim="free")]
    running = of(a_pod("web-5", node="node-free"))
    started = opened + MINUTE

    def pod_since(at: datetime) -> Pod:
        status = msgspec.structs.replace(running.status, start_time=at)
        return msgspec.structs.replace(running, status=status)

    closes_at = started + 10 * MINUTE
    before = decided(pool, *free, pod_since(started), now=closes_at - MINUTE)
    assert on(before, "NodePool").reason is Reason.LAUNCH_BREAKER_OPEN
    assert on(before, "NodePool").recheck_at == closes_at
    after = decided(pool, *free, pod_since(started), now=closes_at)
    assert on(after, "NodePool").reason is Reason.LAUNCH_BREAKER_CLOSED
    closed = a_pool_that_remembers(remembered(after))
    again = decided(closed, *launches(5, 3, 0.6), waiting(), now=closes_at)
    assert len(created(again)) == 1, "what was before counts no more"
    long_running = decided(pool, *free, pod_since(opened - MINUTE), now=closes_at)
    assert on(long_running, "NodePool").reason is Reason.LAUNCH_BREAKER_OPEN, "it ran all the time"


def test_only_our_pools_that_launched_for_the_owner_remember_that_it_closed() -> None:
    text = remembered(decided(*launches(5, 3, 0.6), waiting()))
    closes_at = ago(36) + timedelta(hours=2)
    others = [a_pool("other"), a_pool("foreign", ref=FOREIGN)]
    verdicts = decided(a_pool_that_remembers(text), *others, now=closes_at)
    assert [(v.subject.name, v.reason) for v in verdicts] == [
        ("general", Reason.LAUNCH_BREAKER_CLOSED)
    ]


def test_what_a_foreign_pool_remembers_is_not_ours() -> None:
    text = remembered(decided(*launches(5, 3, 0.6), waiting()))
    foreign = a_pool("foreign", annotations={names.LAUNCH_BREAKER: text}, ref=FOREIGN)
    verdicts = decided(a_pool(), foreign, waiting())
    assert len(created(verdicts)) == 1
    assert not [v for v in verdicts if v.subject.kind == "NodePool"]


def test_it_closes_when_nothing_was_launched_for_two_hours() -> None:
    text = remembered(decided(*launches(5, 3, 0.6), waiting()))
    pool = a_pool_that_remembers(text)
    last = ago(36)
    hour = timedelta(hours=1)
    assert on(decided(pool, now=last + hour), "NodePool").reason is Reason.LAUNCH_BREAKER_OPEN
    closed = on(decided(pool, now=last + 2 * hour), "NodePool")
    assert closed.reason is Reason.LAUNCH_BREAKER_CLOSED


def generated(number: int) -> str:
    """As Kubernetes draws the end of a name."""
    return "".join("bcdfg"[number // 5**place % 5] for place in range(5))


def gone(count: int, owner: str) -> dict[str, DepartedClaim]:
    return {
        f"uid-{number}": DepartedClaim(
            name=f"n{number}",
            pool="general",
            created_at=ago(60 * 50 - number),
            launched_for=json.dumps([{"owner": owner.replace("*", generated(number))}]),
        )
        for number in range(count)
    }


@pytest.mark.parametrize("owner", [WEB, "StatefulSet/default/web-*"])
def test_launches_in_vain_of_a_family_have_a_bound(owner: str) -> None:
    """Claims that are created and deleted for owners of one family; no pods were pending again."""
    name = "web-bbbbb" if "*" in owner else "web"
    few = decided(waiting(owner=name), departed_claims=gone(63, owner))
    assert len(created(few)) == 1
    many = decided(waiting(owner=name), departed_claims=gone(64, owner))
    told = on(many, "Pod")
    assert (told.reason, created(many)) == (Reason.LAUNCH_BREAKER_OPEN, [])
    since = ago(60 * 50)
    family, owners = (owner, 64) if "*" in owner else ("", 1)
    held = f"StatefulSet/default/{name}"
    next_at = since + 60 * MINUTE
    assert told.facts == (TooManyInVain(held, family, "", 64, owners, 64, since, next_at),)


def test_one_owner_does_not_reach_the_limit_of_its_family_or_namespace() -> None:
    """However many of its launches were in vain: it counts with three of them."""
    of_one = gone(500, "StatefulSet/default/web-bbbbb")
    for name in ("web-ccccc", "cache"):
        assert len(created(decided(waiting(owner=name), departed_claims=of_one))) == 1
    assert created(decided(waiting(owner="web-bbbbb"), departed_claims=of_one)) == []
    unused: list[ApiObject] = []
    for number in range(200):
        unused += a_launch(f"n{number}", ago(60 * 50 - number), owner=f"o{number % 20}")
    assert len(created(decided(*unused, waiting()))) == 1


def test_a_familys_bound_does_not_stop_an_owner_that_is_well_served() -> None:
    many = gone(100, "StatefulSet/default/web-*")
    runs = of(a_pod("web-7", node="node-elsewhere"), "web-zzzzz")
    for minutes, most in ((9, 0), (10, 1)):
        status = msgspec.structs.replace(runs.status, start_time=NOW - minutes * MINUTE)
        served = msgspec.structs.replace(runs, status=status)
        pending = waiting(owner="web-zzzzz")
        assert len(created(decided(served, pending, departed_claims=many))) == most


def of_many_owners(count: int, **fields: Any) -> list[ApiObject]:
    """Existing Nodes on which no pod has stayed, each launched for another owner."""
    there: list[ApiObject] = []
    for number in range(count):
        at = NOW - 50 * MINUTE + timedelta(seconds=number)
        there += a_launch(f"n{number}", at, owner=f"o{number}", **fields)
    return there


def test_unused_nodes_are_limited_per_namespace() -> None:
    few = decided(*of_many_owners(63), waiting())
    assert len(created(few)) == 1
    many = decided(*of_many_owners(64), waiting())
    told = on(many, "Pod")
    assert (told.reason, created(many)) == (Reason.LAUNCH_BREAKER_OPEN, [])
    next_at = NOW + 10 * MINUTE
    namespace = TooManyInVain(WEB, "", "default", 64, 64, 64, NOW - 50 * MINUTE, next_at)
    assert told.facts == (namespace,)
    assert len(created(decided(*of_many_owners(64), waiting(), now=next_at))) == 1


def test_owners_that_the_pool_remembers_count_with_three_nodes_each() -> None:
    """Their launches are read twice: from the pool's record and from their claims."""
    there: list[ApiObject] = []
    entries = []
    for owner in range(22):
        kept = []
        for number in range(3):
            at = NOW - 50 * MINUTE + timedelta(seconds=3 * owner + number)
            there += a_launch(f"n{owner}-{number}", at, owner=f"o{owner}")
            kept.append(
                f'{{"claim":"n{owner}-{number}","at":"{format_time(at)}","returned":"{format_time(at)}"}}'
            )
        entries.append(f'"StatefulSet/default/o{owner}":{{"launches":[{",".join(kept)}]}}')
    pool = a_pool_that_remembers("{" + ",".join(entries) + "}")
    assert created(decided(pool, *there, waiting())) == []


def test_a_namespaces_bound_stops_neither_another_nor_an_owner_that_is_well_served() -> None:
    pod = waiting()
    other = msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, namespace="other")
    )
    assert len(created(decided(*of_many_owners(100), other))) == 1
    runs = of(a_pod("web-7", node="node-elsewhere"))
    for minutes, most in ((9, 0), (10, 1)):
        status = msgspec.structs.replace(runs.status, start_time=NOW - minutes * MINUTE)
        served = msgspec.structs.replace(runs, status=status)
        verdicts = decided(*of_many_owners(100), served, waiting())
        assert len(created(verdicts)) == most


@pytest.mark.parametrize("fields", NOT_COUNTED)
def test_what_we_or_the_cloud_took_away_does_not_count_in_a_namespace(fields: Any) -> None:
    assert len(created(decided(*of_many_owners(100, **fields), waiting()))) == 1


def test_what_was_of_use_does_not_count_in_a_namespace() -> None:
    claims = of_many_owners(100)
    served = {f"uid-n{n}": {f"StatefulSet/default/o{n}"} for n in range(50)}
    assert len(created(decided(*claims, waiting(), served_claims=served))) == 1
    lost = {f"uid-n{number}": NOW for number in range(50)}
    assert len(created(decided(*claims, waiting(), vanished=lost))) == 1
    there = [of(a_pod(f"p-{n}", node=f"node-n{n}"), f"o{n}") for n in range(50)]
    assert len(created(decided(*claims, *there, waiting()))) == 1


def deleted(count: int, *, answer: Any = None, **fields: Any) -> tuple[list[ApiObject], Any]:
    """Claims that others deleted soon, and what the cloud said when asked to terminate them."""
    fields = {"deletion_timestamp": ago(60), **fields}
    answers = {f"uid-n{n}": answer or TerminationAnswer(asked_at=ago(30)) for n in range(count)}
    return launches(*[5] * count, **fields), answers


def test_claims_that_others_delete_soon_have_a_bound_and_are_remembered() -> None:
    few, answers = deleted(63)
    assert len(created(decided(*few, waiting(), terminations=answers))) == 1
    many, answers = deleted(64)
    verdicts = decided(*many, waiting(), terminations=answers)
    told = on(verdicts, "Pod")
    assert (told.reason, created(verdicts)) == (Reason.LAUNCH_BREAKER_OPEN, [])
    assert on(verdicts, "NodePool").reason is Reason.PODS_PENDING_AGAIN
    after_restart = decided(a_pool_that_remembers(remembered(verdicts)), waiting())
    assert on(after_restart, "Pod").reason is Reason.LAUNCH_BREAKER_OPEN


SERVED = {names.LAUNCHED_FOR: marked_served(launched_for([of(a_pod("web-0"))]), {WEB})}
NOT_WASTED: list[Any] = [
    pytest.param({"answer": TerminationAnswer(asked_at=NOW, gone=True, lost=True)}, id="lost"),
    pytest.param({"annotations": SERVED}, id="a pod succeeded there"),
    pytest.param({"annotations": {names.DISRUPTION_REASON: "Empty"}}, id="we disrupted it"),
    pytest.param(
        {
            "annotations": {names.DISRUPTION_REASON: "Empty", names.REPLACED_BY: ""},
            "conditions": [condition("Empty", at=ago(70))],
        },
        id="it was empty",
    ),
    pytest.param({"conditions": [condition("Expired")]}, id="it was too old"),
    pytest.param({"annotations": {names.REPAIR_REASON: "Repairing"}}, id="it was repaired"),
    pytest.param({"annotations": {names.REPLACES: "uid-old"}}, id="a replacement, left over"),
    pytest.param({"annotations": {names.INTERRUPTION: "kwok"}}, id="the cloud took it back"),
    pytest.param({"annotations": {names.REBOOT_HISTORY: "x"}}, id="its reboot failed"),
    pytest.param({"conditions": [condition("NodeLost")]}, id="its Node was lost"),
    pytest.param({"deletion_timestamp": ahead(300)}, id="it was there for ten minutes"),
    pytest.param({"stage": 1, "spec": {"readiness_ttl": "5s"}}, id="it was not Ready in time"),
]


@pytest.mark.parametrize("fields", NOT_WASTED)
def test_claims_that_are_gone_for_other_reasons_hold_nothing(fields: Any) -> None:
    many, answers = deleted(100, **fields)
    verdicts = decided(*many, waiting(), terminations=answers)
    assert len(created(verdicts)) == 1
    assert [v.reason for v in verdicts if v.subject.kind == "Pod"] == [Reason.NOMINATED]


@pytest.mark.parametrize(("stayed", "most"), [(59, 0), (60, 1)])
def test_nodes_that_pods_left_at_once_count_for_the_namespace(stayed: int, most: int) -> None:
    """Tenure removes them as empty; one that held pods for a minute was of use."""
    fields = {
        "annotations": {names.DISRUPTION_REASON: "Empty", names.REPLACED_BY: ""},
        "conditions": [
            condition("Initialized", at=ago(200)),
            condition("Empty", at=ago(200 - stayed)),
        ],
        "deletion_timestamp": ago(60),
    }
    verdicts = decided(*of_many_owners(100, **fields), waiting())
    assert len(created(verdicts)) == most


def test_nodes_that_are_gone_because_pods_left_at_once_count_for_the_namespace_only() -> None:
    one = {
        uid: msgspec.structs.replace(claim, left_at_once=True)
        for uid, claim in gone(100, WEB).items()
    }
    assert len(created(decided(waiting(), departed_claims=one))) == 1
    many = {
        uid: msgspec.structs.replace(claim, left_at_once=True)
        for uid, claim in gone(100, "StatefulSet/default/*").items()
    }
    verdicts = decided(waiting(), departed_claims=many)
    told = on(verdicts, "Pod")
    assert (told.reason, created(verdicts)) == (Reason.LAUNCH_BREAKER_OPEN, [])
    assert [v for v in verdicts if v.subject.kind == "NodePool"] == []


def test_nothing_is_written_to_a_pool_that_cannot_be_read() -> None:
    pools = [stand_in(a_pool(), "weight is no number"), a_pool("other")]
    verdicts = decided(*pools, *launches(5, 3, 0.6), waiting())
    assert [v for v in verdicts if v.subject.name == "general" and v.action is not None] == []
    assert on(verdicts, "Pod").reason is Reason.LAUNCH_BREAKER_OPEN


NONSENSE = [
    "",
    "{",
    "[]",
    '{"a": 1}',
    '{"a": {"opened": "2026-01-01T00:00:00"}}',
    "x" * 100_000,
    "[" * 40_000,
    '{"a": {"launches": ' + "[" * 40_000,
    '[{"owner": ' + '{"a":' * 20_000,
]


@pytest.mark.parametrize("text", NONSENSE)
def test_an_annotation_that_cannot_be_read_counts_as_nothing(text: str) -> None:
    assert ledger_of(a_pool_that_remembers(text)) == {}
    assert read_launched_for(text) == ()
    assert len(created(decided(a_pool_that_remembers(text), waiting()))) == 1


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_instants_at_the_end_of_the_calendar_change_nothing(at: str) -> None:
    entry = {"launches": [{"claim": "n", "at": at, "returned": at}], "opened": at, "closed": at}
    pool = a_pool_that_remembers(json.dumps({WEB: entry}))
    assert len(created(decided(pool, waiting()))) == 1
    assert created(decided(pool, *launches(5, 3, 0.6), waiting())) == []


def test_one_packing_is_enough_where_the_breaker_is_known_to_be_open() -> None:
    text = remembered(decided(*launches(5, 3, 0.6), waiting()))
    pool = a_pool_that_remembers(text)
    assert packings(pool, *launches(5, 3, 0.6), waiting(), waiting("cache-0", "cache")) == 1


def test_one_packing_is_enough_where_it_opens_for_pods_on_claims_of_their_own() -> None:
    assert packings(*launches(5, 3, 0.6), waiting()) == 1
    assert packings(*launches(5, 3, 0.6), waiting(), waiting("cache-0", "cache")) == 2


def test_nothing_is_packed_while_no_pod_needs_a_node() -> None:
    ledger = {WEB: Entry((Kept("n0", ago(60), ago(30)),))}
    text = written(ledger)
    assert text is not None
    assert packings(a_pool_that_remembers(text), *launches(1)) == 0
    view = ProvisionDecider().view(snapshot_with(a_class(), a_pool_that_remembers(text)), "cluster")
    assert view is not None
    assert view.capacity is None


def packings(*objects: ApiObject) -> int:
    """How often the packer is asked in one look."""
    count = 0

    def counting(problem: Problem) -> Steps[Packing]:
        nonlocal count
        count += 1
        return packing(problem)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tenure.core.provision.vacating.packing_steps", counting)
        decided(*objects)
    return count


def test_what_is_remembered_stays_short() -> None:
    owners = [of(a_pod(f"pod-{n}"), f"owner-{n}") for n in range(200)]
    assert len(read_launched_for(launched_for(owners))) == 50


def test_what_is_too_long_to_be_read_again_loses_the_oldest_first() -> None:
    """200 owners with the longest names; then one with more launches than fit by themselves."""
    owners = [f"Deployment/{'n' * 60}{n:03}/{'d' * 240}{n:03}" for n in range(200)]
    ledger = {
        owner: Entry((Kept(f"general-{n:05}", ahead(n), ahead(n)),), opened=ahead(n))
        for n, owner in enumerate(owners)
    }
    text = written(ledger)
    assert text is not None
    assert LENGTH_MAX / 2 < len(text) <= LENGTH_MAX
    again = ledger_of(a_pool_that_remembers(text))
    assert set(again) == set(owners[-len(again) :])
    assert again == {owner: ledger[owner] for owner in again}
    assert written(again) == text
    many = tuple(Kept(f"{'c' * 253}{n}", ahead(n), ahead(n)) for n in range(300))
    text = written({WEB: Entry(many, opened=ahead(0))})
    assert text is not None
    kept = ledger_of(a_pool_that_remembers(text))[WEB].launches
    assert 100 < len(kept) < 300
    assert kept == many[-len(kept) :]


def test_the_longest_owners_and_pods_fit_on_a_claim() -> None:
    pods = [
        msgspec.structs.replace(
            pod,
            metadata=msgspec.structs.replace(
                pod.metadata,
                namespace="n" * 63,
                name=f"{'p' * 250}{pod.name}",
                labels={"controller-revision-hash": "r" * 63},
                owner_references=(
                    OwnerReference(kind="StatefulSet", name=f"{'o' * 250}{n}", controller=True),
                ),
            ),
        )
        for n in range(100, 160)
        for pod in (a_pod(f"{k}") for k in range(3))
    ]
    text = launched_for(pods)
    assert len(text) <= LENGTH_MAX
    assert len(read_launched_for(text)) == 50


@pytest.mark.parametrize("kind", ["X/{}", "{}"], ids=["slash", "plain"])
def test_invented_kinds_count_in_their_namespace(kind: str) -> None:
    there: list[ApiObject] = []
    for number in range(64):
        owner = OwnerReference(kind=kind.format(f"k{number}"), name="y", controller=True)
        pod = a_pod(f"p{number}", owner="", owner_references=(owner,))
        at = NOW - 50 * MINUTE + timedelta(seconds=number)
        claim, node = a_launch(f"n{number}", at)
        annotations = {names.LAUNCHED_FOR: launched_for([pod])}
        metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
        there += [msgspec.structs.replace(claim, metadata=metadata), node]
    assert on(decided(*there, waiting()), "Pod").reason is Reason.LAUNCH_BREAKER_OPEN


def test_others_do_not_displace_an_open_breaker_from_the_ledger() -> None:
    """Older versions wrote names of any length; they are newer here, and open, too."""
    victim = Entry((Kept("general-old", ahead(0), ahead(0)),), opened=ahead(0))
    launches_ = tuple(Kept(f"general-{n:05}", ahead(n), ahead(n)) for n in range(400))
    long = {
        f"X/lo/{'n' * 40_000}{n}": Entry((Kept(f"l{n}", ahead(900)),), opened=ahead(900))
        for n in range(2)
    }
    many = {
        f"X/lo/{'n' * 240}{n}": Entry((Kept(f"m{n}", ahead(900)),), opened=ahead(900))
        for n in range(500)
    }
    busy = {"X/lo/busy": Entry(launches_, opened=ahead(399))}
    text = written({WEB: victim, **long, **many, **busy})
    assert text is not None
    assert len(text) <= LENGTH_MAX
    assert ledger_of(a_pool_that_remembers(text))[WEB] == victim
