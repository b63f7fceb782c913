"""Beside Karpenter: what Tenure may write on a NodeClaim or NodePool, and when it may delete a claim.

On a NodeClaim:

- when a duration of ``do-not-disrupt`` or ``do-not-repair`` was first seen;
- that its Node has been Ready, while it is; that its Node is gone, while it is, and removed once it is back;
- the termination timestamp with our marks, for a forceful repair or a time-out that a user has asked for. It
  is never written over one that is not ours, unless the claim is being deleted, and removed with its marks.

A claim is deleted on the version that carries our timestamp, once that is over. The rules of each ground, as
without Karpenter, are asked after this (``departure``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from tenure.core.decision import Delete, Ground, Patch
from tenure.model.api import names
from tenure.model.api.deployment import Deployment
from tenure.model.api.meta import read_instant
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import DEPLOYMENTS
from tenure.model.settings import Settings
from tenure.model.snapshot.governed import as_written, ruling_of
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.safety.reasons import is_repair
from tenure.safety.times import span_of

_SINCE: Final = frozenset({f"{names.DO_NOT_DISRUPT}-since", f"{names.DO_NOT_REPAIR}-since"})
_STAMP: Final = names.TERMINATION_TIMESTAMP
_MARKS: Final = frozenset({names.TERMINATION_BY, names.TERMINATION_BECAUSE})
#: What the API server writes where a user wrote nothing.
_DEFAULT_TTL: Final = "15m"
_CONDITIONS: Final = frozenset({Ground.REPAIR, Ground.REPAIR_FORCED})
_RELEASE: Final = re.compile(r"(?:^|:)v?1\.([0-9]{1,3})(?:\.|@|$)")
#: The minor releases of 1 that were tried.
_OLDEST, _NEWEST = 6, 15
_VERSION_LABEL: Final = "app.kubernetes.io/version"
_FEATURE_GATES: Final = "FEATURE_GATES"
_GROUNDS: Final = frozenset({Ground.REPAIR_FORCED, Ground.TIME_OUT, Ground.NODE_LOST})


def beyond_deletion(
    action: Delete, snapshot: Snapshot, now: datetime, settings: Settings
) -> str | None:
    claim = _claim(action, snapshot)
    if claim is None or not action.resource_version:
        return f"beside Karpenter NodeClaim {action.name} is deleted on a known version alone"
    if action.ground not in _GROUNDS:
        return f"beside Karpenter no NodeClaim is deleted for {action.ground}: {action.name}"
    stamp = read_instant(claim.termination_stamp or "")
    if not _is_ours(claim) or stamp is None or stamp > now:
        return (
            f"beside Karpenter NodeClaim {claim.name} is not deleted before it carries our "
            f"{_STAMP}, and that is over"
        )
    return _unasked(action.ground, claim, snapshot, settings)


def beyond_claim(
    action: Patch, written: Mapping[str, Any], snapshot: Snapshot, settings: Settings
) -> str | None:
    if set(written) <= _SINCE:
        return None
    claim = _claim(action, snapshot)
    if claim is None:
        return f"beside Karpenter NodeClaim {action.name} is gone or another one"
    if set(written) <= {names.READY_ONCE_AT}:
        return _beyond_ready(action, claim, snapshot)
    if set(written) <= {names.NODE_LOST_AT}:
        return _beyond_lost(action, written, claim, snapshot)
    if _STAMP in written and set(written) <= {_STAMP, *_MARKS, names.PROBE_BESIDE}:
        return _beyond_stamp(action, written, claim, snapshot, settings)
    others = ", ".join(sorted(set(written) - _SINCE))
    return f"beside Karpenter {others} of NodeClaim {claim.name} is not ours to write"


def beyond_pool(action: Patch, written: Mapping[str, Any], snapshot: Snapshot) -> str | None:
    """Which of its claims is the probe, and since when: the instant is that of the write."""
    named = str(written.get(names.PROBE_BESIDE, "")).split(" ")[-1]
    claims = snapshot.claims_of_pool(action.name)
    if set(written) == {names.PROBE_BESIDE} == {action.dated} and named in claims:
        return None
    return f"beside Karpenter nothing of NodePool {action.name} is ours but its repair probe"


def _claim(action: Patch | Delete, snapshot: Snapshot) -> NodeClaim | None:
    found = snapshot.claims.get(action.name)
    return found if found is not None and found.uid == action.uid else None


def _is_ours(claim: NodeClaim) -> bool:
    """The termination timestamp."""
    return claim.annotations.get(names.TERMINATION_BY) == names.SET_BY_TENURE


def _beyond_ready(action: Patch, claim: NodeClaim, snapshot: Snapshot) -> str | None:
    nodes = snapshot.nodes_with_provider(claim.provider_id).values()
    if action.dated == names.READY_ONCE_AT and any(node.ready for node in nodes):
        return None
    return f"beside Karpenter the Node of NodeClaim {claim.name} is not Ready, and is not noted as such"


def _beyond_lost(
    action: Patch, written: Mapping[str, Any], claim: NodeClaim, snapshot: Snapshot
) -> str | None:
    gone = claim.registered and not snapshot.nodes_with_provider(claim.provider_id)
    removes = written[names.NODE_LOST_AT] is None
    if removes != gone and (removes or action.dated == names.NODE_LOST_AT):
        return None
    return f"beside Karpenter it would be wrong to note on NodeClaim {claim.name} that its Node is lost or back"


def _beyond_stamp(
    action: Patch,
    written: Mapping[str, Any],
    claim: NodeClaim,
    snapshot: Snapshot,
    settings: Settings,
) -> str | None:
    foreign = claim.termination_stamp is not None and not _is_ours(claim)
    if foreign and not claim.deleting:
        return f"beside Karpenter {_STAMP} of NodeClaim {claim.name} is not ours to write"
    if written[_STAMP] is None:
        left = {*_MARKS, names.PROBE_BESIDE} & set(claim.annotations) - set(written)
        if any(value is not None for value in written.values()) or left or claim.deleting:
            return (
                f"beside Karpenter a mark of NodeClaim {claim.name} would stay without its deadline"
            )
        return None
    whole = all(written.get(key) for key in _MARKS) and action.dated == _STAMP
    if not whole or written[names.TERMINATION_BY] != names.SET_BY_TENURE:
        return f"beside Karpenter {_STAMP} of NodeClaim {claim.name} would stand without our marks"
    if action.ground not in _GROUNDS and not (action.ground is Ground.REPAIR and claim.deleting):
        return f"beside Karpenter no NodeClaim is stamped for {action.ground}: {claim.name}"
    return _unasked(action.ground, claim, snapshot, settings)


# -- only what a user has asked for --------------------------------------------------------


def _unasked(
    ground: Ground | None, claim: NodeClaim, snapshot: Snapshot, settings: Settings
) -> str | None:
    if why := _unknown_karpenter(snapshot, settings):
        return f"beside Karpenter nothing is terminated while {why}: NodeClaim {claim.name}"
    if ground not in _CONDITIONS:
        return _untimed(ground, claim)
    pool = snapshot.pools.get(claim.pool_name)
    repair = pool.spec.repair if pool is not None else None
    if repair is None:
        return f"beside Karpenter nothing asks for the repair of NodeClaim {claim.name}"
    modes = {repair.termination_mode, *(one.termination_mode for one in repair.policies)}
    if ground is Ground.REPAIR_FORCED and "Forceful" not in modes:
        return f"beside Karpenter no policy asks to repair NodeClaim {claim.name} by force"
    if _may_repair(snapshot, settings):
        return f"beside Karpenter the repair of NodeClaim {claim.name} is Karpenter's (NodeRepair)"
    return None


def unreplaceable(
    reason: str, claim: NodeClaim | None, snapshot: Snapshot, settings: Settings
) -> str | None:
    """Why no node is replaced there now. A repair of one that is not initialized is a time-out."""
    if why := _unknown_karpenter(snapshot, settings):
        return f"beside Karpenter no node is replaced while {why}"
    repaired = claim is not None and claim.initialized and is_repair(reason)
    if claim is not None and repaired and _may_repair(snapshot, settings):
        return f"beside Karpenter the repair of NodeClaim {claim.name} is Karpenter's (NodeRepair)"
    return None


def _untimed(ground: Ground | None, claim: NodeClaim) -> str | None:
    """A time-out, or a Node that is lost, needs a time that a user has written."""
    ruling, own = ruling_of(claim), as_written(claim).spec
    if own.readiness_ttl != _DEFAULT_TTL and span_of(own.readiness_ttl) is not None:
        return None
    if ruling is not None and ruling.refusal is None and span_of(ruling.readiness_ttl) is not None:
        return None
    # None, unless a user has written it.
    if ground is Ground.TIME_OUT and span_of(claim.spec.initialization_ttl) is not None:
        return None
    return f"beside Karpenter no user has written how long NodeClaim {claim.name} may take"


# -- which Karpenter: by simple text, apart from the deciders' own reading -----------------


def _unknown_karpenter(snapshot: Snapshot, settings: Settings) -> str | None:
    """Why nothing may be terminated; None where a Karpenter that was tried is named or runs."""
    if settings.karpenter_version:
        return None
    if why := snapshot.unlisted(DEPLOYMENTS):
        return f"Deployments cannot be listed ({why})"
    for one in _deployments(snapshot):
        texts = (
            [*_images(one), one.labels.get(_VERSION_LABEL, "")] if not is_unreadable(one) else []
        )
        minors = [int(found[1]) for text in texts if (found := _RELEASE.search(text))]
        if any(_OLDEST <= minor <= _NEWEST for minor in minors):
            return None
    return "it is not known which Karpenter is in charge"


def _may_repair(snapshot: Snapshot, settings: Settings) -> bool:
    """Whether its feature gate ``NodeRepair`` is on, or nothing says that it is off."""
    if settings.karpenter_feature_gates:
        return _is_on(settings.karpenter_feature_gates)
    found = list(_deployments(snapshot))
    return not found or any(map(_repairs, found))


def _deployments(snapshot: Snapshot) -> Iterator[Deployment]:
    for one in snapshot.objects(DEPLOYMENTS).values():
        if is_unreadable(one) or one.labels.get("app.kubernetes.io/name") == "karpenter":
            yield one


def _images(deployment: Deployment) -> Iterator[str]:
    return (one.image for one in deployment.spec.template.spec.containers)


def _repairs(deployment: Deployment) -> bool:
    if is_unreadable(deployment):
        return True
    for container in deployment.spec.template.spec.containers:
        if any(map(_is_on, container.args)):
            return True
        for variable in container.env:
            if variable.name == _FEATURE_GATES and (
                variable.value_from is not None or _is_on(variable.value)
            ):
                return True
    return False


def _is_on(text: str) -> bool:
    return "noderepair=true" in text.replace(" ", "").lower()
