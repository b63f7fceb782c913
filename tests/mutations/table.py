"""Each decider that is broken on purpose, and what catches it.

A point is ``module:attribute``, or ``module:Class.attribute``. It is
replaced wherever it is used, by guard and ``safety``, too: so a row shows that they do not rely on
it. Only ``sim.check`` is left out, which may not import it. A point that moved fails its test with
a message that says so; follow it here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any, Final

import msgspec
import pytest

from tenure.core.beside.limits import Choice
from tenure.core.beside.mark import Lever, is_on, set_lever
from tenure.core.decision import DeletePod
from tenure.core.disrupt.simulate import Plan
from tenure.core.drift.facts import UnmetRequirement
from tenure.core.gates.traits import Traits
from tenure.core.gates.velocity import Counted
from tenure.core.marks.command import mark_next
from tenure.core.marks.interruption import Interruption
from tenure.core.policy.deciders import deciders
from tenure.core.writes import release
from tenure.model.api.node import Node
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.snapshot.kinds import decode
from tenure.sim.world import World
from tests.mutations import scenes
from tests.mutations.scenes import Scene
from tests.runtime.worlds import Tapped


class Mutation(msgspec.Struct, frozen=True, kw_only=True):
    #: What is wrong with the decider.
    name: str
    point: str
    #: The broken thing, from the original and the world it runs in.
    breaks: Callable[[Any, World], Any]
    scene: Scene
    #: Where it is told.
    world: type[World] = World
    #: Another point and how it is broken, where two deciders would have to fail.
    beside: tuple[str, Callable[[Any, World], Any]] | None = None
    #: What the guard says; empty: the guard cannot know.
    guard: str = ""
    #: Which checker reports it when the guard is switched off; empty: nothing comes of it.
    checker: str = ""


def always(value: Any) -> Callable[[Any, World], Any]:
    return lambda original, world: lambda *args, **more: value


def at_once(value: Any) -> Callable[[Any, World], Any]:
    """Of what is made in steps: the value, without a step."""

    def steps() -> Generator[None, None, Any]:
        yield from ()
        return value

    return lambda original, world: lambda *args, **more: steps()


def _every_budget_open(original: Any, world: World) -> Any:
    return lambda *args, **more: msgspec.structs.replace(original(*args, **more), allowed=999)


def _all_of_them(original: Any, world: World) -> Any:
    return lambda settings: deciders(msgspec.structs.replace(settings, beside_karpenter=False))


def _written_over(original: Any, world: World) -> Any:
    def changed(view: Any, cover: Any, value: str) -> Any:
        verdict = original(view, cover, value)
        if cover is None:
            return verdict
        action = set_lever(view.node, Lever(view.kind, cover.because, cover.until))
        return msgspec.structs.replace(verdict, action=action)

    return changed


def _covered_until_it_is_on(original: Any, world: World) -> Any:
    return lambda causes, now: None if is_on(causes.node, causes.kind) else original(causes, now)


def _all_open(original: Any, world: World) -> Any:
    """Once they are covered: what was open before is no write of Tenure's."""
    return lambda limits, nodes: Choice(frozenset(one.name for one in nodes))


def _not_tolerated(original: Any, world: World) -> Any:
    return lambda *args, **more: (timedelta(), *original(*args, **more)[1:])


def _none_changed(original: Any, world: World) -> Any:
    async def changed(*args: Any) -> list[str]:
        return []

    return changed


def _listed_for_nothing(original: Any, world: World) -> Any:
    async def changed(*args: Any) -> str:
        await original(*args)
        return ""

    return changed


def _of_every_claim(original: Any, world: World) -> Any:
    """Once the cloud takes any instance back."""
    taken = world.cloud.announcements.interruptions

    def read(claim: Any) -> Interruption | None:
        other = taken and claim.provider_id not in taken
        return Interruption("acme") if other else original(claim)

    return read


def _minutes_early(original: Any, world: World) -> Any:
    return lambda claim, at, *args: original(claim, at - timedelta(minutes=5), *args)


def _hour_early(original: Any, world: World) -> Any:
    return lambda pod, deadline: original(pod, deadline) - timedelta(hours=1)


def _read_hour_early(original: Any, world: World) -> Any:
    def read(claim: Any) -> Any:
        known = original(claim)
        if known is None:
            return None
        return msgspec.structs.replace(known, at=known.at - timedelta(hours=1))

    return read


def _deletes(original: Any, world: World) -> Any:
    """A plain deletion, which asks no PodDisruptionBudget."""

    def delete(pod: Any) -> DeletePod:
        return DeletePod(
            name=pod.name, namespace=pod.namespace, uid=pod.uid, grace_period_seconds=30
        )

    return delete


def _another_claim(original: Any, world: World) -> Any:
    def delete(claim: Any, ground: Any) -> Any:
        names = [c["metadata"]["name"] for c in world.store.list(NODE_CLAIMS)]
        name = next(one for one in names if one != claim.name)
        record = world.store.shelf(NODE_CLAIMS).records[name]
        return original(decode(NODE_CLAIMS, record.raw), ground)

    return delete


def _released(original: Any, world: World) -> Any:
    """The finalizer goes in the same turn as the instance."""

    def end(view: Any, claim: Any, about: Any, *rest: Any) -> Any:
        return msgspec.structs.replace(original(view, claim, about, *rest), action=release(about))

    return end


def _as_if_closed(original: Any, world: World) -> Any:
    """The drain begins although its Node still takes new pods."""

    def view(self: Any, snapshot: Any, key: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Node, "has_taint", lambda *args: True)
            return original(self, snapshot, key)

    return view


def _asks_for_repair(original: Any, world: World) -> Any:
    repair = Traits(reason="Unhealthy", window_actions=frozenset({"Repair"}))
    return lambda facts, *more: original(msgspec.structs.replace(facts, traits=repair), *more)


def _created(original: Any, world: World) -> Any:
    return lambda claim, policy: claim.created_at


def _soon(original: Any, world: World) -> Any:
    return timedelta(seconds=20)


def _yes(original: Any, world: World) -> Any:
    return property(lambda self: True)


def _no(original: Any, world: World) -> Any:
    return property(lambda self: False)


def _no_starts(original: Any, world: World) -> Any:
    return lambda *args, **more: Counted()


def _unmet(original: Any, world: World) -> Any:
    def found(requirements: Any, claim: Any) -> Any:
        yield UnmetRequirement("example.com/team", "In [db]", None)

    return found


def _with_finalizer(original: Any, world: World) -> Any:
    def written(*args: Any) -> Any:
        body = original(*args)
        body["metadata"]["finalizers"] = ["karpenter.sh/termination"]
        return body

    return written


def _of_an_old_claim(original: Any, world: World) -> Any:
    """None of its pool that is there."""
    return lambda claims, **more: {**original(claims, **more), "karpenter.sh/replaces": "another"}


def _quarter_early(original: Any, world: World) -> Any:
    def at(*args: Any) -> Any:
        found = original(*args)
        return None if found is None else found - timedelta(minutes=15)

    return at


def _marked_all_the_same(original: Any, world: World) -> Any:
    return lambda self, command: mark_next(command)


_BESIDE: Final[dict[str, Any]] = {
    "scene": scenes.expiration_beside_karpenter,
    "world": scenes.ExpiringBesideKarpenter,
}

MUTATIONS: Final = (
    Mutation(
        name="beside Karpenter a replacement that it may remove while it is empty",
        point="tenure.core.beside.replacing.newclaim:_lever",
        breaks=always({}),
        guard="Karpenter would remove it while it is empty",
        checker="beyond levers",
        **_BESIDE,
    ),
    Mutation(
        name="beside Karpenter a replacement with a finalizer",
        point="tenure.core.beside.replacing.newclaim:replacement_manifest",
        breaks=_with_finalizer,
        guard="finalizers and status are Karpenter's",
        checker="beyond levers",
        **_BESIDE,
    ),
    Mutation(
        name="beside Karpenter a claim that replaces none",
        point="tenure.core.marks.command:replacement_marks",
        breaks=_of_an_old_claim,
        guard="it replaces no NodeClaim that is there",
        **_BESIDE,
    ),
    Mutation(
        name="beside Karpenter a node goes before its replacement is up",
        point="tenure.core.marks.command:Command.complete",
        breaks=lambda original, world: property(lambda self: True),
        guard="is not Initialized",
        checker="before its replacements",
        **_BESIDE,
    ),
    Mutation(
        name="beside Karpenter a node with pods needs no replacement",
        point="tenure.core.beside.replacing.likeforlike:LikeForLikeSimulation.plan",
        breaks=at_once(Plan()),
        guard="has no replacement",
        checker="before its replacements",
        **_BESIDE,
    ),
    Mutation(
        name="beside Karpenter a Node is tainted",
        point="tenure.core.disrupt.orchestrate:_Progress._mark_next",
        breaks=_marked_all_the_same,
        guard="beside Karpenter",
        checker="beyond levers",
        **_BESIDE,
    ),
    Mutation(
        name="beside Karpenter a node expires too early",
        point="tenure.core.disrupt.expiration:expires_at",
        breaks=_quarter_early,
        guard="would be marked as expired",
        checker="unfounded deletion",
        **_BESIDE,
    ),
    Mutation(
        name="beside Karpenter the lever of a replacement goes while its pods are to come",
        point="tenure.core.beside.replacing.stand:replacing_of",
        breaks=always(None),
        guard="are to come",
        **_BESIDE,
    ),
    Mutation(
        name="beside Karpenter with all deciders",
        point="tenure.core.policy.deciders:beside_karpenter",
        breaks=_all_of_them,
        scene=scenes.freeze_beside_karpenter,
        world=scenes.BesideKarpenter,
        guard="beside Karpenter",
        checker="beyond levers",
    ),
    Mutation(
        name="a user's value counts as ours",
        point="tenure.core.beside.onenode:is_marked",
        breaks=always(True),
        scene=scenes.freeze_beside_karpenter,
        world=scenes.BesideKarpenter,
        guard="is a user's",
        checker="beyond levers",
    ),
    Mutation(
        name="a user's value is written over",
        point="tenure.core.beside.onenode:_users_own",
        breaks=_written_over,
        scene=scenes.freeze_beside_karpenter,
        world=scenes.BesideKarpenter,
        guard="is a user's",
        checker="beyond levers",
    ),
    Mutation(
        name="a lever is removed in its window",
        point="tenure.core.beside.levers:cover_of",
        breaks=_covered_until_it_is_on,
        scene=scenes.freeze_beside_karpenter,
        world=scenes.BesideKarpenter,
        guard="would be removed although MaintenanceWindow freeze blocks",
    ),
    Mutation(
        name="levers go beyond the budgets of a policy",
        point="tenure.core.beside.poolnodes:choose",
        breaks=_all_open,
        scene=scenes.policy_beside_karpenter,
        world=scenes.BesideKarpenter,
        guard="too many Nodes would be open",
        checker="open beyond budgets",
    ),
    Mutation(
        name="budget ignored",
        point="tenure.core.gates.budgets:allowance",
        breaks=_every_budget_open,
        scene=scenes.graceful_repair_of_two,
        guard="budget 1 allows 1 of",
        checker="beyond budgets",
    ),
    Mutation(
        name="pods do not count as such",
        point="tenure.core.disrupt.emptiness:occupies",
        breaks=always(False),
        scene=scenes.occupied,
        guard="which is not empty",
        checker="unfounded deletion",
    ),
    Mutation(
        name="pods not listed before the deletion",
        point="tenure.runtime.executor.handlers:Verbs.changed_pods",
        breaks=_none_changed,
        scene=scenes.empty_until_a_pod_came_unheard,
        world=Tapped,
        # The guard goes by what the watch has shown.
        checker="unfounded deletion",
    ),
    Mutation(
        name="changed pods do not count",
        point="tenure.runtime.executor.executor:Executor._other_pods",
        breaks=_listed_for_nothing,
        scene=scenes.empty_until_a_pod_came_unheard,
        world=Tapped,
        guard="which is not empty",
    ),
    Mutation(
        name="expired at once",
        point="tenure.core.disrupt.expiration:expires_at",
        breaks=_created,
        scene=scenes.not_expired,
        guard="it expires at",
        checker="unfounded deletion",
    ),
    Mutation(
        name="expired at once, with the policy Always",
        point="tenure.core.disrupt.expiration:expires_at",
        breaks=_created,
        scene=scenes.not_expired_always,
        guard="it expires at",
        checker="unfounded deletion",
    ),
    Mutation(
        name="replacement of a command read as left over",
        point="tenure.core.marks.command:names_replacement",
        breaks=always(False),
        beside=("tenure.core.disrupt.leftover:NEW", _soon),
        scene=scenes.drifted,
        guard="it replaces NodeClaim",
        checker="unfounded deletion",
    ),
    Mutation(
        name="drifted without a difference",
        point="tenure.core.drift.requirements:drifted_requirements",
        breaks=_unmet,
        scene=scenes.not_drifted,
        # The guard goes by the condition of the claim.
        checker="unfounded deletion",
    ),
    Mutation(
        name="drift in a block window",
        point="tenure.core.gates.gates:outside_windows",
        breaks=always(None),
        scene=scenes.drift_in_a_block_window,
        guard="MaintenanceWindow freeze blocks Drifted",
        checker="inside a window",
    ),
    Mutation(
        name="drift outside of all allow windows",
        point="tenure.core.gates.gates:outside_windows",
        breaks=always(None),
        beside=("tenure.core.gates.gates:closes_too_soon", always(None)),
        scene=scenes.drift_outside_an_allow_window,
        guard="no MaintenanceWindow that allows Drifted",
        checker="inside a window",
    ),
    Mutation(
        name="budget ignored by drift",
        point="tenure.core.gates.budgets:allowance",
        breaks=_every_budget_open,
        scene=scenes.drift_one_by_one,
        guard="budget 1 allows 1 of",
        checker="beyond budgets",
    ),
    Mutation(
        name="starts not counted",
        point="tenure.core.gates.velocity:counted",
        breaks=_no_starts,
        scene=scenes.drift_once_an_hour,
        guard="starts in any 1h",
        checker="too many starts",
    ),
    Mutation(
        name="drifted node goes before its replacement is there",
        point="tenure.core.marks.command:Command.complete",
        breaks=_yes,
        scene=scenes.drifted,
        guard="is not Initialized",
        checker="before its replacements",
    ),
    Mutation(
        name="protected pods do not block drift",
        point="tenure.core.protect.protection:protection_of",
        breaks=always(None),
        scene=scenes.drift_of_protected,
        guard="is on it, and",
        checker="past protected pods",
    ),
    Mutation(
        name="replacement empty while its pods are to come",
        point="tenure.core.disrupt.emptiness:pods_expected",
        breaks=always((None, None)),
        scene=scenes.drain_to_an_empty_replacement,
        checker="unfounded deletion",
    ),
    Mutation(
        name="replacement not awaited",
        point="tenure.core.marks.command:Command.complete",
        breaks=_yes,
        scene=scenes.graceful_repair,
        guard="is not Initialized",
        checker="before its replacements",
    ),
    Mutation(
        name="claims that are replaced together go each by itself",
        point="tenure.core.marks.command:_others",
        breaks=always(()),
        scene=scenes.merged,
        world=scenes.Merging,
        guard="is replaced together with it, and is not marked yet",
        checker="before its group",
    ),
    Mutation(
        name="budget not counted for all that are replaced together",
        point="tenure.core.disrupt.planning.gating:Gating.first_blocked_together",
        breaks=always(None),
        scene=scenes.merged_within_a_budget,
        world=scenes.Merging,
        guard="budget 2 allows 2 of 3 Nodes",
        checker="beyond budgets",
    ),
    Mutation(
        name="replacement launched, command never begun",
        point="tenure.core.marks.command:begin",
        breaks=always(None),
        scene=scenes.graceful_repair_in_two_hours,
        # Of every single action the guard can say that it is allowed.
        checker="idle replacement",
    ),
    Mutation(
        name="veto ignored",
        point="tenure.core.protect.protection:protection_on",
        breaks=always(None),
        scene=scenes.vetoed_repair,
        guard='karpenter.sh/do-not-repair: "true"',
        checker="past a veto",
    ),
    Mutation(
        name="window gate ignored",
        point="tenure.core.gates.gates:outside_windows",
        breaks=always(None),
        scene=scenes.repair_in_a_block_window,
        guard="MaintenanceWindow freeze blocks Unhealthy",
        checker="inside a window",
    ),
    Mutation(
        name="every reason asks the windows for repair",
        point="tenure.core.gates.gates:outside_windows",
        breaks=_asks_for_repair,
        scene=scenes.retirement_in_a_drift_window,
        world=scenes.TwoMethods,
        guard="MaintenanceWindow freeze blocks Retired",
        checker="inside a window",
    ),
    Mutation(
        name="reboot although vetoed",
        point="tenure.core.gates.gates:vetoed",
        breaks=always(None),
        scene=scenes.vetoed_reboot,
        guard='karpenter.sh/do-not-repair: "true"',
        checker="past a veto",
    ),
    Mutation(
        name="veto ignored while a reboot drains",
        point="tenure.core.gates.gates:vetoed",
        breaks=always(None),
        scene=scenes.reboot_vetoed_late,
        guard='karpenter.sh/do-not-repair: "true"',
        checker="past a veto",
    ),
    Mutation(
        name="breaker never opens",
        point="tenure.core.health.breaker:Breaker.tripped",
        breaks=_no,
        scene=scenes.too_many_unhealthy,
        guard="nothing is repaired above 1 (maxUnhealthy 1)",
        checker="past a breaker",
    ),
    Mutation(
        name="toleration ignored",
        point="tenure.core.health.rules:_toleration",
        breaks=_not_tolerated,
        scene=scenes.tolerated,
        guard="is tolerated until",
        checker="unfounded deletion",
    ),
    Mutation(
        name="time-out before its time",
        point="tenure.core.health.readiness:readiness_ttl",
        breaks=always(timedelta(seconds=1)),
        scene=scenes.slow_boot,
        guard="it times out at",
        checker="unfounded deletion",
    ),
    Mutation(
        name="interruption of an instance that the cloud does not take",
        point="tenure.core.marks.interruption:interruption_of",
        breaks=_of_every_claim,
        scene=scenes.one_is_taken_back,
        guard="the cloud has not announced that it takes its instance back",
        checker="unfounded deletion",
    ),
    Mutation(
        name="interruption before its instant",
        point="tenure.core.marks.stamp:stamp_for",
        breaks=_minutes_early,
        scene=scenes.one_is_taken_back,
        guard="and not before",
        checker="unfounded deadline",
    ),
    Mutation(
        name="wrong claim deleted",
        point="tenure.core.writes:delete_claim",
        breaks=_another_claim,
        scene=scenes.graceful_repair,
        guard="it is not marked with a disruption reason and its replacements",
        checker="unfounded deletion",
    ),
    Mutation(
        name="protection read as ended",
        point="tenure.core.protect.protection:protection_of",
        breaks=always(None),
        scene=scenes.drain_of_protected,
        guard="would be evicted although",
        checker="protected eviction",
    ),
    Mutation(
        name="force an hour early",
        point="tenure.core.marks.deadline:force_at",
        breaks=_hour_early,
        scene=scenes.drain_until_deadline,
        guard="it would be forced before it has to be",
        checker="early force",
    ),
    Mutation(
        name="deadline read as an hour earlier",
        point="tenure.core.marks.deadline:deadline_of",
        breaks=_read_hour_early,
        scene=scenes.drain_until_deadline,
        guard="it would be forced before it has to be",
        checker="early force",
    ),
    Mutation(
        name="PDB ignored, pods deleted directly",
        point="tenure.core.terminate.pods:_evict",
        breaks=_deletes,
        scene=scenes.drain,
        guard="would be forced from a node that has no deadline",
        checker="early force",
    ),
    Mutation(
        name="taint not set before eviction",
        point="tenure.core.marks.taints:close_terminating",
        breaks=always(None),
        # The drain looks for the taint itself, so that is broken, too.
        beside=("tenure.core.terminate.drain:DrainDecider.view", _as_if_closed),
        scene=scenes.drain_at_once,
        guard="is not closed for new pods yet",
        checker="early eviction",
    ),
    Mutation(
        name="instance terminated before the drain",
        point="tenure.core.terminate.claim:is_finalizing",
        breaks=always(False),
        scene=scenes.drain,
        checker="pods lost",
    ),
    Mutation(
        name="finalizer removed early",
        point="tenure.core.terminate.view:terminate_instance",
        breaks=_released,
        scene=scenes.drain,
        guard="would go while its instance may still run",
        checker="early release",
    ),
)
