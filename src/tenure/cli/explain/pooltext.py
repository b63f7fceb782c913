"""Why a pool that is valid and Ready still launches no node."""

from __future__ import annotations

from tenure.core.provision.facts import NodeClassRefused, PoolStatic
from tenure.core.provision.supply import closed_because, open_pools, unlisted_pools
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing.catalogue import Catalogue


def launches_nothing(pool: NodePool, snapshot: Snapshot) -> str:
    """What the pool's own verdict does not say; empty where it can launch nodes."""
    why = closed_because(pool, snapshot)
    if why is not None:
        return str(why) if isinstance(why, PoolStatic | NodeClassRefused) else ""
    (template,) = (one for one in open_pools(snapshot)[0] if one.pool == pool.name)
    if unlisted_pools([template], snapshot):
        return ""
    catalogue = Catalogue(template, daemons=(), resources=(), dry=frozenset(), least={})
    whole = catalogue.whole
    ref = pool.node_class_ref
    if not whole.types:
        of = f"of the {len(template.instance_types)} instance types of {ref.kind} {ref.name}"
        return f"none {of} matches spec.template.spec.requirements"
    if not any(whole.allows(one) for place in whole.places for one in catalogue.offers_at(place)):
        where = "the zones and capacity types of spec.template.spec.requirements"
        return f"no offering is available in {where}"
    return ""
