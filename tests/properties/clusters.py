"""Random clusters: claims at every stage of life, their nodes, pods, pools and our memory.

Instants lie on a coarse grid around ``NOW``, so that the interesting ones (just before,
at, just after) come up often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import strategies as st

from tenure.model.api.meta import ApiObject
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodeclass import NodeClass, NodeClassStatus
from tenure.model.cloud.instance import Instance
from tenure.model.snapshot.observations import LaunchFailure, Observations, TerminationAnswer
from tenure.providers.kwok.repairs import kwok_statements
from tests.properties.drawn.answers import (
    ANSWERS,
    ARRIVALS,
    DRIFT_ANSWERS,
    FAILURES,
    INSPECTIONS,
    ORPHANS,
    REBOOT_ANSWERS,
    REFUSALS,
    TYPES,
    announced,
    instances,
    plans,
)
from tests.properties.drawn.basics import NOW, condition, instants, metas, past
from tests.properties.drawn.nodes import STORIES, claims, nodes
from tests.properties.drawn.pods import attachments, budgets, pods
from tests.properties.drawn.pools import POLICY_NAMES, WINDOW_NAMES, policies, pools, windows


class Cluster(msgspec.Struct, frozen=True):
    objects: tuple[ApiObject, ...]
    observations: Observations


class Slot(msgspec.Struct, frozen=True):
    """One claim, where its life has got to, and what we remember of it."""

    claim: NodeClaim | None
    node: Node | None
    instance: Instance | None = None
    failure: LaunchFailure | None = None
    answer: TerminationAnswer | None = None


@st.composite
def slots(draw: st.DrawFn, index: int) -> Slot:
    story = draw(st.sampled_from(STORIES))
    claim = draw(claims(index, story)) if story != "lost" else None
    with_node = story in ("registering", "booting", "in service", "rebooting", "leaving", "lost")
    return Slot(
        claim,
        draw(nodes(index, story)) if with_node else None,
        draw(st.none() | st.none() | instances(index)) if story == "launching" else None,
        draw(st.none() | FAILURES | FAILURES) if story == "launching" else None,
        draw(st.none() | ANSWERS) if story in ("leaving", "ending") else None,
    )


def with_one_provider_id(slot: Slot) -> Slot:
    """As if a user had copied a claim, status and all."""
    claim = slot.claim
    if claim is None or not claim.provider_id:
        return slot
    status = msgspec.structs.replace(claim.status, provider_id="cloud://0")
    return msgspec.structs.replace(slot, claim=msgspec.structs.replace(claim, status=status))


@st.composite
def memories(draw: st.DrawFn, filled: tuple[Slot, ...], pod_count: int) -> Observations:
    refused = [index for index in range(pod_count) if draw(st.booleans())]
    seen = [index for index in range(pod_count) if draw(st.booleans())]
    orphan = draw(st.none() | ORPHANS)
    dry = draw(st.none() | instants)

    def known(field: str) -> Mapping[str, Any]:
        found = ((slot.claim, getattr(slot, field)) for slot in filled)
        return {claim.uid: value for claim, value in found if claim and value is not None}

    return Observations(
        repair_statements=kwok_statements(),
        instances=known("instance"),
        launch_failures=known("failure"),
        terminations=known("answer"),
        inspections={f"uid-claim-{index}": draw(INSPECTIONS) for index in range(len(filled))},
        reboots={f"uid-claim-{index}": draw(REBOOT_ANSWERS) for index in range(len(filled))},
        drifts={
            f"uid-claim-{index}": answer
            for index in range(len(filled))
            if (answer := draw(st.none() | DRIFT_ANSWERS)) is not None
        },
        interruptions=draw(announced(len(filled))),
        recommendations=draw(announced(len(filled))),
        evictions={f"uid-pod-{index}": draw(REFUSALS) for index in refused},
        pods_decided_at=draw(st.none() | past),
        waiting_seen={f"uid-pod-{index}": draw(past) for index in seen},
        orphans={"cloud://90": orphan} if orphan else {},
        vanished={"uid-claim-0": NOW} if draw(st.booleans()) else {},
        dry_offerings={("small", "zone-a", "spot"): dry} if dry else {},
        arrivals={"uid-general": tuple(draw(st.lists(ARRIVALS, max_size=4)))},
        instance_types={"KWOKNodeClass/default": TYPES},
        consolidation=draw(plans(len(filled))),
        pods_left={"node-0": draw(past)} if draw(st.booleans()) else {},
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    filled = tuple(draw(slots(index)) for index in range(draw(st.integers(1, 3))))
    if draw(st.sampled_from([False] * 9 + [True])):
        filled = (*map(with_one_provider_id, filled),)
    pod_count = draw(st.integers(1, 6))
    ready = NodeClassStatus(conditions=(condition("Ready", "True", NOW),))
    objects: list[ApiObject] = [
        NodeClass(metadata=draw(metas("default")), status=ready),
        draw(pools("general")),
        draw(budgets()),
        *(draw(windows(name)) for name in draw(st.sampled_from(WINDOW_NAMES))),
        *(draw(policies(name)) for name in draw(st.sampled_from(POLICY_NAMES))),
        *(slot.claim for slot in filled if slot.claim),
        *(slot.node for slot in filled if slot.node),
        *(draw(pods(index, len(filled))) for index in range(pod_count)),
        *draw(attachments()),
    ]
    return Cluster(tuple(objects), draw(memories(filled, pod_count)))
