"""Why nodes are replaced beside Karpenter: graceful repair, and expiration by a NodePoolPolicy.

All other reasons are Karpenter's: drift, emptiness and consolidation, expiration by the NodePool, reboots.
A node that Karpenter disrupts already is left to it. While it is not known which Karpenter is in charge, or that it acts, nothing is
replaced; while Karpenter may repair nodes itself (feature gate ``NodeRepair``) nothing is repaired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.core.beside.karpenter import Karpenter, karpenter_of, repairs_nodes
from tenure.core.beside.replacing.facts import CommandNotOurs, NoReboots
from tenure.core.disrupt.expiration import expires_softly
from tenure.core.disrupt.method import Candidate, Due, Methods, UnderWay, Validation, Watch
from tenure.core.disrupt.methods.expired import ExpiredMethod
from tenure.core.disrupt.methods.unhealthy import UnhealthyMethod
from tenure.core.disrupt.methods.voluntary import PoolRules
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.operations import ASKED, Gate, Operation
from tenure.core.marks.command import Command, is_command_beside, is_replaced
from tenure.core.marks.repaired import is_stamped_by_others
from tenure.core.marks.taints import is_disrupted
from tenure.core.repair.facts import DeadlineNotOurs
from tenure.errors import shown
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

_REBOOTS: Final = frozenset({Operation.REBOOT, Operation.FORCEFUL_REBOOT})


class Known(msgspec.Struct, frozen=True):
    """What a method depends on, and why Tenure leaves it to Karpenter."""

    facts: Any
    off: Fact | None = None
    #: It is not known which Karpenter is in charge, or that it acts; else time-outs go on.
    only_looks: bool = False


class SoftExpiration(ExpiredMethod):
    """``expireAfter`` of a NodePoolPolicy, where the NodePool says ``Never``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def node_of(self, claim: NodeClaim, snapshot: Snapshot) -> Node | None:
        node = super().node_of(claim, snapshot) if expires_softly(claim) else None
        return None if node is None or _is_karpenters(claim, node) else node

    def watch(self, snapshot: Snapshot) -> Iterable[Watch]:
        problem = karpenter_of(snapshot, self._settings).ends_nothing
        for watch in super().watch(snapshot):
            yield msgspec.structs.replace(watch, facts=Known(watch.facts, problem))

    def candidates(self, watch: Watch, settings: Settings, now: datetime) -> Due:
        known: Known = watch.facts
        found = _without_stamped(super().candidates(_unwrapped(watch), settings, now))
        return _switched_off(found, known.off)

    def facts(self, command: Command, snapshot: Snapshot) -> PoolRules | None:
        return super().facts(command, snapshot) if expires_softly(command.claim) else None


class GracefulRepairs(UnhealthyMethod):
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def watch(self, snapshot: Snapshot) -> Iterable[Watch]:
        karpenter = karpenter_of(snapshot, self._settings)
        for watch in super().watch(snapshot):
            nodes = tuple(pair for pair in watch.nodes if not _is_karpenters(*pair))
            if nodes:
                known = _known(watch.facts, karpenter)
                yield msgspec.structs.replace(watch, nodes=nodes, facts=known)

    def candidates(self, watch: Watch, settings: Settings, now: datetime) -> Due:
        known: Known = watch.facts
        due = _without_stamped(super().candidates(_unwrapped(watch), settings, now))
        if known.off is not None:
            # A time-out does not ask whether repair is switched off.
            asking = [one for one in due.candidates if not known.only_looks or _asks_off(one)]
            return _switched_off(msgspec.structs.replace(due, candidates=asking), known.off)
        found = [
            _off_for(one, NoReboots(one.node.name)) if one.operation in _REBOOTS else one
            for one in due.candidates
        ]
        return msgspec.structs.replace(due, candidates=tuple(found))

    # -- carrying out ------------------------------------------------------------------

    def facts(self, command: Command, snapshot: Snapshot) -> Any:
        karpenter = karpenter_of(snapshot, self._settings)
        return _known(super().facts(command, snapshot), karpenter)

    def validate(
        self, command: Command, facts: Any, settings: Settings, now: datetime
    ) -> Validation:
        found = super().validate(command, facts.facts, settings, now)
        timed_out = found.operation is Operation.GRACEFUL_TIMEOUT and not facts.only_looks
        if facts.off is not None and not timed_out:
            return Validation(unwanted=(facts.off,))
        return found

    def instants(self, command: Command, facts: Any) -> Iterator[datetime]:
        return super().instants(command, facts.facts)


class OwnCommands(Methods):
    """Karpenter is in charge of what another program has begun, whatever its reason."""

    def validate_one(self, one: UnderWay, settings: Settings, now: datetime) -> Validation:
        return _not_ours(one.command) or super().validate_one(one, settings, now)


def methods_beside(settings: Settings) -> Methods:
    return OwnCommands((GracefulRepairs(settings), SoftExpiration(settings)))


def _known(facts: Any, karpenter: Karpenter) -> Known:
    """With why Tenure repairs nothing."""
    problem = karpenter.ends_nothing
    return Known(facts, problem or repairs_nodes(karpenter), only_looks=problem is not None)


def _asks_off(one: Candidate) -> bool:
    return Gate.OFF in ASKED[one.operation]


def _not_ours(command: Command) -> Validation | None:
    """Karpenter is in charge of what another program has begun; a deadline that another program sets
    meanwhile stays, and so does the claim."""
    claim = command.claim
    if not is_command_beside(claim):
        return Validation(unwanted=(CommandNotOurs(claim.name),))
    if is_stamped_by_others(claim):
        return Validation(unwanted=(_deadline_not_ours(claim),))
    return None


def _deadline_not_ours(claim: NodeClaim) -> DeadlineNotOurs:
    return DeadlineNotOurs(claim.name, shown(claim.termination_stamp or ""))


def _without_stamped(due: Due) -> Due:
    """A deadline of another program stays, and so does its claim."""
    found = list[Candidate]()
    for one in due.candidates:
        claim = one.claim
        if is_replaced(claim) or not is_stamped_by_others(claim):
            found.append(one)
        elif _asks_off(one):
            found.append(_off_for(one, _deadline_not_ours(claim)))
    return msgspec.structs.replace(due, candidates=tuple(found))


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
