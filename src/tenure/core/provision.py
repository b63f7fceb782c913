"""Decide which pending pods get a new node, and which node that is.

Every pod that needs a place gets one verdict, and so does every claim to be created:

1. it fits a node that exists or is on its way: nominated there;
2. it needs a new node, but pods are still arriving: the batch waits for a quiet
   second, ten at most, so that pods that come together share nodes;
3. it needs a new node: the claim is created, the pod nominated to it;
4. nothing can take it: why not, pool by pool.

Packing is one pure function of the snapshot; the only clocks in here are the batch and
the offerings that count as sold out for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from tenure.core.decision import Concern, Create, Subject, Verdict
from tenure.core.newclaim import claim_manifest, claim_name
from tenure.core.reasons import Reason
from tenure.core.supply import daemons, nodes_with_room, pods_to_place, pool_templates
from tenure.model.meta import format_time
from tenure.model.nodepool import NodePool
from tenure.model.offering import OfferingKey, format_price
from tenure.model.pod import Pod
from tenure.model.resource import (
    DAEMON_SETS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
)
from tenure.model.settings import Settings
from tenure.model.snapshot import Change, Snapshot
from tenure.packing.pack import pack
from tenure.packing.problem import Daemon, ExistingNode, PoolTemplate, Problem
from tenure.packing.result import Packing, PlannedClaim

#: Placing pods is one question about the whole cluster.
CLUSTER = "cluster"


class ProvisionView(msgspec.Struct, frozen=True, kw_only=True):
    #: With the instant from which each has waited.
    pods: tuple[tuple[Pod, datetime], ...]
    nodes: tuple[ExistingNode, ...]
    templates: tuple[PoolTemplate, ...]
    daemons: tuple[Daemon, ...]
    dry: Mapping[OfferingKey, datetime]
    pools: Mapping[str, NodePool]
    claim_names: frozenset[str]


class ProvisionDecider:
    concern = Concern.PROVISIONING

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource in (PODS, NODES, NODE_CLAIMS, NODE_POOLS, DAEMON_SETS) or (
            (change.resource.group, change.resource.kind) in snapshot.ours
        ):
            yield CLUSTER

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,)

    def view(self, snapshot: Snapshot, key: str) -> ProvisionView | None:
        pods = pods_to_place(snapshot)
        if not pods:
            return None  # The usual case, and it must stay cheap.
        return ProvisionView(
            pods=tuple(pods),
            nodes=tuple(nodes_with_room(snapshot)),
            templates=tuple(pool_templates(snapshot)),
            daemons=tuple(daemons(snapshot)),
            dry=dict(snapshot.observations.dry_offerings),
            pools=dict(snapshot.pools),
            claim_names=frozenset(snapshot.claims),
        )

    def decide(self, view: ProvisionView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        dry = {key: until for key, until in view.dry.items() if until > now}
        packing = pack(
            Problem(
                pods=tuple(pod for pod, _ in view.pods),
                nodes=view.nodes,
                templates=view.templates,
                daemons=view.daemons,
                dry=frozenset(dry),
            )
        )
        return _verdicts(view, packing, settings, now, min(dry.values(), default=None))


def _verdicts(
    view: ProvisionView,
    packing: Packing,
    settings: Settings,
    now: datetime,
    dry_until: datetime | None,
) -> list[Verdict]:
    opens_at = _batch_opens_at(view, packing, settings)
    batching = opens_at is not None and now < opens_at
    target: dict[str, str] = {}
    verdicts: list[Verdict] = []
    taken = set(view.claim_names)
    for planned in packing.claims:
        if batching:
            continue
        name = claim_name(planned, taken)
        taken.add(name)
        target |= dict.fromkeys(planned.pods, f"{name} ({_described(planned)})")
        verdicts.append(_new_claim(planned, view.pools[planned.pool], name, dry_until))
    for pod, _ in view.pods:
        if pod.uid in packing.placed:
            message = f"fits {packing.placed[pod.uid]}"
            verdicts.append(_of_pod(pod, Reason.NOMINATED, message, dry_until))
        elif pod.uid in packing.unplaced:
            message = packing.unplaced[pod.uid].message
            verdicts.append(_of_pod(pod, Reason.FAILED_SCHEDULING, message, dry_until))
        elif batching:
            assert opens_at is not None
            message = f"placed together with others at {format_time(opens_at)}"
            recheck_at = min(opens_at, dry_until) if dry_until else opens_at
            verdicts.append(_of_pod(pod, Reason.BATCHING, message, recheck_at))
        else:
            message = f"needs the new claim {target[pod.uid]}"
            verdicts.append(_of_pod(pod, Reason.NOMINATED, message, dry_until))
    return verdicts


def _batch_opens_at(view: ProvisionView, packing: Packing, settings: Settings) -> datetime | None:
    """When the pods that need new nodes are acted upon; None when there are none."""
    needing = {uid for planned in packing.claims for uid in planned.pods}
    since = [waited for pod, waited in view.pods if pod.uid in needing]
    if not since:
        return None
    return min(max(since) + settings.batch_idle, min(since) + settings.batch_max)


def _described(planned: PlannedClaim) -> str:
    return (
        f"{planned.instance_type} in {planned.zone}, {planned.capacity_type}, "
        f"{format_price(planned.price)}"
    )


def _new_claim(
    planned: PlannedClaim, pool: NodePool, name: str, recheck_at: datetime | None
) -> Verdict:
    pods = len(planned.pods)
    return Verdict(
        concern=Concern.PROVISIONING,
        subject=Subject(NODE_CLAIMS.kind, name),
        reason=Reason.NEEDED_FOR_PODS,
        message=f"{pods} {'pod needs' if pods == 1 else 'pods need'} it; cheapest fit: {_described(planned)}",
        action=Create(resource=NODE_CLAIMS, name=name, body=claim_manifest(planned, pool, name)),
        recheck_at=recheck_at,
    )


def _of_pod(pod: Pod, reason: Reason, message: str, recheck_at: datetime | None) -> Verdict:
    return Verdict(
        concern=Concern.PROVISIONING,
        subject=Subject.of(PODS.kind, pod),
        reason=reason,
        message=message,
        recheck_at=recheck_at,
    )
