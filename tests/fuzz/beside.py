"""Random days beside a Karpenter that is played: policies and windows come and go, nodes leave or become unhealthy, Karpenter
repairs nodes or does not run, replicas are killed.

``karpenterplayed`` launches and drains; which open Node it would disrupt, the day decides. The checkers watch every
write of Tenure's. In a calm hour at the end all pods run, nothing of a command is left, and the guard refuses nothing
that a decider wants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

import msgspec

from tenure.model.api import names
from tenure.model.api import resource as r
from tenure.ports.outcome import Ended
from tenure.sim.apiserver.objects.tree import Obj
from tests.scenarios.karpenterplayed import BESIDE, Accompanied, a_soft_policy
from tests.scenarios.test_beside_replacement import BROKEN, REPAIR, a_cluster

_BUDGETS: Final[tuple[list[dict[str, Any]], ...]] = (
    [{"nodes": "1"}],
    [{"nodes": "2"}],
    [{"nodes": "50%"}],
    [{"nodes": "0"}],
    [{"nodes": "2", "within": "5m"}],
)
PODS: Final = 5
#: Of a command, or of a lever: none is there once nothing is due.
_OF_COMMANDS: Final = frozenset(
    {
        names.REPLACED_BY,
        names.REPLACES,
        names.CREATED_BY,
        names.DISRUPTED_BY,
        names.DISRUPTION_REASON,
        names.TERMINATION_BY,
        names.TERMINATION_TIMESTAMP,
    }
)
#: Of the same action: more than a change that comes between deciding and acting.
REFUSALS: Final = 3
Deed = Callable[[Accompanied, Random], object]


class Outcome(msgspec.Struct, frozen=True):
    problems: tuple[str, ...]
    #: How often each rule of the checkers was asked.
    asked: dict[str, int]


def live_beside(seed: int, deeds: int = 40, *, meddling: bool = False) -> Outcome:
    """``meddling``: users edit what is Tenure's, too."""
    random = Random(f"beside/{seed}")
    chosen = (*_DEEDS, *_MEDDLING) if meddling else _DEEDS
    policy = a_soft_policy("20m", budgets=_BUDGETS[0])
    with closing(Accompanied(*a_cluster(replicas=PODS, policy=policy), seed=seed)) as story:
        story.play(timedelta(minutes=5))
        for _ in range(deeds):
            random.choice(chosen)(story, random)
            story.play(timedelta(seconds=random.randrange(5, 90)))
        _calm(story)
        story.play(timedelta(minutes=45))
        since = story.now
        story.play(timedelta(minutes=15))
        broken = [f"{one.rule}: {one.message}" for one in story.checkers.violations]
        return Outcome((*broken, *_left(story, since)), dict(story.checkers.asked))


def _calm(story: Accompanied) -> None:
    """Nothing is due any more, and nothing in the way."""
    for name in ("freeze", "contradicts"):
        for resource in (r.MAINTENANCE_WINDOWS, r.NODE_POOL_POLICIES):
            if story.store.find(resource, "", name) is not None:
                story.store.delete(resource, "", name)
    for node in story.all(r.NODES):
        _says(story, node, "False")
    story.apply(a_soft_policy("Never", budgets=_BUDGETS[0]))
    _karpenter_runs(story)


def _says(story: Accompanied, node: Obj, status: str) -> None:
    with suppress(KeyError):  # Its kubelet does not run yet, or no longer.
        story.kubelets.set_condition(node["metadata"]["name"], BROKEN, status, "Test", "")


def _left(story: Accompanied, since: datetime) -> Iterator[str]:
    """What should not be there after the calm."""
    if story.running("web") != PODS:
        yield f"{story.running('web')} of {PODS} pods run"
    for resource in (r.NODE_CLAIMS, r.NODES):
        for one in story.all(resource):
            marks = sorted(_OF_COMMANDS & _annotations(one).keys())
            # What Karpenter has copied to a Node goes with the lever.
            if marks and names.DO_NOT_DISRUPT_BY not in _annotations(one):
                yield f"{resource.kind} {one['metadata']['name']}: {', '.join(marks)}"
    claimed = {one.get("status", {}).get("providerID") for one in story.all(r.NODE_CLAIMS)}
    for node in story.all(r.NODES):
        alone = node["spec"].get("providerID") not in claimed
        if alone and names.DO_NOT_DISRUPT_BY in _annotations(node):
            yield f"Node {node['metadata']['name']} has a lever and no NodeClaim"
    refused = Counter[tuple[str, str]]()
    for entry in story.history.entries:
        if entry.ended is Ended.VETOED:
            refused[entry.subject, str(entry.reason)] += 1
            if entry.at >= since or refused[entry.subject, str(entry.reason)] == REFUSALS:
                yield f"the guard refuses {entry.subject} {entry.reason}: {entry.outcome}"


def _change_policy(story: Accompanied, random: Random) -> None:
    spec: dict[str, Any] = {"budgets": random.choice(_BUDGETS)}
    if random.random() < 0.7:
        mode = random.choice(("Graceful", "Graceful", "Forceful"))
        entry = {**REPAIR, "terminationMode": mode}
        spec["repair"] = {"policies": [entry], "maxUnhealthy": random.choice(("30%", "100%"))}
    story.apply(a_soft_policy(random.choice(("20m", "Never")), **spec))


def _contradict(story: Accompanied, random: Random) -> None:
    """Another policy selects the pool in the same way, or no longer."""
    if story.store.find(r.NODE_POOL_POLICIES, "", "contradicts") is not None:
        story.store.delete(r.NODE_POOL_POLICIES, "", "contradicts")
    else:
        other = a_soft_policy("40m")
        story.apply({**other, "metadata": {"name": "contradicts"}})


def _break(story: Accompanied, random: Random) -> None:
    """Or mend."""
    if nodes := story.all(r.NODES):
        _says(story, random.choice(nodes), random.choice(("True", "False")))


def _change_gates(story: Accompanied, random: Random) -> None:
    gates = random.choice(("NodeRepair=true", "NodeRepair=false", "NodeRepair=false", ""))
    story.set_settings(msgspec.structs.replace(BESIDE, karpenter_feature_gates=gates))


def _change_karpenter(story: Accompanied, random: Random) -> None:
    """It does not run, or does again."""
    if story.karpenter_runs:
        story.stop_karpenter()
    else:
        story.start_karpenter()


def _karpenter_runs(story: Accompanied) -> None:
    if not story.karpenter_runs:
        story.start_karpenter()


def _freeze(story: Accompanied, random: Random) -> None:
    """Or the end of it."""
    if story.store.find(r.MAINTENANCE_WINDOWS, "", "freeze") is not None:
        story.store.delete(r.MAINTENANCE_WINDOWS, "", "freeze")
        return
    actions = random.sample(["Drift", "Consolidation", "Expiration"], k=random.randrange(1, 4))
    kind = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow"}
    story.apply({**kind, "metadata": {"name": "freeze"}, "spec": {"actions": actions}})


def _disrupt(story: Accompanied, random: Random) -> None:
    """Karpenter takes a Node that is open."""
    nodes = [one for one in story.all(r.NODES) if names.DO_NOT_DISRUPT not in _annotations(one)]
    taken = random.choice(nodes)["spec"].get("providerID") if nodes else None
    for claim in story.all(r.NODE_CLAIMS):
        if taken and claim.get("status", {}).get("providerID") == taken:
            story.store.delete(r.NODE_CLAIMS, "", claim["metadata"]["name"])


def _protect(story: Accompanied, random: Random) -> None:
    """A user does, or no longer; on a Node that has no mark of ours."""
    nodes = [one for one in story.all(r.NODES) if names.DO_NOT_DISRUPT_BY not in _annotations(one)]
    if nodes:
        value = random.choice(("true", "false", "2h", None))
        body = {"metadata": {"annotations": {names.DO_NOT_DISRUPT: value}}}
        story.store.patch(r.NODES, "", random.choice(nodes)["metadata"]["name"], body)


def _recreate_policy(story: Accompanied, random: Random) -> None:
    """Under the same name: it remembers no departure any more."""
    old = story.store.find(r.NODE_POOL_POLICIES, "", "usual")
    assert old is not None
    story.store.delete(r.NODE_POOL_POLICIES, "", "usual")
    story.apply({**a_soft_policy(), "spec": old["spec"]})


def _edit_lever(story: Accompanied, random: Random) -> None:
    """A user takes a lever over, overwrites it, or removes a part of it."""
    nodes = [one for one in story.all(r.NODES) if names.DO_NOT_DISRUPT_BY in _annotations(one)]
    edits = (
        {names.DO_NOT_DISRUPT_BY: None},
        {names.DO_NOT_DISRUPT: None},
        {names.DO_NOT_DISRUPT: "false"},
        {names.DO_NOT_DISRUPT_UNTIL: None},
    )
    if nodes:
        body = {"metadata": {"annotations": random.choice(edits)}}
        story.store.patch(r.NODES, "", random.choice(nodes)["metadata"]["name"], body)


def _end_replacement(story: Accompanied, random: Random) -> None:
    """A user deletes one, maybe before its Node is there."""
    for claim in story.all(r.NODE_CLAIMS):
        if names.CREATED_BY in _annotations(claim):
            story.store.delete(r.NODE_CLAIMS, "", claim["metadata"]["name"])


def _orphan(story: Accompanied, random: Random) -> None:
    """A claim goes without its finalizers, and its Node stays behind."""
    if nodes := story.all(r.NODES):
        node = random.choice(nodes)
        story.store.patch(
            r.NODES, "", node["metadata"]["name"], {"metadata": {"ownerReferences": None}}
        )
        for claim in story.all(r.NODE_CLAIMS):
            if claim.get("status", {}).get("providerID") == node["spec"].get("providerID"):
                name = claim["metadata"]["name"]
                story.store.patch(r.NODE_CLAIMS, "", name, {"metadata": {"finalizers": None}})
                if story.store.find(r.NODE_CLAIMS, "", name) is not None:
                    story.store.delete(r.NODE_CLAIMS, "", name)


def _crash(story: Accompanied, random: Random) -> None:
    story.crash()


def _annotations(thing: Obj) -> dict[str, str]:
    return thing["metadata"].get("annotations") or {}


_DEEDS: Final[tuple[Deed, ...]] = (
    *[_change_policy] * 3,
    *[_disrupt] * 4,
    *[_break] * 3,
    _freeze,
    _contradict,
    _change_gates,
    _change_karpenter,
    _protect,
    _crash,
)
_MEDDLING: Final[tuple[Deed, ...]] = (
    *[_edit_lever] * 4,
    *[_recreate_policy] * 2,
    *[_end_replacement] * 2,
    _orphan,
)
