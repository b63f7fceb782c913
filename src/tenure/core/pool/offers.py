"""Whether the provider lists an instance type that a pool may launch; else why it launches nothing.

What is sold out at the moment is no matter of the pool: its pods are told.
"""

from __future__ import annotations

from functools import lru_cache

from tenure.core.facts import Fact
from tenure.core.marks.ownership import class_label
from tenure.core.pool.facts import NoTypeListed, NoTypeMeets, NoZoneMeets, TooFewForMinValues
from tenure.core.pool.lookup import node_class_key
from tenure.errors import SpecError
from tenure.model.api import names
from tenure.model.api.nodepool import NodePool
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirements
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.same import Same
from tenure.packing.opening.drafts import shortfall_of
from tenure.packing.refusals.texts import label_text


def template_requirements(pool: NodePool) -> Requirements:
    """What every node of the pool will be labelled with, as requirements."""
    spec = pool.spec.template.spec
    labels = {
        **pool.spec.template.metadata.labels,
        names.NODEPOOL: pool.name,
        **class_label(spec.node_class_ref),
    }
    written = Requirements.from_wire(spec.requirements, "spec.template.spec.requirements")
    return written.intersect(Requirements.from_labels(labels))


def offers_nothing(pool: NodePool, snapshot: Snapshot) -> Fact | None:
    """Why none of the instance types may be launched; None: one may, or they are not known yet."""
    ref = pool.node_class_ref
    types = snapshot.observations.instance_types.get(node_class_key(ref))
    if types is None or pool.deleting or pool.static:
        return None
    if not types:
        return NoTypeListed(f"{ref.kind} {ref.name}")
    wanted = snapshot.derived.of(_WANTED, pool)
    return None if wanted is None else _unmet(Same(types), wanted)


def _wanted(pool: NodePool) -> Requirements | None:
    try:
        return template_requirements(pool)
    except SpecError:
        return None  # ``ValidationSucceeded`` says so.


_WANTED: Derivation[NodePool, Requirements | None] = Derivation("template", _wanted)


@lru_cache(256)
def _unmet(types: Same[tuple[InstanceType, ...]], wanted: Requirements) -> Fact | None:
    meeting = [kind for kind in types.value if _meets(kind, wanted)]
    if not meeting:
        zones = sorted({one.zone for kind in types.value for one in kind.offerings})
        asked = wanted.allowed(names.ZONE)
        if zones and not any(asked.has(zone) for zone in zones):
            return NoZoneMeets(label_text(asked), tuple(zones))
        return NoTypeMeets(len(types.value), _met_by_none(types.value, wanted))
    short = shortfall_of(wanted, meeting)
    return None if short is None else TooFewForMinValues(*short)


def _met_by_none(types: tuple[InstanceType, ...], wanted: Requirements) -> str:
    """The first requirement that by itself excludes all types."""
    for key, asked in sorted(wanted.items()):
        alone = Requirements.of([asked])
        if key != names.ZONE and not any(_meets(kind, alone) for kind in types):
            return label_text(asked)
    return ""


def _meets(kind: InstanceType, wanted: Requirements) -> bool:
    zones, terms = wanted.allowed(names.ZONE), wanted.allowed(names.CAPACITY_TYPE)
    return kind.requirements.is_compatible(wanted, allow_undefined=wanted) and any(
        zones.has(one.zone) and terms.has(one.capacity_type) for one in kind.offerings
    )
