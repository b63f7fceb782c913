"""Whether a pod that a packing leaves out could be added to it: every node and offering is tried."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import msgspec

from tenure.model.matching.requirements import Requirement
from tenure.packing.demand.problem import PoolTemplate, Problem
from tenure.packing.result import Packing, PlannedClaim
from tests.packing.judges.nodes import CAPACITY_TYPE, ZONE
from tests.packing.judges.verify import verify


def addable(problem: Problem, packing: Packing, uid: str) -> str:
    """Where it could go beside all that is planned; empty where nothing serves."""
    for what, added in _added(problem, packing, uid):
        if not verify(problem, added):
            return what
    return ""


def _added(problem: Problem, packing: Packing, uid: str) -> Iterator[tuple[str, Packing]]:
    rest = {other: why for other, why in packing.unplaced.items() if other != uid}
    without = msgspec.structs.replace(packing, unplaced=rest)
    for node in problem.nodes:
        placed = {**packing.placed, uid: node.name}
        yield node.name, msgspec.structs.replace(without, placed=placed)
    for number, claim in enumerate(packing.claims):
        for one in _claims_like(claim, problem, uid):
            claims = (*packing.claims[:number], one, *packing.claims[number + 1 :])
            yield f"claim {number}", msgspec.structs.replace(without, claims=claims)
    for template in problem.templates:
        for one in _offerings(template, uid):
            claims = (*packing.claims, one)
            yield f"a new {one.instance_type}", msgspec.structs.replace(without, claims=claims)


def _claims_like(claim: PlannedClaim, problem: Problem, uid: str) -> Iterator[PlannedClaim]:
    """The claim with the pod, as each single type that it lists."""
    yield msgspec.structs.replace(claim, pods=(*claim.pods, uid))
    for name in claim.instance_types:
        yield msgspec.structs.replace(
            claim, pods=(*claim.pods, uid), instance_types=(name,), instance_type=name
        )


def _offerings(template: PoolTemplate, uid: str) -> Iterator[PlannedClaim]:
    """One claim for each offering, and each combination of labels that the pool lets open."""
    open_ = [
        [Requirement.of(key, "In", [value]) for value in sorted(one.listed)]
        for key, one in template.requirements.items()
        if not one.complement and len(one.listed) > 1
    ]
    for kind in template.instance_types:
        for offering, chosen in product(kind.offerings, product(*open_)):
            if not offering.available:
                continue
            requirements = template.requirements.add(
                *chosen,
                Requirement.of(ZONE, "In", [offering.zone]),
                Requirement.of(CAPACITY_TYPE, "In", [offering.capacity_type]),
            )
            yield PlannedClaim(
                pool=template.pool,
                requirements=requirements,
                instance_types=(kind.name,),
                requests={},
                pods=(uid,),
                price=offering.price,
                instance_type=kind.name,
                zone=offering.zone,
                capacity_type=offering.capacity_type,
            )
