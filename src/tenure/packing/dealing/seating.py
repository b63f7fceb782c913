"""Which of the pods that nothing tells apart gets which place: the one that the scheduler tries next.

kube-scheduler tries the pods of a workload in the order in which they came, and keeps to it. A spread over zones allows a pod its place only
when the other zones have nearly as many. A pod that is tried too early gets another place, or none, and loses the room that was kept for it;
then the next one takes that. So the first pod gets a place in the first zone, the second in the second, and so on, as the counts rise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from tenure.model.api.meta import BEGINNING
from tenure.model.api.names import ZONE
from tenure.model.api.pod import Pod
from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.steps import Steps, some_at_a_time
from tenure.packing.demand.terms import Spread
from tenure.packing.index.domains import Domains
from tenure.packing.opening.drafts import Draft

#: Pods, and claims, that are looked at in one step.
PODS_SEATED: Final = 2_000
DRAFTS_SEATED: Final = 200

#: A place on a claim: the draft, and the position of the pod among its UIDs.
Seat = tuple[Draft, int]


def seating_in_order(
    classes: Iterable[PodClass], drafts: Sequence[Draft], domains: Domains, fixed: Collection[str]
) -> Steps[None]:
    """In steps: let pods of a class change places with each other; those that are ``fixed`` (UIDs) stay where they are."""
    spread = [(one, rule) for one in classes if (rule := _spread_of(one)) is not None]
    if not spread:
        return
    movable: set[str] = set()
    for some in some_at_a_time((pod for one, _ in spread for pod in one.pods), PODS_SEATED):
        yield
        movable.update(p.uid for p in some if not p.spec.node_name and p.uid not in fixed)
    seats: dict[str, Seat] = {}
    for few in some_at_a_time(drafts, DRAFTS_SEATED):
        yield
        for draft in few:
            for position, uid in enumerate(draft.uids):
                if uid in movable:
                    seats[uid] = draft, position
    done = 0
    for one, rule in spread:
        if (done := done + len(one.pods) + 10) >= PODS_SEATED:
            done = 0
            yield
        pods = sorted((pod for pod in one.pods if pod.uid in seats), key=_tried)
        counts = domains.rule(rule, one.demand.signature).counts
        free = _rising([seats[pod.uid] for pod in pods], rule.group.key, counts)
        for pod, (draft, position) in zip(pods, free, strict=True):
            draft.uids[position] = pod.uid


def _spread_of(one: PodClass) -> Spread | None:
    if len(one.pods) < 2:
        return None
    return next((rule for rule in one.rules.spreads if not rule.group.on_hostname), None)


def _tried(pod: Pod) -> tuple[datetime, int, str]:
    """By age; of one second, as the scheduler wrote into their status that they fit nowhere."""
    metadata = pod.metadata
    version = metadata.resource_version
    return (
        metadata.creation_timestamp or BEGINNING,
        int(version) if version.isdecimal() else 0,
        metadata.uid,
    )


def _rising(seats: Iterable[Seat], key: str, counts: Mapping[str, int]) -> Iterator[Seat]:
    """Those of the lowest count first. ``counts``: of the pods of each domain when all seats are taken."""
    by_domain: dict[str, list[Seat]] = {}
    for seat in seats:
        by_domain.setdefault(_domain(seat[0], key), []).append(seat)
    levels = [
        (counts.get(domain, 0) - len(there) + number, domain, seat)
        for domain, there in by_domain.items()
        for number, seat in enumerate(there)
    ]
    levels.sort(key=lambda level: level[:2])
    return (seat for _, _, seat in levels)


def _domain(draft: Draft, key: str) -> str:
    """Where the claim is planned; empty where that is open, or no pod depends on it."""
    if key == ZONE:
        return draft.listing[0].zone
    listed = draft.narrowing.requirements.allowed(key).listed
    return next(iter(listed)) if len(listed) == 1 else ""
