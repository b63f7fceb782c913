"""Random workloads that a cluster can run: every kind of constraint, alone and mixed.

``a_round`` draws Deployments and StatefulSets until there are so many pods. Each can be placed whatever the
others are, so a pod that stays pending is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from tenure.model.api.names import ARCH, HOSTNAME, ZONE
from tenure.providers.kwok.catalogue import ZONES
from tests.builders import (
    Manifest,
    a_deployment,
    a_node_class,
    a_pool,
    a_requirement,
    a_stateful_set,
)
from tests.real.storage import WAITS_FOR_DRIVER, a_class

Spec = dict[str, Any]
MILLICORES: Final = (50, 100, 250, 400, 500, 750, 1000, 1500, 2000)
MEBIBYTES: Final = (64, 128, 256, 512, 1024, 2048, 3072)
PORTS: Final = (8080, 8443, 9090)
DEDICATED: Final = {"key": "example.com/dedicated", "value": "batch", "effect": "NoSchedule"}
#: The key of a taint, and of a label whose value the pods choose: nodes of their own.
BUNDLE: Final = "example.com/bundle"
CPUS: Final = "karpenter.kwok.sh/instance-cpu"
#: None of them preempts: preemption deletes pods that were placed long ago, and is no matter of a plan.
PRIORITIES: Final = {"low": 0, "middle": 1_000, "high": 1_000_000}
NOISY: Final = {"noisy": "true"}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def surroundings() -> list[Manifest]:
    """What the workloads need: two pools, classes of storage and of priority."""
    small = a_requirement(CPUS, "33", operator="Lt")
    linux = a_requirement("kubernetes.io/os", "linux")
    stays = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
    dedicated = {"taints": [DEDICATED], **WAITS_FOR_DRIVER}
    bundled = {"taints": [{"key": BUNDLE, "effect": "NoSchedule"}], **WAITS_FOR_DRIVER}
    any_value = {"key": BUNDLE, "operator": "Exists"}
    return [
        a_node_class(),
        a_pool(requirements=[small, linux], template=WAITS_FOR_DRIVER, disruption=stays),
        a_pool("batch", requirements=[small, linux], template=dedicated, disruption=stays),
        a_pool(
            "bundles",
            requirements=[small, linux, any_value],
            template=bundled,
            disruption=stays,
        ),
        a_class("disks"),
        a_class("disks-in-two-zones", *ZONES[:2]),
        a_class("disks-at-once", mode="Immediate"),
        *(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "preemptionPolicy": "Never",
            }
            for name, value in PRIORITIES.items()
        ),
    ]


def a_round(random: Random, number: int, pods: int) -> Iterator[Manifest]:
    """Workloads of so many pods in all; their names say round and kind."""
    left, index = pods, 0
    while left > 0:
        kind = random.choice(sorted(KINDS))
        name = f"r{number}-{index}-{kind}"
        replicas = min(left, random.randint(2, 20))
        workload = KINDS[kind](random, name, replicas)
        left -= workload["spec"]["replicas"]
        index += 1
        yield workload


def kind_of(workload: str) -> str:
    """The kind, from the name of a workload or of one of its pods."""
    return next(kind for kind in KINDS if f"-{kind}" in workload)


def _sized(random: Random, name: str, replicas: int, **spec: Any) -> Manifest:
    """Of any size; some tolerate the dedicated pool, some have a priority or a preference."""
    labels = spec.pop("labels", {})
    if random.random() < 0.3:
        spec["priorityClassName"] = random.choice(sorted(PRIORITIES))
    if random.random() < 0.1:
        tolerated = {"key": DEDICATED["key"], "operator": "Exists"}
        spec["tolerations"] = [tolerated]
    cpu, memory = random.choice(MILLICORES), random.choice(MEBIBYTES)
    spec = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", **spec}
    workload = a_deployment(name, replicas=replicas, **spec)
    workload["spec"]["template"]["metadata"]["labels"].update(labels)
    return workload


def _spread(key: str, name: str, skew: int = 1, **more: Any) -> Spec:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": name}},
        **more,
    }


def _affinity(kind: str, key: str, labels: dict[str, str]) -> Spec:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"affinity": {kind: {_REQUIRED: [term]}}}


def _plain(random: Random, name: str, replicas: int) -> Manifest:
    return _sized(random, name, replicas, labels=NOISY if random.random() < 0.3 else {})


def _zone_spread(random: Random, name: str, replicas: int) -> Manifest:
    more: Spec = {"minDomains": random.choice((2, 3, 4))} if random.random() < 0.3 else {}
    if random.random() < 0.3:
        more["matchLabelKeys"] = ["pod-template-hash"]
    spread = _spread(ZONE, name, random.choice((1, 1, 2)), **more)
    return _sized(random, name, replicas, topologySpreadConstraints=[spread])


def _host_spread(random: Random, name: str, replicas: int) -> Manifest:
    spread = _spread(HOSTNAME, name, random.choice((1, 2, 3)))
    return _sized(random, name, replicas, topologySpreadConstraints=[spread])


def _both_spreads(random: Random, name: str, replicas: int) -> Manifest:
    spreads = [_spread(ZONE, name), _spread(HOSTNAME, name, random.choice((1, 2)))]
    return _sized(random, name, replicas, topologySpreadConstraints=spreads)


def _any_spread(random: Random, name: str, replicas: int) -> Manifest:
    """One that may be broken, and a preference that may be, too."""
    spread = _spread(ZONE, name, whenUnsatisfiable="ScheduleAnyway")
    wanted = {"matchExpressions": [a_requirement(ZONE, random.choice(ZONES))]}
    preference = {"nodeAffinity": {_PREFERRED: [{"weight": 10, "preference": wanted}]}}
    return _sized(random, name, replicas, topologySpreadConstraints=[spread], affinity=preference)


def _apart_hosts(random: Random, name: str, replicas: int) -> Manifest:
    spec = _affinity("podAntiAffinity", HOSTNAME, {"app": name})
    return _sized(random, name, min(replicas, 8), **spec)


def _apart_zones(random: Random, name: str, replicas: int) -> Manifest:
    spec = _affinity("podAntiAffinity", ZONE, {"app": name})
    return _sized(random, name, min(replicas, len(ZONES)), **spec)


def _shy(random: Random, name: str, replicas: int) -> Manifest:
    """Shares no node with pods of other workloads that are noisy."""
    return _sized(random, name, replicas, **_affinity("podAntiAffinity", HOSTNAME, NOISY))


def _near_zone(random: Random, name: str, replicas: int) -> Manifest:
    return _sized(random, name, replicas, **_affinity("podAffinity", ZONE, {"app": name}))


def _near_host(random: Random, name: str, replicas: int) -> Manifest:
    """All of them fit one node, which is theirs alone.

    Among other pods they could not be placed for sure: the scheduler binds the first to any node, and the
    others must follow, whether or not there is room. The node is large enough for all of them also when it is launched
    for the first few.
    """
    spec = _affinity("podAffinity", HOSTNAME, {"app": name})
    chosen = {BUNDLE: name, CPUS: "32"}
    workload = _sized(random, name, min(replicas, 8), nodeSelector=chosen, **spec)
    workload["spec"]["template"]["spec"]["tolerations"] = [{"key": BUNDLE, "operator": "Exists"}]
    return workload


def _ports(random: Random, name: str, replicas: int) -> Manifest:
    workload = _sized(random, name, min(replicas, 6))
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    port = random.choice(PORTS)
    container["ports"] = [{"containerPort": port, "hostPort": port}]
    return workload


def _selected(random: Random, name: str, replicas: int) -> Manifest:
    chosen = {ZONE: random.choice(ZONES), ARCH: random.choice(("amd64", "arm64"))}
    return _sized(random, name, replicas, nodeSelector=chosen)


def _dedicated(random: Random, name: str, replicas: int) -> Manifest:
    tolerated = {"key": DEDICATED["key"], "operator": "Exists"}
    required = {"karpenter.sh/nodepool": "batch"}
    workload = _sized(random, name, replicas, nodeSelector=required)
    workload["spec"]["template"]["spec"]["tolerations"] = [tolerated]
    return workload


def _database(random: Random, name: str, replicas: int) -> Manifest:
    """A volume each: in any zone, in two, or where it was made; in turn or all at once."""
    chosen = random.choice(("disks", "disks-in-two-zones", "disks-at-once"))
    spreads = [_spread(ZONE, name)] if chosen == "disks" and random.random() < 0.5 else []
    workload = a_stateful_set(
        name,
        replicas=min(replicas, 6),
        policy="Parallel",
        storage="1Gi",
        cpu=f"{random.choice(MILLICORES)}m",
        topologySpreadConstraints=spreads,
    )
    (template,) = workload["spec"]["volumeClaimTemplates"]
    template["spec"]["storageClassName"] = chosen
    return workload


def _scratch(random: Random, name: str, replicas: int) -> Manifest:
    """With generic ephemeral volumes."""
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "disks",
    }
    volumes = [
        {"name": f"v{n}", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
        for n in range(random.choice((1, 2)))
    ]
    return _sized(random, name, min(replicas, 8), volumes=volumes)


KINDS: Final[dict[str, Callable[[Random, str, int], Manifest]]] = {
    "plain": _plain,
    "zonespread": _zone_spread,
    "hostspread": _host_spread,
    "bothspreads": _both_spreads,
    "anyspread": _any_spread,
    "aparthosts": _apart_hosts,
    "apartzones": _apart_zones,
    "shy": _shy,
    "nearzone": _near_zone,
    "nearhost": _near_host,
    "ports": _ports,
    "selected": _selected,
    "dedicated": _dedicated,
    "database": _database,
    "scratch": _scratch,
}
