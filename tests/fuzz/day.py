"""One random day: a cluster, people who change it, and everything that can go wrong.

For a while requests fail or lose their answers, watches are late, end or forget, the cloud
throttles, sells out and refuses, machines vanish, kubelets fall silent, and Tenure itself is
killed at the worst moments (see ``deeds``). Then the faults end, and within a given time
the cluster has to be at rest and to stay there (see ``rest``). The checkers watch every
instant of it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from random import Random
from typing import Final

import msgspec

from tenure.core.reasons import Reason
from tenure.model.api.names import DISRUPTION_REASON
from tenure.model.settings import Settings
from tenure.sim.history import Entry
from tenure.sim.world import World, WorldOptions
from tests.fuzz.deeds import (
    DEEDS,
    DRIFT_DEEDS,
    HELD_DEEDS,
    LEAKY_DEEDS,
    UNHEALTHY_DEEDS,
    Deed,
    crash,
    lift,
    populate,
    set_faults,
)
from tests.fuzz.policies import GOVERNED_DEEDS, lift_policies, silence_pools
from tests.fuzz.rest import (
    announced,
    misjudged,
    overdue,
    restless,
    settled,
    unfinished,
    unsettled,
)
from tests.fuzz.voluntary import VOLUNTARY_DEEDS, lift_everything, prepare
from tests.runtime.worlds import Tapped

#: Events of a watch may come 15 seconds apart, one after the other, and busy days have many.
LATE: Final = timedelta(minutes=5)
STEP: Final = timedelta(minutes=1)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    trouble: timedelta
    #: Between two deeds, on average.
    gap: timedelta
    #: How long it may take until everything is at rest.
    calm: timedelta = timedelta(minutes=90)
    #: … and how long it then has to stay so.
    rest: timedelta = timedelta(minutes=20)
    deeds: tuple[Deed, ...] = DEEDS
    settings: Settings = Settings()
    #: What is different from the beginning.
    begins: Callable[[Tapped, Random], object] = lambda world, random: None
    #: What users take back once the trouble is over.
    lifts: Callable[[Tapped], object] = lambda world: None
    #: Whether nothing may then be left that Tenure would take away by choice.
    chosen: bool = False


LONG: Final = Pace(trouble=timedelta(hours=2), gap=timedelta(seconds=90))
SHORT: Final = Pace(trouble=timedelta(minutes=12), gap=timedelta(seconds=20))
LEAKY: Final = msgspec.structs.replace(SHORT, deeds=LEAKY_DEEDS)
HELD: Final = msgspec.structs.replace(SHORT, deeds=HELD_DEEDS, lifts=lift)
#: Nothing is done about drift, so that the claims which have drifted are there to be looked at.
DRIFTY: Final = msgspec.structs.replace(
    SHORT, deeds=DRIFT_DEEDS, settings=Settings(voluntary_disruption=False)
)
VOLUNTARY: Final = msgspec.structs.replace(
    SHORT, deeds=VOLUNTARY_DEEDS, begins=prepare, lifts=lift_everything, chosen=True
)
GOVERNED: Final = msgspec.structs.replace(
    SHORT, deeds=GOVERNED_DEEDS, begins=silence_pools, lifts=lift_policies, chosen=True
)
UNHEALTHY_DAY: Final = msgspec.structs.replace(SHORT, deeds=UNHEALTHY_DEEDS)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    problems: tuple[str, ...]
    launched: int
    reboots: int
    #: Claims that counted as drifted at some time.
    drifted: int
    #: Nodes that left once their replacement was there.
    replaced: int
    #: Commands that were begun, by their reason.
    begun: dict[str, int]
    crashes: int
    events: int
    #: How often each rule of the checkers was asked.
    asked: dict[str, int]
    #: Of the whole history: the same seed gives the same one in every process.
    digest: str


def live(seed: int, pace: Pace = LONG) -> Outcome:
    """The day of this seed, from the first pod to the last problem."""
    random = Random(f"fuzz/{seed}")
    world = Tapped(options=WorldOptions(seed=seed, settings=pace.settings))
    world.checkers.recent.late = LATE
    try:
        crashes = _trouble(world, random, pace)
        problems = _calm(world, pace)
        problems += [f"{v.at:%H:%M:%S} {v.rule}: {v.message}" for v in world.checkers.violations]
        problems += _failed_evaluations(world)
        return Outcome(
            seed=seed,
            problems=tuple(problems),
            launched=world.cloud.launch_count,
            reboots=len(world.cloud_tap.of("reboot")),
            drifted=len({e.subject for e in _told(world, Reason.DRIFTED)}),
            replaced=len({e.subject for e in _told(world, Reason.REPLACED)}),
            begun=_begun(world),
            crashes=crashes,
            events=len(world.history.entries),
            asked=dict(world.checkers.asked),
            digest=hashlib.sha256(msgspec.json.encode(world.history.entries)).hexdigest(),
        )
    finally:
        world.close()


def _trouble(world: Tapped, random: Random, pace: Pace) -> int:
    populate(world, random)
    pace.begins(world, random)
    set_faults(world, random)
    crashes = 0
    while world.elapsed < pace.trouble:
        world.run(timedelta(seconds=random.expovariate(1 / pace.gap.total_seconds())))
        deed = random.choice(pace.deeds)
        crashes += deed is crash
        deed(world, random)
        if random.random() < 0.1:
            set_faults(world, random)
    return crashes


def _calm(world: Tapped, pace: Pace) -> list[str]:
    pace.lifts(world)
    world.infrastructure.faults.clear()
    world.api_tap.lag.clear()
    world.cloud_tap.lose = lambda verb, what: False
    calm_since, late = world.now, dict[str, None]()

    def is_restless() -> bool:
        late.update(dict.fromkeys(overdue(world, calm_since)))
        return bool(unrest())

    def unrest() -> list[str]:
        return restless(world) + (unfinished(world) if pace.chosen else [])

    if not world.run_while(is_restless, at_most=pace.calm, step=STEP):
        return unrest()
    if late:
        return [*late]
    world.run(2 * STEP)  # What has just come to rest is still being written down.
    before, may_change = settled(world), announced(world)
    world.run(pace.rest)
    return unrest() + misjudged(world) + unsettled(world, before, may_change)


def _told(world: Tapped, reason: Reason) -> Iterator[Entry]:
    return (e for e in world.history.entries if e.reason == reason and "NodeClaim" in e.subject)


def _begun(world: Tapped) -> dict[str, int]:
    """By the marks that Tenure has asked for; one whose answer was lost counts twice."""
    asked = (call.body for call in world.api_tap.of("PATCH", "/nodeclaims/"))
    marks = ((body.get("metadata") or {}).get("annotations") or {} for body in asked)
    return dict(Counter(mark[DISRUPTION_REASON] for mark in marks if mark.get(DISRUPTION_REASON)))


def _failed_evaluations(world: World) -> list[str]:
    return [
        f"{entry.at:%H:%M:%S} {entry.subject}: {entry.message}"
        for entry in world.history.entries
        if entry.reason in (Reason.JUDGEMENT_FAILED, Reason.EVALUATION_FAILED)
    ]
