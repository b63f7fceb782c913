"""Why nodes are replaced beside Karpenter: graceful repair, and expiration by a NodePoolPolicy.

All other reasons are Karpenter's: drift, emptiness and consolidation, expiration by the NodePool, reboots.
A node that Karpenter disrupts already is left to it. While it is not known which Karpenter is in charge nothing is
replaced; while Karpenter may repair nodes itself (feature gate ``NodeRepair``) nothing is repaired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.core.beside.karpenter import Karpenter, karpenter_of, repairs_nodes
from tenure.core.beside.replacing.facts import NoReboots
from tenure.core.disrupt.expiration import expires_softly
from tenure.core.disrupt.method import Candidate, Due, Methods, Validation, Watch
from tenure.core.disrupt.methods.expired import ExpiredMethod
from tenure.core.disrupt.methods.unhealthy import UnhealthyMethod
from tenure.core.disrupt.methods.voluntary import PoolRules
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.operations import ASKED, Gate, Operation
from tenure.core.marks.command import Command, is_replaced
from tenure.core.marks.taints import is_disrupted
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

_REBOOTS: Final = frozenset({Operation.REBOOT, Operation.FORCEFUL_REBOOT})


class Known(msgspec.Struct, frozen=True):
    """What a method depends on, and why Tenure leaves it to Karpenter."""

    facts: Any
    off: Fact | None = None


class SoftExpiration(ExpiredMethod):
    """``expireAfter`` of a NodePoolPolicy, where the NodePool says ``Never``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def node_of(self, claim: NodeClaim, snapshot: Snapshot) -> Node | None:
        node = super().node_of(claim, snapshot) if expires_softly(claim) else None
        return None if node is None or _is_karpenters(claim, node) else node

    def watch(self, snapshot: Snapshot) -> Iterable[Watch]:
        problem = karpenter_of(snapshot, self._settings).problem
        for watch in super().watch(snapshot):
            yield msgspec.structs.replace(watch, facts=Known(watch.facts, problem))

    def candidates(self, watch: Watch, settings: Settings, now: datetime) -> Due:
        known: Known = watch.facts
        found = super().candidates(_unwrapped(watch), settings, now)
        return _switched_off(found, known.off)

    def facts(self, command: Command, snapshot: Snapshot) -> PoolRules | None:
        return super().facts(command, snapshot) if expires_softly(command.claim) else None


class GracefulRepairs(UnhealthyMethod):
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def watch(self, snapshot: Snapshot) -> Iterable[Watch]:
        off = _off(karpenter_of(snapshot, self._settings))
        for watch in super().watch(snapshot):
            nodes = tuple(pair for pair in watch.nodes if not _is_karpenters(*pair))
            if nodes:
                known = Known(watch.facts, off)
                yield msgspec.structs.replace(watch, nodes=nodes, facts=known)

    def candidates(self, watch: Watch, settings: Settings, now: datetime) -> Due:
        known: Known = watch.facts
        due = super().candidates(_unwrapped(watch), settings, now)
        if known.off is not None:
            # A time-out does not ask whether repair is switched off.
            asking = [one for one in due.candidates if Gate.OFF in ASKED[one.operation]]
            return _switched_off(msgspec.structs.replace(due, candidates=asking), known.off)
        found = [
            _off_for(one, NoReboots(one.node.name)) if one.operation in _REBOOTS else one
            for one in due.candidates
        ]
        return msgspec.structs.replace(due, candidates=tuple(found))

    # -- carrying out ------------------------------------------------------------------

    def facts(self, command: Command, snapshot: Snapshot) -> Any:
        off = _off(karpenter_of(snapshot, self._settings))
        return Known(super().facts(command, snapshot), off)

    def validate(
        self, command: Command, facts: Any, settings: Settings, now: datetime
    ) -> Validation:
        if facts.off is not None:
            return Validation(unwanted=(facts.off,))
        return super().validate(command, facts.facts, settings, now)

    def instants(self, command: Command, facts: Any) -> Iterator[datetime]:
        return super().instants(command, facts.facts)


def methods_beside(settings: Settings) -> Methods:
    return Methods((GracefulRepairs(settings), SoftExpiration(settings)))


def _off(karpenter: Karpenter) -> Fact | None:
    """Why Tenure repairs nothing."""
    return karpenter.problem or repairs_nodes(karpenter)


def _is_karpenters(claim: NodeClaim, node: Node) -> bool:
    """Whether Karpenter disrupts it: it taints the Node before it deletes the claim."""
    return is_disrupted(node) and not is_replaced(claim)


def _unwrapped(watch: Watch) -> Watch:
    return msgspec.structs.replace(watch, facts=watch.facts.facts)


def _switched_off(due: Due, off: Fact | None) -> Due:
    if off is None:
        return due
    found = tuple(_off_for(one, off) for one in due.candidates)
    return msgspec.structs.replace(due, candidates=found)


def _off_for(one: Candidate, off: Fact) -> Candidate:
    known = one.gates or GateFacts(claim=one.claim, node=one.node)
    return msgspec.structs.replace(one, gates=msgspec.structs.replace(known, off=off))
