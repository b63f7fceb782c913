"""Which volumes keep a pod from the labels that pools offer: named pod by pod, as each has its own."""

from __future__ import annotations

from typing import Final

import msgspec

from tenure.model.api.pod import Pod
from tenure.packing.demand.volumes import VolumeAnswer, VolumeNeeds
from tenure.packing.facts import Refusal, Why
from tenure.packing.refusals.facts import TypesLackLabel, VolumesUsableIn
from tenure.packing.result import Unplaced

_LABELS: Final = frozenset({Why.REQUIREMENTS_INCOMPATIBLE, Why.NO_TYPE_MATCHES})
#: Of the places where volumes can be used, so many are named.
_NAMED: Final = 3


def with_volumes(why: Unplaced, pod: Pod, needs: VolumeAnswer | None) -> Unplaced:
    """With where the volumes of the pod can be used, if labels keep it from a pool."""
    if not isinstance(needs, VolumeNeeds) or not any(needs.alternatives):
        return why
    if not any(map(_is_about_labels, why.refusals)):
        return why
    places = " or ".join(map(str, needs.alternatives[:_NAMED]))
    more = len(needs.alternatives) - _NAMED
    where = f"{places} or {more:,} more" if more > 0 else places
    claims = tuple(sorted(f"{pod.namespace}/{name}" for name in pod.volume_claims))
    return msgspec.structs.replace(why, facts=(VolumesUsableIn(claims, where), *why.facts))


def _is_about_labels(refusal: Refusal) -> bool:
    return refusal.why in _LABELS or any(isinstance(one, TypesLackLabel) for one in refusal.counts)
