"""In which zone a volume is made. It can be used from there only, as a cloud's block storage.

A claim that waits for its first consumer gets its volume in the zone of the consumer's node. Another
gets it in one of the zones that its class allows, or that the cloud has: claims with names that
differ in their number alone, as those of a StatefulSet, get zones one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from zlib import crc32

from tenure.model.api.names import ZONE
from tenure.sim.apiserver.objects.tree import Obj, dig

_NUMBERED: Final = re.compile(r"(.*)-(\d+)")


def zone_for(claim: Obj, storage_class: Obj, node: Obj | None, zones: Sequence[str]) -> str:
    """``zones``: those of the cloud. Empty where a volume is not bound to a zone."""
    if node is not None:
        return dig(node, "metadata", "labels", ZONE) or ""
    allowed = sorted(
        {
            zone
            for term in storage_class.get("allowedTopologies") or ()
            for one in term.get("matchLabelExpressions") or ()
            if one["key"] == ZONE
            for zone in one.get("values") or ()
        }
    )
    choice = allowed or zones
    return choice[_number(claim["metadata"]["name"]) % len(choice)] if choice else ""


def in_zone(zone: str) -> Obj:
    """The node affinity of a volume that can be used from the zone."""
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def _number(name: str) -> int:
    """The same in every run, and one more for the next claim of a StatefulSet."""
    if (numbered := _NUMBERED.fullmatch(name)) is not None:
        return crc32(numbered[1].encode()) + int(numbered[2])
    return crc32(name.encode())
