"""Which of equal pods gets which place: so that a spread allows each when the scheduler tries it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from tenure.model.api.names import ZONE
from tenure.model.api.pod import Pod
from tenure.packing.result import Packing
from tests.packing.build import ZONES, a_node, a_pod, pods
from tests.packing.demand.test_topology import WEB, spread
from tests.packing.test_constraints import packed


def one_by_one(count: int, **fields: Any) -> list[Pod]:
    """Created in one second, and tried in the order in which the scheduler wrote their status."""
    made = pods(count, labels=WEB, **fields)
    return [
        msgspec.structs.replace(
            pod, metadata=msgspec.structs.replace(pod.metadata, resource_version=str(version))
        )
        for version, pod in zip(_shuffled(count), made, strict=True)
    ]


def _shuffled(count: int) -> list[int]:
    """Versions of one, two and three digits, in no order."""
    return [1 + (7 * number) % 101 for number in range(count)]


def in_turn(tried: Iterable[Pod]) -> list[Pod]:
    return sorted(tried, key=lambda pod: int(pod.metadata.resource_version))


def zones_of(packing: Packing, tried: Sequence[Pod]) -> list[str]:
    zones = {uid: claim.zone for claim in packing.claims for uid in claim.pods}
    return [zones[pod.uid] for pod in tried if pod.uid in zones]


def rises_evenly(zones: Sequence[str], skew: int, before: Counter[str] | None = None) -> bool:
    counts = Counter(before)
    for zone in zones:
        if counts[zone] + 1 - min(counts[one] for one in ZONES) > skew:
            return False
        counts[zone] += 1
    return True


@pytest.mark.parametrize(("count", "skew"), [(12, 1), (31, 1), (20, 2)])
def test_each_pod_is_allowed_its_place_when_its_turn_comes(count: int, skew: int) -> None:
    """A pod that is tried too early loses the room that was kept for it."""
    tried = one_by_one(count, cpu="3", **spread(ZONE, maxSkew=skew))
    packing = packed(*tried)
    zones = zones_of(packing, in_turn(tried))
    assert (len(zones), rises_evenly(zones, skew)) == (count, True)


def test_the_pods_that_run_already_count() -> None:
    there = [
        a_node(
            f"n-{zone}-{number}",
            "1",
            labels={ZONE: zone},
            holding=[a_pod(f"r-{zone}-{number}", labels=WEB)],
        )
        for zone, some in (("a", 2), ("b", 1))
        for number in range(some)
    ]
    tried = one_by_one(9, cpu="3", **spread(ZONE, maxSkew=2))
    packing = packed(*tried, nodes=there)
    zones = zones_of(packing, in_turn(tried))
    assert (len(zones), rises_evenly(zones, 2, Counter(a=2, b=1))) == (9, True)


def test_a_pod_stays_with_the_node_that_was_launched_for_it() -> None:
    tried = one_by_one(6, cpu="3", **spread(ZONE))
    first = in_turn(tried)[0]
    coming = a_node("n", labels={ZONE: "b"}, initialized=False)
    packing = packed(*tried, nodes=[coming], nominated={first.uid: "n"})
    assert packing.placed == {first.uid: "n"}
    assert len(zones_of(packing, in_turn(tried))) == 5


def test_which_pods_share_a_claim_is_all_that_changes() -> None:
    tried = one_by_one(30, cpu="900m", **spread(ZONE))
    planned = packed(*tried)
    at_random = packed(*pods(30, cpu="900m", labels=WEB, **spread(ZONE)))
    assert sorted((c.zone, len(c.pods), c.price) for c in planned.claims) == sorted(
        (c.zone, len(c.pods), c.price) for c in at_random.claims
    )
