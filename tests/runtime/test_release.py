"""Every lever is taken back, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

from tenure.cli.replica.released import Outcome, release_over
from tenure.core.beside.kinds import REPAIR
from tenure.kube.client.client import Client
from tenure.model.api import names
from tenure.model.api import resource as r
from tenure.ports.transport import Request, Response, Stream, Transport
from tenure.runtime.release import Release, release_levers
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.transport import InProcessTransport
from tenure.sim.world import World
from tests.builders import HOUR, MINUTE, SECOND, a_pool
from tests.core.beside.scenes import TRUE, marks
from tests.scenarios.karpenterplayed import Accompanied
from tests.scenarios.test_beside_repair import claim_that_never_registers
from tests.scenarios.test_beside_replacement import a_cluster, claims, marks_of

REPAIR_LEVER = {names.DO_NOT_REPAIR: "true", **marks(kind=REPAIR)}
NODES = {
    "ours": {**TRUE, **marks()},
    "edited": {names.DO_NOT_DISRUPT: "2h", **marks()},
    "users": {**TRUE, "team": "web"},
    "half": marks(),
    "torn": {**TRUE, names.DO_NOT_DISRUPT_UNTIL: "unknown"},
    "plain": {},
    "both": {**TRUE, **marks(), **REPAIR_LEVER},
    "veto": {**REPAIR_LEVER, names.DO_NOT_DISRUPT: "2h"},
}


def a_world() -> World:
    world = World()
    for name, written in NODES.items():
        metadata = {"name": name, "annotations": written}
        world.apply({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    return world


STAMP = {names.TERMINATION_TIMESTAMP: "2026-01-05T08:00:00Z"}
STAMPED = {
    **STAMP,
    names.TERMINATION_BY: "tenure",
    names.TERMINATION_BECAUSE: "NodeRepair",
    names.TERMINATION_AT: STAMP[names.TERMINATION_TIMESTAMP],
}
LATER = {names.TERMINATION_TIMESTAMP: "2026-01-05T09:00:00Z"}
NOTED = {names.READY_ONCE_AT: "2026-01-05T08:00:00Z", names.NODE_LOST_AT: "x"}
CLAIMS = {
    "stamped": {**STAMPED, names.PROBE_BESIDE: "zone=a x", "team": "web"},
    "leaving": {**STAMPED, **NOTED},
    "noted": NOTED,
    "users": STAMP,
    "edited": {**STAMPED, **LATER},
    "torn": {**STAMP, names.TERMINATION_BECAUSE: "NodeRepair"},
}


def test_claims_and_pools_keep_nothing_of_ours_but_the_deadline_of_one_that_leaves() -> None:
    with World() as world:
        for name, written in CLAIMS.items():
            claim = claim_that_never_registers(name)
            claim["metadata"]["annotations"] = written
            world.apply(claim)
        world.store.delete(r.NODE_CLAIMS, "", "leaving")
        pool = a_pool()
        pool["metadata"]["annotations"] = {names.PROBE_BESIDE: "zone=a b c", "team": "web"}
        world.apply(pool)
        client = Client(InProcessTransport(Api(world.store)))
        taken = told(world, lambda: release_levers(client))
        assert [(one.kind, one.name) for one in taken] == [
            *(("NodeClaim", name) for name in ("edited", "leaving", "noted", "stamped", "torn")),
            ("NodePool", "general"),
        ]
        assert annotations_in(world, r.NODE_CLAIMS) == {
            "stamped": {"team": "web"},
            "leaving": STAMPED,
            "noted": {},
            "users": STAMP,
            "edited": LATER,
            "torn": STAMP,
        }
        assert annotations_in(world, r.NODE_POOLS) == {"general": {"team": "web"}}
        assert told(world, lambda: release_levers(client)) == []


#: By Tenure in charge: something under way, and what it only remembers.
IN_CHARGE = {
    "replaced": {names.REPLACED_BY: "b", names.DISRUPTION_REASON: "Drifted", **STAMP},
    "forced": {names.REPAIR_REASON: "NodeRepair", names.REPAIR_PROBE: "zone=a x", **STAMP},
    "interrupted": {names.INTERRUPTION: "kwok 2026-01-05T08:00:00Z", **STAMP},
    "replacement": {names.REPLACES: "uid-a", names.NOMINATED_PODS: "x"},
    "remembers": {names.STARTED_AT: "x", names.LAUNCHED_FOR: "y", names.NODEPOOL_HASH_FIELDS: "z"},
    "gone": {names.REPAIR_REASON: "NodeRepair", **STAMP},
}
#: Karpenter copies annotations of a claim to the Node that registers.
COPIED = {
    "karpenter.sh/do-not-disrupt-since": "2h 2026-01-05T08:00:00Z",
    names.EXPIRED_AT: "2026-01-05T08:00:00Z",
    names.TERMINATION_BY: "tenure",
    names.TERMINATION_BECAUSE: "ReadinessTimeout",
    names.TERMINATION_AT: "2026-01-05T08:00:00Z",
    names.TERMINATION_TIMESTAMP: "2026-01-05T08:00:00Z",
}


def left_by_tenure_in_charge(world: World) -> None:
    for name, written in IN_CHARGE.items():
        claim = claim_that_never_registers(name)
        claim["metadata"]["annotations"] = {**written, "team": "web"}
        world.apply(claim)
    world.store.delete(r.NODE_CLAIMS, "", "gone")
    pool = a_pool()
    pool["metadata"]["annotations"] = {names.LAUNCH_TIMEOUTS: "x", names.REPAIR_PROBE: "y"}
    world.apply(pool)
    taints = [{"key": "team", "effect": "NoSchedule"}]
    reserved = [*taints, {"key": names.RESERVED_TAINT, "effect": "NoSchedule"}]
    world.apply(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "new", "annotations": COPIED},
            "spec": {"taints": reserved},
        }
    )


def test_what_tenure_in_charge_has_left_goes_but_the_deadline_of_one_that_leaves() -> None:
    with World() as world:
        left_by_tenure_in_charge(world)
        client = Client(InProcessTransport(Api(world.store)))
        taken: list[Release] = told(world, lambda: release_levers(client))
        assert not [one for one in taken if one.problem]
        team = {"team": "web"}
        left = {**dict.fromkeys(IN_CHARGE, team), "gone": {**STAMP, **team}}
        assert annotations_in(world, r.NODE_CLAIMS) == left
        assert annotations_in(world, r.NODE_POOLS) == {"general": {}}
        (node,) = world.store.list(r.NODES)
        assert not node["metadata"].get("annotations")
        assert [one["key"] for one in node["spec"]["taints"]] == ["team"]
        (said,) = (one.said for one in taken if one.kind == "Node")
        assert said == "; ".join((*COPIED, "taint tenure.dev/reserved"))
        assert told(world, lambda: release_levers(client)) == []


def test_what_a_tenure_remembers_that_is_in_charge_stays() -> None:
    """Levers of a Tenure beside Karpenter go all the same."""
    with a_world() as world:
        left_by_tenure_in_charge(world)
        before = annotations_in(world, r.NODE_CLAIMS)
        _lease(world, timedelta(seconds=5), "karpenter-leader-election", ours=True)
        transport = InProcessTransport(Api(world.store))
        found: Outcome = told(world, lambda: release_over(transport, world.now, dry_run=False))
        assert (found.runs, found.notes) == ("", ())
        assert {one.kind for one in found.taken} == {"Node"}
        assert annotations_in(world, r.NODE_CLAIMS) == before
        assert annotations_in(world)["ours"] == {}
        assert annotations_in(world)["new"] == COPIED


def annotations_in(world: World, resource: r.Resource = r.NODES) -> dict[str, Any]:
    return {
        node["metadata"]["name"]: node["metadata"].get("annotations") or {}
        for node in world.store.list(resource)
    }


def told(world: World, work: Callable[[], Awaitable[Any]]) -> Any:
    found: list[Any] = []

    async def story() -> None:
        found.append(await work())

    world.loop.run_until_complete(story())
    return found[0]


def test_our_levers_go_and_what_users_wrote_stays() -> None:
    with a_world() as world:
        client = Client(InProcessTransport(Api(world.store)))
        taken = told(world, lambda: release_levers(client))
        assert [(one.kind, one.name, one.problem) for one in taken] == [
            ("Node", "both", ""),
            ("Node", "edited", ""),
            ("Node", "half", ""),
            ("Node", "ours", ""),
            ("Node", "torn", ""),
            ("Node", "veto", ""),
        ]
        said = "karpenter.sh/do-not-{}: MaintenanceWindow freeze, until unknown".format
        assert taken[0].said == f"{said('disrupt')}; {said('repair')}"
        assert taken[3].said == said("disrupt")
        assert annotations_in(world) == {
            "ours": {},
            "edited": {names.DO_NOT_DISRUPT: "2h"},
            "users": NODES["users"],
            "half": {},
            "torn": TRUE,
            "plain": {},
            "both": {},
            "veto": {names.DO_NOT_DISRUPT: "2h"},
        }
        assert told(world, lambda: release_levers(client)) == []


def test_a_dry_run_changes_nothing() -> None:
    with a_world() as world:
        before = annotations_in(world)
        client = Client(InProcessTransport(Api(world.store)))
        assert len(told(world, lambda: release_levers(client, dry_run=True))) == 6
        assert annotations_in(world) == before


class _Meddling:
    """Before the first write something else changes the Node."""

    def __init__(self, world: World, transport: Transport, edit: dict[str, Any]) -> None:
        self._world, self._transport, self._edit = world, transport, edit

    async def request(self, request: Request) -> Response:
        if request.method == "PATCH" and request.path.endswith("/ours") and self._edit:
            edit, self._edit = self._edit, {}
            self._world.store.patch(r.NODES, "", "ours", {"metadata": edit})
        return await self._transport.request(request)

    async def stream(self, request: Request) -> Stream | Response:
        return await self._transport.stream(request)


def test_a_node_that_changes_meanwhile_is_read_again() -> None:
    for edit, left in (
        ({"labels": {"a": "b"}}, {}),
        ({"annotations": {names.DO_NOT_DISRUPT: "false"}}, {names.DO_NOT_DISRUPT: "false"}),
        ({"annotations": {names.DO_NOT_DISRUPT_BY: None}}, None),
    ):
        with a_world() as world:
            transport = _Meddling(world, InProcessTransport(Api(world.store)), edit)
            taken = told(world, lambda: release_levers(Client(transport)))  # noqa: B023  # at once
            assert all(not one.problem for one in taken)
            found = annotations_in(world)["ours"]
            if left is None:  # Its mark is gone: it is the user's.
                assert found[names.DO_NOT_DISRUPT] == "true"
            else:
                assert found == left


def _lease(
    world: World, renewed: timedelta, name: str = "tenure-beside-karpenter", *, ours: bool = False
) -> None:
    marks = {names.LEASE_IDENTITY: "replica-1", names.LEASE_TRANSITIONS: "0"} if ours else {}
    world.apply(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-system", "annotations": marks},
            "spec": {
                "leaseTransitions": 0,
                "holderIdentity": "replica-1",
                "leaseDurationSeconds": 15,
                "renewTime": (world.now - renewed).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            },
        }
    )


def test_nothing_is_released_while_a_replica_would_set_it_again() -> None:
    with a_world() as world:
        _lease(world, timedelta(seconds=5))
        before, transport = annotations_in(world), InProcessTransport(Api(world.store))
        found: Outcome = told(world, lambda: release_over(transport, world.now, dry_run=False))
        assert "replica-1" in found.runs
        assert (found.taken, annotations_in(world)) == ((), before)
        dry: Outcome = told(world, lambda: release_over(transport, world.now, dry_run=True))
        assert len(dry.taken) == 6
        (note,) = dry.notes
        assert note.startswith("nothing is released while a replica runs: replica-1")


def test_the_lease_of_a_replica_that_is_gone_does_not_count() -> None:
    with a_world() as world:
        _lease(world, timedelta(minutes=5))
        transport = InProcessTransport(Api(world.store))
        found: Outcome = told(world, lambda: release_over(transport, world.now, dry_run=False))
        assert (found.runs, len(found.taken)) == ("", 6)
        assert found.taken[0] == Release(
            "Node",
            "both",
            "karpenter.sh/do-not-disrupt: MaintenanceWindow freeze, until unknown; "
            "karpenter.sh/do-not-repair: MaintenanceWindow freeze, until unknown",
        )


def test_a_command_under_way_is_rolled_back_and_its_replacement_is_a_node_like_any_other() -> None:
    """No NodeClaim is deleted; keys under Karpenter's name that are not ours stay."""
    lever = {**TRUE, **marks("replaces NodeClaim old")}
    with told_until_replaced() as story:
        client = Client(InProcessTransport(Api(story.store)))
        names_before = claims(story)
        story.crash(stay_down=True)
        assert marks_of(story) >= set(lever)
        taken = told(story, lambda: release_levers(client))
        assert {one.kind for one in taken} == {"Node", "NodeClaim"}
        assert not any(one.problem for one in taken)
        assert marks_of(story) == set()
        assert claims(story) == names_before
        assert told(story, lambda: release_levers(client)) == []


@contextmanager
def told_until_replaced() -> Iterator[Accompanied]:
    """A node expires, and its replacement comes up."""
    with closing(Accompanied(*a_cluster())) as story:
        story.play(20 * MINUTE)
        story.run_while(lambda: len(story.all(r.NODES)) < 2, at_most=HOUR, step=SECOND)
        yield story
