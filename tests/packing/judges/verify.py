"""A slow judge of packings. It shares no code with the packer, and finds every broken constraint.

Each node and each instance that a claim may become is checked for labels, taints, room, host ports
and limits. Topology is checked by binding: starting from what runs already, some order must exist
in which kube-scheduler would bind every pod where the packing puts it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import InstanceType
from tenure.packing.demand.problem import Problem
from tenure.packing.demand.volumes import VolumeNeeds
from tenure.packing.result import Packing, PlannedClaim
from tests.packing.judges.binding import Scheduler
from tests.packing.judges.nodes import Amounts, Place, clash, existing, planned, ports_of, requests
from tests.packing.judges.selectors import node_matches, tolerated


def verify(problem: Problem, packing: Packing) -> list[str]:
    """What is wrong with it; nothing is the usual answer."""
    pods = {pod.uid: pod for pod in problem.pods}
    found = _accounted(problem, packing)
    if found:
        return found
    places = [existing(node, problem) for node in problem.nodes]
    by_name = {place.name: place for place in places}
    put: list[tuple[Place, list[Pod]]] = []
    on_nodes: dict[str, list[Pod]] = {}
    for uid, name in packing.placed.items():
        on_nodes.setdefault(name, []).append(pods[uid])
    put += [(by_name[name], here) for name, here in on_nodes.items()]
    for number, claim in enumerate(packing.claims):
        place = planned(claim, number, problem, packing.left_out.get(claim.pool, ()))
        places.append(place)
        put.append((place, [pods[uid] for uid in claim.pods]))
        if not place.outcomes:
            return [f"{place.name}: nothing that it lists can be had"]
    for place, here in put:
        found += _holds(place, here, frozenset(pods))
        found += _reaches_volumes(place, here, problem)
    found += _limits(problem, packing)
    return found or Scheduler(places, put, frozenset(pods), problem).left_pending()


def _accounted(problem: Problem, packing: Packing) -> list[str]:
    answered = Counter(packing.placed.keys())
    answered.update(packing.unplaced.keys())
    answered.update(packing.displaced.keys())
    answered.update(packing.no_claim)
    for claim in packing.claims:
        answered.update(claim.pods)
    if answered != Counter(pod.uid for pod in problem.pods):
        return ["a pod is not accounted for exactly once"]
    refused = {uid for claim in packing.claims for uid in claim.pods} & problem.no_claim
    return [f"pod {uid} may get no claim" for uid in sorted(refused)]


def _holds(place: Place, pods: list[Pod], waiting: frozenset[str]) -> list[str]:
    found = [f"{place.name}: takes no pods"] if place.closed else []
    needed: Amounts = {}
    for pod in pods:
        for name, amount in requests(pod.spec).items():
            needed[name] = needed.get(name, 0) + amount
        if not tolerated(place.taints, pod.spec.tolerations):
            found.append(f"{place.name}: pod {pod.uid} does not tolerate a taint")
    for outcome in place.outcomes:
        short = [n for n, amount in needed.items() if amount > outcome.room.get(n, 0)]
        short = [n for n in short if needed[n] > 0]
        found += [f"{place.name} as {outcome.what}: too little {name}" for name in short]
        found += [
            f"{place.name} as {outcome.what}: pod {pod.uid} does not accept {dict(outcome.labels)}"
            for pod in pods
            if not node_matches(pod, place.name, outcome.labels)
        ]
    taken = list(place.daemon_ports)
    # One that is to move, and is bound here, leaves its port to itself.
    taken += [port for pod in place.there if pod.uid not in waiting for port in ports_of(pod.spec)]
    for pod in pods:
        own = ports_of(pod.spec)
        if any(clash(port, other) for port in own for other in taken):
            found.append(f"{place.name}: host port of pod {pod.uid} is taken")
        taken += own
    return found


def _reaches_volumes(place: Place, pods: list[Pod], problem: Problem) -> list[str]:
    """Every instance reaches all volumes of its pods, and can attach so many of each driver."""
    found = []
    attached: Amounts = {}
    for pod in pods:
        needs = problem.volumes.get(pod.uid)
        if needs is None:
            continue
        if not isinstance(needs, VolumeNeeds):
            found.append(f"{place.name}: volumes of pod {pod.uid} cannot be used")
            continue
        for name, amount in needs.attached:
            attached[name] = attached.get(name, 0) + amount
        for outcome in place.outcomes:
            reachable = any(
                all(outcome.labels.get(key) in one.listed for key, one in wanted.items())
                for wanted in needs.alternatives
            )
            if not reachable:
                found.append(f"{place.name} as {outcome.what}: a volume of {pod.uid} is elsewhere")
    for outcome in place.outcomes:
        found += [
            f"{place.name} as {outcome.what}: too many volumes"
            for name, amount in attached.items()
            if amount > outcome.room.get(name, amount)
        ]
    return found


def _limits(problem: Problem, packing: Packing) -> list[str]:
    """However large each claim becomes."""
    found = []
    for template in problem.templates:
        kinds = {kind.name: kind for kind in template.instance_types}
        claims = [claim for claim in packing.claims if claim.pool == template.pool]
        for name, left in (template.remaining or {}).items():
            used = sum(
                10**9
                if name == "nodes"
                else max(kinds[listed].capacity.get(name, 0) for listed in claim.instance_types)
                for claim in claims
            )
            if used > max(left, 0):
                found.append(f"NodePool {template.pool}: {name} {used} exceeds {left}")
        found += _variety(claims, kinds)
    return found


def _variety(claims: Iterable[PlannedClaim], kinds: Mapping[str, InstanceType]) -> list[str]:
    found = []
    for claim in claims:
        for key, wanted in claim.requirements.items():
            if wanted.min_values is None:
                continue
            values = {
                value
                for listed in claim.instance_types
                if (theirs := kinds[listed].requirements.get(key)) is not None
                for value in theirs.listed
                if wanted.has(value)
            }
            if len(values) < wanted.min_values:
                found.append(f"minValues of {key}: {len(values)} of {wanted.min_values}")
    return found
