"""Changes of the pod, each tried on its problem."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import partial
from typing import Final

import msgspec

from tenure.model.api.names import CAPACITY_TYPE, ZONE
from tenure.model.api.pod import Pod, PodAffinity
from tenure.model.api.taints import HARD_EFFECTS, tolerates
from tenure.model.matching.requirements import Requirements
from tenure.model.values.quantity import UNIT, format_resources
from tenure.packing.advice import podspecs
from tenure.packing.advice.facts import (
    AllowValue,
    AskAtMost,
    Change,
    DropRequirement,
    DropTerm,
    DropTermOfOthers,
    FreeHostPort,
    MoveVolumes,
    SoftenSpread,
    TolerateTaint,
)
from tenure.packing.advice.trial import Trial, owner_of, with_running
from tenure.packing.demand.problem import ExistingNode, Problem
from tenure.packing.demand.requests import PODS, host_ports, pod_requests
from tenure.packing.demand.terms import Group, group_of
from tenure.packing.demand.volumes import VolumeNeeds
from tenure.packing.facts import KeptOff
from tenure.packing.question import read
from tenure.packing.refusals.texts import amount_text, taint_text
from tenure.packing.refusals.topology import pods_text
from tenure.packing.result import Packing

#: Of each kind, so many different ones are tried.
TRIED_MAX: Final = 12
#: Taints that come and go with the state of a node: no toleration is advised for these.
_STATES: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/")
#: How alike two spellings are, of 1, where one of them was meant.
_NEAR: Final = 0.85
#: Requests are advised in steps of these.
_STEPS: Final = {"cpu": UNIT // 1000}
_BINARY_STEP: Final = (1 << 20) * UNIT

_AFFINITY: Final = (("pod_affinity", "affinity"), ("pod_anti_affinity", "anti-affinity"))


def taints(trial: Trial) -> Iterator[Change]:
    own = trial.pod.spec.tolerations
    there = {
        taint_text(taint): taint
        for taints in (
            *(template.taints for template in trial.problem.templates),
            *(node.taints for node in trial.problem.nodes if not node.closed),
        )
        for taint in taints
        if taint.effect in HARD_EFFECTS
        and not taint.key.startswith(_STATES)
        and not tolerates(own, taint)
    }
    for text, taint in sorted(there.items())[:TRIED_MAX]:
        if trial.places(trial.with_pods(partial(podspecs.tolerating, taint=taint))):
            yield TolerateTaint(text)


def values(trial: Trial) -> Iterator[Change]:
    """Another value of a label that the pod requires, one that is spelled nearly so first; where none is
    known, any."""
    for key in podspecs.keys_required(trial.pod.spec)[:TRIED_MAX]:
        free = trial.packed(trial.with_pods(partial(podspecs.requiring, key=key, value=None)))
        if free is None:
            continue
        tried = (_meant(trial, key), _value_at_home(trial, free, key))
        fitting = [
            value
            for value in dict.fromkeys(tried)
            if value is not None
            and trial.places(trial.with_pods(partial(podspecs.requiring, key=key, value=value)))
        ]
        yield from (AllowValue(key, value) for value in fitting)
        if not fitting:
            yield DropRequirement(key)


def _meant(trial: Trial, key: str) -> str | None:
    """A value that nodes can have, and that is spelled nearly as one that the pod asks for."""
    known = _known_values(trial, key)
    for wanted in podspecs.values_required(trial.pod.spec, key):
        if wanted not in known and (near := get_close_matches(wanted, known, n=1, cutoff=_NEAR)):
            return near[0]
    return None


def _known_values(trial: Trial, key: str) -> list[str]:
    found = {node.labels[key] for node in trial.problem.nodes if key in node.labels}
    for template in trial.problem.templates:
        each = (template.requirements, *(kind.requirements for kind in template.instance_types))
        for requirement in (one.allowed(key) for one in each):
            found |= set() if requirement.complement else requirement.listed
        offerings = (one for kind in template.instance_types for one in kind.offerings)
        if key in (ZONE, CAPACITY_TYPE):
            found |= {one.zone if key == ZONE else one.capacity_type for one in offerings}
    return sorted(found)


def _value_at_home(trial: Trial, packing: Packing, key: str) -> str | None:
    home = trial.home(packing)
    if isinstance(home, ExistingNode):
        return home.labels.get(key)
    if key in (ZONE, CAPACITY_TYPE):
        return home.zone if key == ZONE else home.capacity_type
    kinds = (kind for template in trial.problem.templates for kind in template.instance_types)
    planned = next(kind for kind in kinds if kind.name == home.instance_type)
    for known in (home.requirements.allowed(key), planned.requirements.allowed(key)):
        if known.listed and not known.complement:
            return min(known.listed)
    return None


def requests(trial: Trial) -> Iterator[tuple[bool, AskAtMost]]:
    """The largest request that finds room, for each resource of which less would do.

    With each: whether that is at least half of what the pod asks for.
    """
    asked = pod_requests(trial.pod)
    for name in sorted(asked):
        if name == PODS:
            continue
        sizes = [size for size in _sizes(trial, name) if 0 < size < asked[name]]
        if not sizes or not trial.places(_asking(trial, name, sizes[-1])):
            continue
        size = trial.first_that_places(sizes, partial(_asking, trial, name))
        if size is not None:
            at_most = AskAtMost(name, _exact(name, size), amount_text(name, asked[name]))
            yield 2 * size >= asked[name], at_most


def _asking(trial: Trial, name: str, nano: int) -> Problem:
    return trial.with_pods(partial(podspecs.requesting, resource=name, nano=nano))


def _sizes(trial: Trial, name: str) -> list[int]:
    """What instance types and nodes have free of it, in steps that users write, the largest first."""
    step = _BINARY_STEP if _is_binary(name) else _STEPS.get(name, UNIT)
    free = {node.available.get(name, 0) for node in trial.problem.nodes if not node.closed}
    for catalogue in read(trial.problem).catalogues:
        for kind, daemons in zip(catalogue.types, catalogue.overhead, strict=True):
            free.add(kind.allocatable.get(name, 0) - daemons.get(name, 0))
    return sorted({nano // step * step for nano in free}, reverse=True)


def _is_binary(name: str) -> bool:
    return name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")


def _exact(name: str, nano: int) -> str:
    """Never rounded up."""
    return format_resources({name: nano})[name] if _is_binary(name) else amount_text(name, nano)


def topology(trial: Trial) -> Iterator[Change]:
    """Without one term of required affinity or anti-affinity; with one spread as a preference."""
    pod = trial.pod
    for field, word in _AFFINITY:
        for number, group in enumerate(_terms(pod, field)):
            changed = partial(podspecs.without_term, kind=field, number=number)
            if trial.places(trial.with_pods(changed, running=True)):
                yield DropTerm(word, group.key, pods_text(group))
    for number, spread in enumerate(pod.spec.topology_spread_constraints[:TRIED_MAX]):
        if spread.when_unsatisfiable == "DoNotSchedule":
            soft = trial.with_pods(partial(podspecs.softened, number=number))
            if trial.places(msgspec.structs.replace(soft, preferences=True)):
                yield SoftenSpread(spread.topology_key)


def _terms(pod: Pod, field: str) -> list[Group]:
    written: PodAffinity | None = getattr(pod.spec.affinity, field, None)
    terms = written.required_during_scheduling_ignored_during_execution if written else ()
    return [group_of(pod, term) for term in terms[:TRIED_MAX]]


def of_others(trial: Trial) -> Iterator[Change]:
    """Without the anti-affinity of running pods of one other workload."""
    unplaced = trial.base.unplaced.get(trial.pod.uid)
    kept_off = [f for f in (unplaced.facts if unplaced else ()) if isinstance(f, KeptOff)]
    running = {pod.key: pod for node in trial.problem.nodes for pod in node.pods}
    tried: set[str] = set()
    for off in kept_off:
        other = running[off.by]
        owner = owner_of(other) or other.uid  # As ``_belongs``.
        if owner in tried or len(tried) >= TRIED_MAX:
            continue
        tried.add(owner)
        own = partial(_belongs, owner=owner)
        problem = with_running(trial.problem, podspecs.without_anti_affinity, own)
        if trial.places(problem):
            yield DropTermOfOthers(off.by, off.key)


def _belongs(pod: Pod, owner: str) -> bool:
    return (owner_of(pod) or pod.uid) == owner


def ports(trial: Trial) -> Iterator[Change]:
    for port in host_ports(trial.pod.spec)[:TRIED_MAX]:
        free = partial(podspecs.without_port, port=port.port, protocol=port.protocol)
        if trial.places(trial.with_pods(free)):
            yield FreeHostPort(port.port, port.protocol)


def volumes(trial: Trial) -> Iterator[Change]:
    """With volumes that can be used everywhere."""
    needs = trial.problem.volumes.get(trial.pod.uid)
    if not isinstance(needs, VolumeNeeds) or not any(needs.alternatives):
        return
    anywhere = msgspec.structs.replace(needs, alternatives=(Requirements(),))
    answers = {**trial.problem.volumes, trial.pod.uid: anywhere}
    if trial.places(msgspec.structs.replace(trial.problem, volumes=answers)):
        yield MoveVolumes(" or ".join(str(one) for one in needs.alternatives[:TRIED_MAX]))
