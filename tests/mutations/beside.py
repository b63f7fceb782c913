"""Repair and time-outs beside Karpenter, broken on purpose, and the stories in which that matters.

No Karpenter runs here, so a claim that Tenure deletes stays, with its ``deletionTimestamp``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tenure.core.marks.timeout import note_lost
from tenure.model.api import names
from tenure.model.api.meta import format_time
from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.settings import Settings
from tenure.sim.world import World, WorldOptions
from tests.builders import HOUR, MINUTE, Manifest, a_pool
from tests.mutations.table import Mutation, always
from tests.scenarios.karpenterinstalled import install_karpenter
from tests.scenarios.test_beside_repair import (
    FORCEFUL,
    annotate,
    initialize,
    karpenter,
    notes_of,
    put_node,
    set_ready,
)
from tests.scenarios.test_pool_policies import a_policy

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
POOLS = ("general", "other")


class Beside(World):
    """Two NodePools beside Karpenter 1.15."""

    def __init__(self) -> None:
        super().__init__(WorldOptions(settings=Settings(beside_karpenter=True)))
        self.apply(a_pool())
        self.apply(a_pool("other"))
        install_karpenter(self, karpenter())


def leaving(world: World) -> set[str]:
    claims = world.store.list(NODE_CLAIMS)
    return {o["metadata"]["name"] for o in claims if "deletionTimestamp" in o["metadata"]}


def _unhealthy(world: World, name: str = "bad", *policies: Manifest, **more: Any) -> None:
    """A Node that was initialized, and has a condition that its provider tolerates for 30 s."""
    put_node(world, name, **more)
    initialize(world, name)
    set_ready(world, "True", name)
    for policy in policies:
        world.apply(policy)
    set_ready(world, "True", name, condition="KWOKUnhealthy")


def never_ready_without_a_ttl(world: World) -> bool:
    put_node(world)
    world.run(HOUR)
    return not leaving(world)


def never_ready(world: World) -> bool:
    """It may take ten minutes, and another one was Ready for a moment."""
    block = {"maxUnhealthy": "100%", "terminationMode": "Graceful"}
    world.apply(a_policy(readinessTTL="10m", repair=block))
    put_node(world)
    put_node(world, "moment")
    set_ready(world, "True", "moment")
    world.run(MINUTE)
    set_ready(world, "False", "moment")
    world.run(8 * MINUTE)
    early = leaving(world)
    world.run(2 * MINUTE)
    noted = names.READY_ONCE_AT in notes_of(world.store.get(NODE_CLAIMS, "", "moment"))
    return not early and leaving(world) == {"stuck"} and noted


def lost(world: World) -> bool:
    """A Node is gone for four minutes of five."""
    world.apply(a_policy(readinessTTL="5m"))
    put_node(world)
    initialize(world, "stuck")
    set_ready(world, "True")
    world.run(MINUTE)
    world.store.delete(NODES, "", "node-stuck")
    world.run(4 * MINUTE)
    return not leaving(world)


def repaired(world: World) -> bool:
    _unhealthy(world, "bad", a_policy(repair=FORCEFUL))
    world.run(2 * MINUTE)
    return leaving(world) == {"bad"}


def repaired_for_two_minutes(world: World) -> bool:
    """Tolerated for ten."""
    _unhealthy(world, "bad", a_policy(repair=FORCEFUL | {"defaultTolerationDuration": "10m"}))
    world.run(2 * MINUTE)
    return not leaving(world)


def unasked(world: World) -> bool:
    _unhealthy(world)
    world.run(HOUR)
    return not leaving(world)


def karpenter_repairs(world: World) -> bool:
    install_karpenter(world, karpenter("NodeRepair=true"))
    _unhealthy(world, "bad", a_policy(repair=FORCEFUL))
    world.run(5 * MINUTE)
    return not leaving(world)


def no_karpenter(world: World) -> bool:
    world.store.delete(DEPLOYMENTS, "kube-system", "karpenter")
    world.apply(a_policy(readinessTTL="5m"))
    put_node(world)
    world.run(10 * MINUTE)
    return not leaving(world)


def two_karpenters(world: World) -> bool:
    """Each by itself is one that was tried."""
    older = karpenter()
    older["metadata"]["name"] = "older"
    older["spec"]["template"]["spec"]["containers"][0]["image"] = "karpenter:1.9.0"
    install_karpenter(world, older)
    world.apply(a_policy(readinessTTL="5m"))
    put_node(world)
    world.run(10 * MINUTE)
    return not leaving(world)


def stamped_by_a_user(world: World) -> bool:
    theirs = {names.TERMINATION_TIMESTAMP: "2026-06-01T00:00:00Z"}
    put_node(world, "bad")
    annotate(world, "bad", theirs)
    _healthy_then_not(world)
    world.run(5 * MINUTE)
    found = notes_of(world.store.get(NODE_CLAIMS, "", "bad"))
    return found == theirs and not leaving(world)


def _healthy_then_not(world: World) -> None:
    initialize(world, "bad")
    world.apply(a_policy(repair=FORCEFUL))
    set_ready(world, "True", "bad", condition="KWOKUnhealthy")


def stale_stamp(world: World) -> bool:
    """A deadline of a user's on a healthy Node stays."""
    put_node(world, "good")
    initialize(world, "good")
    set_ready(world, "True", "good")
    annotate(world, "good", {names.TERMINATION_TIMESTAMP: format_time(world.now)})
    world.run(MINUTE)
    found = notes_of(world.store.get(NODE_CLAIMS, "", "good"))
    return names.TERMINATION_TIMESTAMP in found


def dead_zone(world: World) -> bool:
    """All four Nodes of a zone, of two pools: one at a time is repaired, after ten minutes."""
    world.apply(a_policy(repair=FORCEFUL))
    for number in range(4):
        labels = {names.NODEPOOL: POOLS[number % 2], names.ZONE: "zone-a"}
        _unhealthy(world, f"bad-{number}", labels=labels)
    world.run(9 * MINUTE)
    early = leaving(world)
    world.run(3 * MINUTE)
    noted = [names.PROBE_BESIDE in notes_of(pool) for pool in world.store.list(NODE_POOLS)]
    return not early and len(leaving(world)) == 1 and sum(noted) == 1


def _without_beside(original: Any, world: World) -> Callable[..., Any]:
    return lambda *args, beside=False: original(*args)


def _noted_as_karpenters(original: Any, world: World) -> Callable[..., Any]:
    return lambda said, beside: original(said, beside=False)


def _noted_as_lost(original: Any, world: World) -> Callable[..., Any]:
    return lambda claim: note_lost(claim, "", beside=True)


def _written_as_status(original: Any, world: World) -> Callable[..., Any]:
    return lambda claim, why, beside: original(claim, why, beside=False)


def _known(original: Any, world: World) -> Callable[..., Any]:
    given = Settings(karpenter_version="1.15", karpenter_feature_gates="NodeRepair=false")
    return lambda snapshot, settings: original(snapshot, given)


BESIDE: Final = (
    Mutation(
        name="the default TTL acts beside Karpenter",
        point="tenure.core.marks.timeout:states_readiness",
        breaks=always(True),
        scene=never_ready_without_a_ttl,
        world=Beside,
        guard="no user has written how long",
        checker="unfounded deletion",
    ),
    Mutation(
        name="time-out before its time beside Karpenter",
        point="tenure.core.health.readiness:readiness_ttl",
        breaks=always(timedelta(minutes=2)),
        scene=never_ready,
        world=Beside,
        guard="it times out at",
        checker="unfounded deletion",
    ),
    Mutation(
        name="a first Ready is noted as a loss",
        point="tenure.core.beside.memory:note_ready",
        breaks=_noted_as_lost,
        scene=never_ready,
        world=Beside,
        guard="that its Node is lost or back",
    ),
    Mutation(
        name="a loss is written to the status",
        point="tenure.core.repair.evaluate:note_lost",
        breaks=_written_as_status,
        scene=lost,
        world=Beside,
        guard="writes nothing of NodeClaim stuck but annotations",
        checker="beyond levers",
    ),
    Mutation(
        name="a lost Node ends before its time",
        point="tenure.core.repair.evaluate:readiness_ttl",
        breaks=always(timedelta(minutes=2)),
        scene=lost,
        world=Beside,
        guard="is not lost for long enough",
        checker="unfounded deletion",
    ),
    Mutation(
        name="repair that nothing asks for",
        point="tenure.core.gates.gates:unusable_rules",
        breaks=always(None),
        beside=("tenure.core.health.rules:_mode", always("Forceful")),
        scene=unasked,
        world=Beside,
        guard="nothing asks for the repair",
        checker="unfounded deletion",
    ),
    Mutation(
        name="toleration ignored beside Karpenter",
        point="tenure.core.health.rules:_toleration",
        breaks=lambda original, world: lambda *a, **m: (timedelta(), *original(*a, **m)[1:]),
        scene=repaired_for_two_minutes,
        world=Beside,
        guard="is tolerated until",
        checker="unfounded deletion",
    ),
    Mutation(
        name="repair while Karpenter repairs",
        point="tenure.core.beside.karpenter:repairs_nodes",
        breaks=always(None),
        scene=karpenter_repairs,
        world=Beside,
        guard="is Karpenter's (NodeRepair)",
        checker="past a switch",
    ),
    Mutation(
        name="a Karpenter that is not known",
        point="tenure.core.beside.karpenter:karpenter_of",
        breaks=_known,
        scene=no_karpenter,
        world=Beside,
        guard="it is not known which Karpenter is in charge",
    ),
    Mutation(
        name="two Karpenters are taken for one",
        point="tenure.core.beside.karpenter:karpenter_of",
        breaks=_known,
        scene=two_karpenters,
        world=Beside,
        guard="it is not known which Karpenter is in charge",
    ),
    Mutation(
        name="another program's deadline is written over",
        point="tenure.core.marks.repaired:is_stamped_by_others",
        breaks=always(False),
        scene=stamped_by_a_user,
        world=Beside,
        guard="is not ours to write",
        checker="beyond levers",
    ),
    Mutation(
        name="another program's deadline is taken off",
        point="tenure.core.marks.repaired:is_stamped_by_us",
        breaks=always(True),
        scene=stale_stamp,
        world=Beside,
        guard="is not ours to write",
        checker="beyond levers",
    ),
    Mutation(
        name="a deadline without our marks",
        point="tenure.core.marks.repaired:repair_mark",
        breaks=_without_beside,
        scene=repaired,
        world=Beside,
        guard="nothing of NodeClaim bad is ours but the deadline of a command of ours",
        checker="beyond levers",
    ),
    Mutation(
        name="deleted without a deadline of ours",
        point="tenure.core.marks.deadline:stamp_of",
        breaks=always(LONG_AGO),
        scene=repaired,
        world=Beside,
        guard="is not deleted before it carries our",
        checker="beyond levers",
    ),
    Mutation(
        name="the probe is noted under Karpenter's name",
        point="tenure.core.repair.force:_probe",
        breaks=_noted_as_karpenters,
        scene=dead_zone,
        world=Beside,
        guard="is ours but its repair probe",
        checker="beyond levers",
    ),
    Mutation(
        name="an outage is not seen beside Karpenter",
        point="tenure.core.health.domains:is_outage",
        breaks=always(False),
        scene=dead_zone,
        world=Beside,
        guard="Nodes with zone=zone-a are unhealthy",
    ),
)
