"""Beside Karpenter: what Tenure may write to replace a node. ``safety.beside`` asks; ``departure`` has the rest.

- create a NodeClaim: of a pool, without a finalizer, marked as ours and as the replacement of one living
  claim of that pool, and protected from Karpenter;
- on a NodeClaim: the marks of a command (its deadline: ``besideclaims``), and that it has expired by a NodePoolPolicy;
- delete a NodeClaim: one that is replaced, where its pods have a replacement, or Karpenter launches it because the
  pool has ``spec.replicas``; or a replacement without pods
  that nothing waits for.

Whether windows, budgets, breakers and vetoes allow it is asked of each ground by ``departure``, as without Karpenter.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.core.decision import Create, Delete, Ground, Patch
from tenure.model.api import names
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.safety.besideclaims import is_our_deadline
from tenure.safety.reasons import is_repair
from tenure.safety.voluntary import EXPIRED, occupies, too_young

_LEVER: Final = frozenset(
    {
        names.DO_NOT_DISRUPT,
        names.DO_NOT_DISRUPT_BY,
        names.DO_NOT_DISRUPT_BECAUSE,
        names.DO_NOT_DISRUPT_UNTIL,
    }
)
#: What a command writes on the claim that is replaced.
_COMMAND: Final = frozenset(
    {
        names.REPLACED_BY,
        names.DISRUPTION_REASON,
        names.DISRUPTED_BY,
        names.DISRUPTED_SINCE,
        names.TERMINATION_TIMESTAMP,
        names.REPAIR_REASON,
        names.REPAIR_PROBE,
        names.REPLACEMENT_FAILED,
    }
)
#: Of these, what says that it is a command, whose and why: of one of ours all go together.
_SAY_WHOSE: Final = frozenset({names.REPLACED_BY, names.DISRUPTION_REASON, names.DISRUPTED_BY})
#: Of these Tenure in charge writes one with each deadline. It has no mark that says by which program.
_IN_CHARGE: Final = frozenset(
    {names.REPLACED_BY, names.DISRUPTION_REASON, names.REPAIR_REASON, names.INTERRUPTION}
)
#: What stands beside a deadline of ours.
_DEADLINE: Final = frozenset(
    {
        names.TERMINATION_BY,
        names.TERMINATION_BECAUSE,
        names.TERMINATION_AT,
        names.PROBE_BESIDE,
    }
)
#: What only goes, from a claim that was a replacement.
_REPLACEMENT: Final = _LEVER | {names.REPLACES, names.CREATED_BY}
_GROUNDS: Final = frozenset({Ground.REPLACED, Ground.LEFT_OVER})


def beyond_replacing(action: Create | Delete, snapshot: Snapshot) -> str | None:
    """Why a NodeClaim must not be created or deleted; None: nothing of this module forbids it."""
    if isinstance(action, Create):
        return _creates(action, snapshot)
    claim = snapshot.claims.get(action.name)
    if claim is None or claim.uid != action.uid:
        return f"beside Karpenter claim {action.name} is gone or another one"
    if action.ground not in _GROUNDS:
        return f"beside Karpenter NodeClaim {claim.name} is not deleted for {action.ground}"
    if _has_deadline_of_others(claim):
        return f"beside Karpenter {_of_others(claim)}"
    if action.ground is Ground.LEFT_OVER:
        made = claim.annotations.get(names.CREATED_BY) == names.SET_BY_TENURE
        return None if made else _not_made(claim)
    return _leaves_pods(claim, snapshot)


def is_of_command(written: Mapping[str, Any]) -> bool:
    """Whether annotations of a claim are of those that replace a node. Its deadline alone is not."""
    marks = _COMMAND | _REPLACEMENT | {names.EXPIRED_AT, names.INTERRUPTION}
    return bool((marks - {names.TERMINATION_TIMESTAMP}) & written.keys())


def is_of_replacing(ground: Ground | None) -> bool:
    return ground in _GROUNDS


def replaced_by(action: Create) -> str:
    """The UID of the one claim that a new one replaces; empty: there is none, or several."""
    annotations = action.body["metadata"].get("annotations") or {}
    uids = [uid for uid in annotations.get(names.REPLACES, "").split(",") if uid]
    return uids[0] if len(uids) == 1 else ""


def _is_ours(reason: str | None) -> bool:
    """Whether Tenure replaces nodes for this reason there."""
    return bool(reason) and (is_repair(reason or "") or reason == EXPIRED)


def _has_deadline_of_others(claim: NodeClaim) -> bool:
    return claim.termination_stamp is not None and not is_our_deadline(claim)


def _of_others(claim: NodeClaim) -> str:
    return f"NodeClaim {claim.name} has a deadline that is not ours"


def _not_made(claim: NodeClaim) -> str:
    return f"beside Karpenter NodeClaim {claim.name} is not deleted: Tenure has not created it"


def _leaves_pods(claim: NodeClaim, snapshot: Snapshot) -> str | None:
    """No instance types are known there, so nothing says that pods fit elsewhere."""
    if not _is_ours(claim.annotations.get(names.DISRUPTION_REASON)):
        return f"beside Karpenter NodeClaim {claim.name} goes for a reason that is Karpenter's"
    if claim.annotations.get(names.DISRUPTED_BY) != names.SET_BY_TENURE:
        return f"beside Karpenter NodeClaim {claim.name} is not marked as replaced by Tenure"
    if any(claim.annotations.get(names.REPLACED_BY, "").split(",")):
        return None
    pool = snapshot.pools.get(claim.pool_name)
    if pool is not None and pool.spec.replicas is not None:
        return None
    for node in snapshot.nodes_with_provider(claim.provider_id).values():
        for _, pod in sorted(snapshot.pods_on(node.name).items()):
            controlled = any(one.controller for one in pod.metadata.owner_references)
            if occupies(pod) and controlled and not pod.tolerates_disruption:
                return f"beside Karpenter pod {pod.key} of Node {node.name} has no replacement"
    return None


# -- a new claim -----------------------------------------------------------------------


def _creates(action: Create, snapshot: Snapshot) -> str | None:
    what = f"beside Karpenter NodeClaim {action.name} is not created"
    claim = msgspec.convert(action.body, NodeClaim)
    pool = snapshot.pools.get(claim.labels.get(names.NODEPOOL, ""))
    if pool is None or pool.uid not in {one.uid for one in claim.metadata.owner_references}:
        return f"{what}: it belongs to no NodePool"
    if claim.spec.node_class_ref != pool.node_class_ref:
        return f"{what}: its node class is not that of NodePool {pool.name}"
    if pool.spec.replicas is not None:
        return f"{what}: NodePool {pool.name} has spec.replicas, which Karpenter keeps"
    if claim.metadata.finalizers or "status" in action.body:
        return f"{what}: finalizers and status are Karpenter's"
    if not _is_ours(action.disrupts_for):
        return f"{what}: {action.disrupts_for or 'no reason'} is Karpenter's to act on"
    found = snapshot.claims_with_uid(uid) if (uid := replaced_by(action)) else {}
    for replaced in found.values():
        if _has_deadline_of_others(replaced):
            return f"{what}: {_of_others(replaced)}"
        if replaced.deleting or is_unreadable(replaced) or replaced.pool_name != pool.name:
            return f"{what}: NodeClaim {replaced.name} is not one of its pool that stays"
    if not found:
        return f"{what}: it replaces no NodeClaim that is there"
    return _without_marks(claim, pool.spec.template.metadata.annotations, what)


def _without_marks(claim: NodeClaim, template: Mapping[str, str], what: str) -> str | None:
    there = claim.annotations
    if there.get(names.CREATED_BY) != names.SET_BY_TENURE:
        return f"{what}: nothing says that Tenure creates it"
    if names.DO_NOT_DISRUPT in template:
        return (
            f"{what}: a user's value would get our marks"
            if _LEVER - {names.DO_NOT_DISRUPT} & there.keys()
            else None
        )
    whole = all(there.get(key) for key in _LEVER)
    ours = there.get(names.DO_NOT_DISRUPT_BY) == names.SET_BY_TENURE
    if whole and ours and there[names.DO_NOT_DISRUPT] == "true":
        return None
    return f"{what}: Karpenter would remove it while it is empty"


# -- marks on a claim ------------------------------------------------------------------


def beyond_marks(
    action: Patch, written: Mapping[str, Any], snapshot: Snapshot, now: datetime
) -> str | None:
    """Why annotations of a NodeClaim must not be written; None when they may."""
    claim = snapshot.claims.get(action.name)
    if claim is None or claim.uid != action.uid:
        return f"beside Karpenter claim {action.name} is gone or another one"
    what = f"beside Karpenter nothing of NodeClaim {claim.name} is ours but"
    if set(written) <= {names.EXPIRED_AT}:
        return _marks_expired(claim, written, now)
    if set(written) <= _REPLACEMENT:
        return _drops(claim, written, what)
    stamp = names.TERMINATION_TIMESTAMP
    stays = _DEADLINE & claim.annotations.keys() - written.keys()
    if stamp in written and written[stamp] is None and stays:
        return f"beside Karpenter a mark of NodeClaim {claim.name} would stay without its deadline"
    # Those of its deadline go with the command, and so does what Tenure in charge has left of its own.
    going = _DEADLINE | {names.INTERRUPTION}
    after = {**claim.annotations, **written}
    left = [key for key in _IN_CHARGE if after.get(key) is not None]
    written = {k: v for k, v in written.items() if k not in going or v is not None}
    if set(written) <= _COMMAND:
        return _commands(claim, written, what, in_part=bool(left))
    return f"{what} when a duration began, and the marks of its replacement"


def _marks_expired(claim: NodeClaim, written: Mapping[str, Any], now: datetime) -> str | None:
    if written[names.EXPIRED_AT] is None:
        return None
    why = too_young(claim, now, spread=True)
    if not why and not claim.registered:
        why = "its Node is not registered, and Karpenter would copy the mark to it"
    return f"NodeClaim {claim.name} would be marked as expired: {why}" if why else None


def _drops(claim: NodeClaim, written: Mapping[str, Any], what: str) -> str | None:
    if any(value is not None for value in written.values()):
        return f"{what} to take marks off a replacement"
    marked = claim.annotations.get(names.DO_NOT_DISRUPT_BY) == names.SET_BY_TENURE
    value = claim.annotations.get(names.DO_NOT_DISRUPT, "true")
    if names.DO_NOT_DISRUPT in written and not (marked and value == "true"):
        return f"{names.DO_NOT_DISRUPT} of NodeClaim {claim.name} is a user's: not ours to write"
    return None


def _commands(
    claim: NodeClaim, written: Mapping[str, Any], what: str, *, in_part: bool
) -> str | None:
    """Each mark may go; a deadline of ours goes with them, and none is set by them. ``in_part``: marks stay that
    Tenure in charge may have written with the deadline."""
    set_ = {key for key, value in written.items() if value is not None}
    after = {k: v for k, v in {**claim.annotations, **written}.items() if v is not None}
    is_command = names.REPLACED_BY in after and bool(set_ or _SAY_WHOSE & written.keys())
    says_why = is_command or names.DISRUPTION_REASON in set_
    if says_why and not _is_ours(after.get(names.DISRUPTION_REASON)):
        return f"{what} graceful repair and expiration by a policy"
    begins = names.REPLACED_BY in set_ and names.REPLACED_BY not in claim.annotations
    if begins and _has_deadline_of_others(claim):
        return f"beside Karpenter {_of_others(claim)}"
    if is_command and after.get(names.DISRUPTED_BY) != names.SET_BY_TENURE:
        return f"{what} a command that says that it is ours"
    if names.TERMINATION_TIMESTAMP not in written:
        return None
    ours = is_our_deadline(claim) or (_is_of_tenure_in_charge(claim) and not in_part)
    if names.TERMINATION_TIMESTAMP in set_ or not ours or claim.deleting:
        return f"{what} the deadline of a command of ours"
    return None


def _is_of_tenure_in_charge(claim: NodeClaim) -> bool:
    """The deadline: Tenure in charge owns each of a claim that is not being deleted."""
    return names.DISRUPTED_BY not in claim.annotations and bool(
        _IN_CHARGE & claim.annotations.keys()
    )


# -- levers ----------------------------------------------------------------------------


def awaits_pods(claim: NodeClaim, snapshot: Snapshot) -> str | None:
    """Why a replacement must stay protected: what it replaces is there, and its pods are to come."""
    for uid in filter(None, claim.annotations.get(names.REPLACES, "").split(",")):
        for name in snapshot.claims_with_uid(uid):
            return f"pods of NodeClaim {name} are to come"
    return None
