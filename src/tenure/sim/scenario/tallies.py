"""How many there are of something, by state, at this instant, on the true state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from tenure.model.api import resource as r
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.api.resource import Resource
from tenure.model.cloud.instance import InstanceState
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.scenario.context import ScenarioContext
from tenure.sim.scenario.targets import Filter, select

Tally = Callable[[ScenarioContext, Filter], Counter[str]]

COUNT: Final = "count"


def condition_of(obj: Obj, type_: str) -> Obj | None:
    conditions = dig(obj, "status", "conditions") or ()
    return next((one for one in conditions if one.get("type") == type_), None)


def holds(obj: Obj, type_: str) -> bool:
    condition = condition_of(obj, type_)
    return condition is not None and condition["status"] == "True"


def _leaving(obj: Obj) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _pod_states(pod: Obj) -> Iterable[str]:
    phase = dig(pod, "status", "phase") or "Pending"
    if phase in ("Succeeded", "Failed"):
        yield "finished"
    elif _leaving(pod):
        yield "terminating"
    else:
        yield phase.lower()
        if holds(pod, "Ready"):
            yield "ready"


def _node_states(node: Obj) -> Iterable[str]:
    yield "ready" if holds(node, "Ready") else "not-ready"
    if node["spec"].get("unschedulable"):
        yield "cordoned"
    if _leaving(node):
        yield "leaving"


def _claim_states(claim: Obj) -> Iterable[str]:
    if _leaving(claim):
        yield "leaving"
    for state, type_ in (("launched", "Launched"), ("registered", "Registered")):
        if holds(claim, type_):
            yield state
    if holds(claim, "Initialized") and not _leaving(claim):
        yield "in-service"


def _count(resource: Resource, states: Callable[[Obj], Iterable[str]]) -> Tally:
    def tally(context: ScenarioContext, wanted: Filter) -> Counter[str]:
        found = select(context.store, resource, wanted)
        return Counter({COUNT: len(found)}) + Counter(s for obj in found for s in states(obj))

    return tally


def _instances(context: ScenarioContext, wanted: Filter) -> Counter[str]:
    """``labels`` here is about what the instance is: its type, zone and capacity type."""
    unclaimed = set(context.world.checkers.instances.unclaimed())
    terms = dict(term.partition("=")[::2] for term in wanted.labels.split(",") if term)
    tally: Counter[str] = Counter()
    for instance in context.world.cloud.instances():
        about = {
            INSTANCE_TYPE: instance.instance_type,
            ZONE: instance.zone,
            CAPACITY_TYPE: instance.capacity_type,
        }
        if not terms.items() <= about.items():
            continue
        running = instance.state is InstanceState.RUNNING
        tally[COUNT] += 1
        tally["running" if running else "terminating"] += 1
        tally["unclaimed"] += instance.provider_id in unclaimed
    return tally


#: What can be counted → how, and the states that may be asked for.
TALLIES: Final[dict[str, tuple[Tally, tuple[str, ...]]]] = {
    "pods": (
        _count(r.PODS, _pod_states),
        (COUNT, "running", "ready", "pending", "terminating", "finished"),
    ),
    "nodes": (
        _count(r.NODES, _node_states),
        (COUNT, "ready", "not-ready", "cordoned", "leaving"),
    ),
    "claims": (
        _count(r.NODE_CLAIMS, _claim_states),
        (COUNT, "launched", "registered", "in-service", "leaving"),
    ),
    "instances": (_instances, (COUNT, "running", "terminating", "unclaimed")),
}
