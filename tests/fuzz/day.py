"""One random day: a cluster, people who change it, and everything that can go wrong.

For two hours requests fail or lose their answers, the cloud throttles, sells out and
refuses, kubelets die, and Tenure itself is killed at the worst moments. Then the faults
end, and within an hour the cluster has to be at rest: every pod runs, nothing is leaving,
and each instance has its claim. The checkers watch every instant of it.

A node that never comes up, or falls silent for good, is not healed yet (no time-outs, no
repair); those faults stay off, and what rests on them comes with the readiness issue.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any, Final

import msgspec

from tenure.core.reasons import Reason
from tenure.model.names import CAPACITY_TYPE, DO_NOT_DISRUPT
from tenure.model.resource import DEPLOYMENTS, NODE_CLAIMS, NODES, PODS
from tenure.sim.faults import Faults
from tenure.sim.world import World, WorldOptions

TROUBLE: Final = timedelta(hours=2)
CALM: Final = timedelta(hours=1)
STEP: Final = timedelta(minutes=1)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    problems: tuple[str, ...]
    launched: int
    crashes: int
    events: int


def live(seed: int) -> Outcome:
    """The day of this seed, from the first pod to the last problem."""
    random = Random(f"fuzz/{seed}")
    world = World(WorldOptions(seed=seed))
    try:
        crashes = _trouble(world, random)
        world.infrastructure.faults.clear()
        calm = world.run_while(lambda: bool(_restless(world)), at_most=CALM, step=STEP)
        problems = [] if calm else _restless(world)
        problems += [f"{v.at:%H:%M:%S} {v.rule}: {v.message}" for v in world.checkers.violations]
        problems += _failed_judgements(world)
        return Outcome(
            seed=seed,
            problems=tuple(problems),
            launched=world.cloud.launch_count,
            crashes=crashes,
            events=len(world.history.entries),
        )
    finally:
        world.close()


def _trouble(world: World, random: Random) -> int:
    _populate(world, random)
    _set_faults(world, random)
    crashes = 0
    while world.elapsed < TROUBLE:
        world.run(timedelta(seconds=random.expovariate(1 / 90)))
        deed = random.choice((_scale, _scale, _delete_pod, _delete_claim, _delete_node, _crash))
        crashes += deed is _crash
        deed(world, random)
        if random.random() < 0.1:
            _set_faults(world, random)
    return crashes


def _populate(world: World, random: Random) -> None:
    node_class = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    world.apply(
        {
            "apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass",
            "metadata": {"name": "default"},
            "spec": {},
        }
    )
    for name in ("blue", "green")[: random.randint(1, 2)]:
        capacity = random.choice((["spot"], ["on-demand"], ["spot", "on-demand"]))
        wanted = [{"key": CAPACITY_TYPE, "operator": "In", "values": capacity}]
        spec = {"template": {"spec": {"requirements": wanted, "nodeClassRef": node_class}}}
        manifest = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "spec": spec}
        world.apply({**manifest, "metadata": {"name": name}})
    for number in range(random.randint(1, 4)):
        _deploy(world, random, f"app-{number}")


def _deploy(world: World, random: Random, app: str) -> None:
    requests = {"cpu": f"{random.choice((100, 250, 500, 1500))}m", "memory": "512Mi"}
    protection = random.choice(("", "", "", "10m", "40m"))
    metadata: dict[str, Any] = {"labels": {"app": app}}
    if protection:
        metadata["annotations"] = {DO_NOT_DISRUPT: protection}
    container = {"name": "main", "image": app, "resources": {"requests": requests}}
    world.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": app},
            "spec": {
                "replicas": random.randint(1, 12),
                "selector": {"matchLabels": {"app": app}},
                "template": {"metadata": metadata, "spec": {"containers": [container]}},
            },
        }
    )
    if random.random() < 0.5:
        world.apply(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": app},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
            }
        )


# -- what goes wrong -------------------------------------------------------------------


def _set_faults(world: World, random: Random) -> None:
    """Each kind of trouble with a strength of its own, often none."""

    def rate(worst: float) -> float:
        return random.choice((0.0, worst / 5, worst))

    world.infrastructure.faults.current = Faults(
        api_latency=timedelta(seconds=rate(2.0)),
        api_error_rate=rate(0.2),
        api_lost_answer_rate=rate(0.2),
        cloud_latency=timedelta(seconds=rate(5.0)),
        cloud_throttle_rate=rate(0.3),
        launch_failure_rate=rate(0.3),
        cloud_dry_rate=rate(0.3),
        boot_latency=timedelta(minutes=rate(3.0)),
    )


def _crash(world: World, random: Random) -> None:
    world.crash()


# -- what people do --------------------------------------------------------------------


def _scale(world: World, random: Random) -> None:
    deployment = random.choice(world.store.list(DEPLOYMENTS))
    name = deployment["metadata"]["name"]
    world.store.patch(DEPLOYMENTS, "default", name, {"spec": {"replicas": random.randint(0, 20)}})


def _delete_pod(world: World, random: Random) -> None:
    if pods := world.store.list(PODS):
        meta = random.choice(pods)["metadata"]
        world.store.delete(PODS, meta["namespace"], meta["name"])


def _delete_claim(world: World, random: Random) -> None:
    if claims := world.store.list(NODE_CLAIMS):
        world.store.delete(NODE_CLAIMS, "", random.choice(claims)["metadata"]["name"])


def _delete_node(world: World, random: Random) -> None:
    """One that has registered: another is gone at once and never comes up, see above."""
    if nodes := [n for n in world.store.list(NODES) if n["metadata"].get("finalizers")]:
        world.store.delete(NODES, "", random.choice(nodes)["metadata"]["name"])


# -- what has to hold afterwards -------------------------------------------------------


def _restless(world: World) -> list[str]:
    """What keeps the cluster from being at rest."""
    claims = world.store.list(NODE_CLAIMS)
    uids = {claim["metadata"]["uid"] for claim in claims}
    leaving = [c["metadata"]["name"] for c in claims if "deletionTimestamp" in c["metadata"]]
    waiting = [p["metadata"]["name"] for p in world.store.list(PODS) if not _ready(p)]
    unclaimed = [i.provider_id for i in world.cloud.instances() if i.claim_uid not in uids]
    wanted = sum(d["spec"]["replicas"] for d in world.store.list(DEPLOYMENTS))
    problems = [f"claim {name} is still leaving" for name in leaving]
    problems += [f"pod {name} does not run" for name in waiting]
    problems += [f"instance {name} has no claim" for name in unclaimed]
    if len(world.store.list(PODS)) != wanted:
        problems.append(f"{len(world.store.list(PODS))} pods exist, {wanted} are wanted")
    if len(world.cloud.instances()) != len(claims):
        problems.append(f"{len(world.cloud.instances())} instances for {len(claims)} claims")
    return problems


def _ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _failed_judgements(world: World) -> list[str]:
    return [
        f"{entry.at:%H:%M:%S} {entry.subject}: {entry.message}"
        for entry in world.history.entries
        if entry.reason == Reason.JUDGEMENT_FAILED
    ]
