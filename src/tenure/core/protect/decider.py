"""Report what ``karpenter.sh/do-not-disrupt`` protects, and until when.

An invalid ``karpenter.sh/do-not-repair`` vetoes repair for ever. That is reported here, too;
``repair`` reports whether it blocks anything.

For every pod on a node of ours, and for every Node and claim of ours with the annotation: protected
for ever, protected until an instant, ended, or an invalid value. On Nodes and claims a duration
counts from when its value was first seen, so that instant is written in an annotation beside it,
and removed with it.

These verdicts only report: drains and disruptions use ``protection`` themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.decision import Concern, Patch, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.marks.ownership import is_our_node, is_ours
from tenure.core.protect.facts import (
    DurationBegins,
    DurationGone,
    ProtectionEnded,
    VetoUnreadable,
)
from tenure.core.protect.protection import (
    Protection,
    cap_of,
    noted_at,
    protection_cap,
    protection_of,
    protection_on,
    since_key,
)
from tenure.core.reasons import Reason
from tenure.core.writes import patch
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import DO_NOT_DISRUPT, DO_NOT_REPAIR
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import type_of

SINCE: Final = since_key(DO_NOT_DISRUPT)
#: On Nodes and claims, a duration in either of them counts from when it was first seen.
_NOTED: Final = (DO_NOT_DISRUPT, DO_NOT_REPAIR)
_ANNOTATIONS: Final = frozenset({*_NOTED, *map(since_key, _NOTED)})

#: Prefixes of keys; no name can contain a slash at that position.
_POD, _NODE, _CLAIM = "pod/", "node/", "claim/"


class ProtectionView(msgspec.Struct, frozen=True):
    thing: Pod | Node | NodeClaim
    #: The pool's ``maxPodProtection``; for pods.
    cap: str | None = None


class ProtectionDecider:
    concern = Concern.PROTECTION

    def __init__(self, *, claims_only: bool = False) -> None:
        """``claims_only``: beside Karpenter, which goes by its own reading of pods and Nodes. It copies annotations of a
        claim to the Node that registers: until then nothing is noted there, and nothing disrupts the claim.
        """
        self._claims_only = claims_only

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        if not self._claims_only:
            yield from self._keys_of_pods_and_nodes(snapshot)
        yield from (_CLAIM + key for key, claim in snapshot.claims.items() if _is_annotated(claim))

    def _keys_of_pods_and_nodes(self, snapshot: Snapshot) -> Iterable[str]:
        yield from (_POD + key for key, pod in snapshot.pods.items() if _is_annotated(pod))
        yield from (_NODE + key for key, node in snapshot.nodes.items() if _is_annotated(node))

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if self._claims_only:
            if change.resource == NODE_CLAIMS:
                yield _CLAIM + change.key
            return
        if change.resource == PODS:
            yield from (
                _POD + change.key for version in change.versions() if _is_annotated(version)
            )
        elif change.resource == NODE_CLAIMS:
            yield _CLAIM + change.key
            for claim in change.versions():
                assert isinstance(claim, NodeClaim)
                for name in snapshot.nodes_with_provider(claim.provider_id):
                    yield from _on_node(name, snapshot)
        elif change.resource == NODES:
            yield from _on_node(change.key, snapshot)
        elif change.resource == NODE_POOLS and cap_of(change.old) != cap_of(change.new):
            for name in snapshot.nodes_of_pool(change.key):
                yield from _on_node(name, snapshot)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> ProtectionView | None:
        kind, _, name = key.partition("/")
        if kind + "/" == _POD:
            return _view_of_pod(snapshot.pods.get(name), snapshot)
        if kind + "/" == _NODE:
            node = snapshot.nodes.get(name)
            seen = node is not None and _is_annotated(node) and is_our_node(node, snapshot)
            return ProtectionView(node) if node is not None and seen else None
        claim = snapshot.claims.get(name)
        seen = claim is not None and _is_annotated(claim) and is_ours(claim, snapshot)
        if claim is None or not seen or (self._claims_only and not claim.registered):
            return None
        return ProtectionView(claim)

    def decide(self, view: ProtectionView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        thing = view.thing
        if isinstance(thing, Pod):
            clock = settings.protection_clock
            protection = protection_of(thing, cap=view.cap, clock=clock)
            return [_report(thing, protection, now)] if protection is not None else []
        for annotation in _NOTED:
            if (noting := _note(thing, annotation)) is not None:
                return [noting]
        protection = protection_on(thing)
        verdict = _report(thing, protection, now) if protection is not None else None
        found = _unreadable_veto(thing, verdict) or verdict
        return [found] if found is not None else []


def _is_annotated(thing: ApiObject) -> bool:
    return not _ANNOTATIONS.isdisjoint(thing.annotations)  # A stand-in has none of them.


def _on_node(name: str, snapshot: Snapshot) -> Iterable[str]:
    yield _NODE + name
    yield from (_POD + key for key, pod in snapshot.pods_on(name).items() if _is_annotated(pod))


def _view_of_pod(pod: Pod | None, snapshot: Snapshot) -> ProtectionView | None:
    node = snapshot.nodes.get(pod.spec.node_name) if pod is not None else None
    if pod is None or node is None or not is_our_node(node, snapshot):
        return None
    return ProtectionView(pod, protection_cap(node, snapshot))


def _note(thing: Node | NodeClaim, annotation: str) -> Verdict | None:
    """Records when a duration begins, or removes that record; None when nothing changes."""
    value, since = thing.annotations.get(annotation), since_key(annotation)
    protection = protection_on(thing, annotation)
    lasts = protection is not None and value != "true" and not protection.unreadable
    if lasts and noted_at(thing, annotation) is None:
        action: Patch = patch(thing, {"annotations": {since: value}})
        action = msgspec.structs.replace(action, dated=since)
        begins = DurationBegins(annotation, value or "")
        return _say(thing, Reason.PROTECTION_NOTED, begins, action=action)
    if not lasts and since in thing.annotations:
        action = patch(thing, {"annotations": {since: None}})
        return _say(thing, Reason.PROTECTION_NOTED, DurationGone(since), action=action)
    return None


def _unreadable_veto(thing: Node | NodeClaim, beside: Verdict | None) -> Verdict | None:
    """``beside``: the verdict on its protection, to be included."""
    veto = protection_on(thing, DO_NOT_REPAIR)
    if veto is None or not veto.unreadable:
        return None
    fact = VetoUnreadable(veto.value)
    if beside is None:
        return _say(thing, Reason.VETO_UNREADABLE, fact)
    return _say(thing, Reason.VETO_UNREADABLE, fact, *beside.facts, recheck_at=beside.recheck_at)


def _report(thing: Pod | Node | NodeClaim, protection: Protection, now: datetime) -> Verdict:
    if now >= protection.until:
        ended = ProtectionEnded(protection.value, protection.until, protection.capped_by)
        return _say(thing, Reason.PROTECTION_ENDED, ended)
    if protection.unreadable:
        reason = Reason.PROTECTION_UNREADABLE
    elif protection.ends_at is None:
        reason = Reason.PROTECTED_FOR_EVER
    else:
        reason = Reason.PROTECTED_UNTIL
    return _say(thing, reason, protection, recheck_at=protection.ends_at)


def _say(
    thing: Pod | Node | NodeClaim,
    reason: Reason,
    *facts: Fact,
    action: Patch | None = None,
    recheck_at: datetime | None = None,
) -> Verdict:
    kinds: dict[type[ApiObject], str] = {
        Pod: PODS.kind,
        Node: NODES.kind,
        NodeClaim: NODE_CLAIMS.kind,
    }
    return Verdict(
        concern=Concern.PROTECTION,
        subject=Subject.of(kinds[type_of(thing)], thing),
        reason=reason,
        facts=facts,
        action=action,
        recheck_at=recheck_at,
    )
