"""What a disruption method is: one reason to disrupt nodes, with everything that differs by it.

``methods`` has the list. The pipeline asks a method at two times:

* planning: which nodes it may come to want (``watch``), and which it wants now (``candidates``);
* carrying out: whether a command is still wanted, since when and within which bound (``validate``).

At both it may reject the plan of a command (``rejects``); before, it may change it (``revised``).

A method only reads. Gates, budgets, simulation, replacements, marks and the roll back are the
pipeline's, and the same for every method.

What a method keeps of a snapshot (``facts``) is part of a view: frozen, and compared with ``==``.
Facts of a command may depend on its claim, its Nodes and its pool, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

import msgspec

from tenure.core.decision import Commitment
from tenure.core.disrupt.facts.commands import NoSingleNode, UnknownReason
from tenure.core.disrupt.facts.groups import NotReplacedTogether
from tenure.core.disrupt.simulate import LeavingNode, Plan, Simulation
from tenure.core.facts import Fact
from tenure.core.gates.fleet import FleetNode, PoolFleet
from tenure.core.gates.gatefacts import Blocked, GateFacts
from tenure.core.gates.gates import changes_at, first_blocked
from tenure.core.gates.operations import CLOSES, ROLLS_BACK, Gate, Operation
from tenure.core.gates.traits import Traits
from tenure.core.marks.command import Command, command_of, is_replaced
from tenure.core.marks.taints import is_closed
from tenure.core.reasons import Reason
from tenure.core.terminate.drain import before_drain
from tenure.core.terminate.facts.pods import PdbAllowsNoMore
from tenure.core.terminate.pods import DrainView
from tenure.core.unreadable.decider import in_the_way
from tenure.core.windows.windows import Windows, windows_for_commands
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import WriteRefusal
from tenure.model.snapshot.snapshot import Snapshot


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A node that a method wants to disrupt now."""

    claim: NodeClaim
    node: Node
    #: What is the case, and since when.
    why: tuple[Fact, ...]
    #: Of the same method, the higher comes first.
    rank: float = 0.0
    #: How long the drain may take by the method; None: it sets no bound.
    bound: timedelta | None = None
    #: Which gates are asked; a reboot restarts the instance in place instead of replacing it.
    operation: Operation = Operation.VOLUNTARY
    #: What the gates have to know that only the method knows; the pipeline adds the rest.
    gates: GateFacts | None = None
    #: Annotations that are written with the command.
    marks: Mapping[str, str] = {}
    commits: Commitment | None = None
    #: Names of the claims that are replaced together, its own included, sorted; empty: it alone.
    group: tuple[str, ...] = ()


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a pool that a method may come to want without any change in the cluster."""

    pool: str
    nodes: tuple[tuple[NodeClaim, Node], ...]
    facts: Any = None
    #: It takes over nodes whose command of another reason is under way; else it leaves them alone.
    takes_over: bool = False


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """The candidates among the watched nodes at one instant."""

    candidates: Sequence[Candidate] = ()
    #: Before then, in an unchanged cluster, they stay the same.
    recheck_at: datetime | None = None


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """What a method says of a command under way at one instant."""

    #: Why it is rolled back; empty: it is still wanted.
    unwanted: tuple[Fact, ...] = ()
    #: It is wanted, but not due before.
    due_at: datetime | None = None
    #: How long the drain may take by the method; None: it sets no bound.
    bound: timedelta | None = None
    commits: Commitment | None = None
    operation: Operation = Operation.VOLUNTARY
    #: When a gate may end it, or no longer does; the pipeline says so.
    gates_change_at: datetime | None = None


class Method(Protocol):
    @property
    def traits(self) -> Traits: ...

    @property
    def watched_as(self) -> str:
        """What watched nodes are, for a sentence."""
        ...

    @property
    def rejected_as(self) -> Reason:
        """What a candidate says whose plan is rejected."""
        ...

    def watch(self, snapshot: Snapshot) -> Iterable[Watch]:
        """At most one per pool. Cheap where there is nothing to watch, which is the usual case.

        The pipeline leaves out claims that terminate, and those with a command unless it
        ``takes_over``.
        """
        ...

    def candidates(self, watch: Watch, settings: Settings, now: datetime) -> Due: ...

    def facts(self, command: Command, snapshot: Snapshot) -> Any:
        """What ``validate`` depends on beside the command."""
        ...

    def validate(
        self, command: Command, facts: Any, settings: Settings, now: datetime
    ) -> Validation: ...

    def instants(self, command: Command, facts: Any) -> Iterator[datetime]:
        """When ``validate`` may differ although nothing changes; past instants do no harm."""
        ...

    def pool_facts(self, pool: str, snapshot: Snapshot) -> Any:
        """What ``gates`` depends on beside the command: anything of its pool."""
        ...

    def gates(
        self, command: Command, pool_facts: Any, settings: Settings, now: datetime
    ) -> GateFacts:
        """What the gates have to know that only the method knows, before it is carried out."""
        ...

    def avoids(self, simulation: Simulation, now: datetime) -> Collection[str]:
        """Names of nodes that no pod is to be moved onto."""
        ...

    def revised(
        self,
        leaving: Sequence[LeavingNode],
        plan: Plan,
        simulation: Simulation,
        settings: Settings,
        now: datetime,
    ) -> Plan:
        """The plan of new nodes as the method wants it, before anything is written."""
        ...

    def rejects(
        self,
        leaving: Sequence[LeavingNode],
        plan: Plan,
        simulation: Simulation,
        settings: Settings,
        now: datetime,
    ) -> Fact | None:
        """Why nodes do not leave by this plan; None: they may.

        Asked when a plan is made, before anything is written, and again before its nodes terminate.
        The answer stays the same until the plan changes.
        """
        ...

    def told(
        self,
        candidate: Candidate,
        leaving: Sequence[LeavingNode],
        plan: Plan,
        simulation: Simulation,
        settings: Settings,
        now: datetime,
    ) -> tuple[Fact, ...]:
        """Why the node of a candidate is disrupted, by the plan that is carried out."""
        ...


class AnyPlan:
    """A method that takes every plan."""

    rejected_as: Reason = Reason.DISRUPTION_BLOCKED

    def avoids(self, simulation: Simulation, now: datetime) -> Collection[str]:
        return ()

    def revised(
        self,
        leaving: Sequence[LeavingNode],
        plan: Plan,
        simulation: Simulation,
        settings: Settings,
        now: datetime,
    ) -> Plan:
        return plan

    def rejects(
        self,
        leaving: Sequence[LeavingNode],
        plan: Plan,
        simulation: Simulation,
        settings: Settings,
        now: datetime,
    ) -> Fact | None:
        return None

    def told(
        self,
        candidate: Candidate,
        leaving: Sequence[LeavingNode],
        plan: Plan,
        simulation: Simulation,
        settings: Settings,
        now: datetime,
    ) -> tuple[Fact, ...]:
        return candidate.why


class UnderWay(msgspec.Struct, frozen=True, kw_only=True):
    """A command, and what its method depends on."""

    command: Command
    facts: Any = None
    #: Maintenance windows that name its action.
    windows: Windows = ()
    #: Its pool and its pods, where these may end it.
    pool: NodePool | None = None
    drain: DrainView | None = None
    #: By UID: of its claim and its Node, whose last mark was refused.
    refused: Mapping[str, WriteRefusal] = {}
    #: The commands of the other claims of its group, where they are committed.
    others: tuple[UnderWay, ...] = ()


def is_readable(command: Command, snapshot: Snapshot) -> bool:
    """Whether it may go on: all claims of its group, their Nodes, pods and pools can be read."""
    group = (command, *(command_of(one, snapshot) for one in command.others))
    return not any(
        in_the_way(one.claim, one.nodes, snapshot.pools.get(one.claim.pool_name), snapshot)
        for one in group
    )


class Methods:
    """An ordered list: of two methods that want a node, the first that no gate blocks has it."""

    def __init__(self, methods: Iterable[Method]) -> None:
        self._methods = tuple(methods)
        self._by_reason = {method.traits.reason: method for method in self._methods}

    def __iter__(self) -> Iterator[Method]:
        return iter(self._methods)

    def named(self, reason: str) -> Method:
        return self._by_reason[reason]

    def of(self, command: Command) -> Method | None:
        return self._by_reason.get(command.reason)

    def under_way(self, command: Command, snapshot: Snapshot) -> UnderWay:
        found = self._under_way(command, snapshot)
        committed = (command_of(one, snapshot) for one in command.others if is_replaced(one))
        others = tuple(self._under_way(one, snapshot) for one in committed)
        return msgspec.structs.replace(found, others=others) if others else found

    def _under_way(self, command: Command, snapshot: Snapshot) -> UnderWay:
        method = self.of(command)
        if method is None:
            return UnderWay(command=command)
        found = UnderWay(
            command=command,
            facts=method.facts(command, snapshot),
            windows=windows_for_commands(method.traits.window_actions, snapshot),
            refused=snapshot.observations.refusals_of((command.claim, *command.nodes)),
        )
        if command.node is None:
            return found
        return msgspec.structs.replace(
            found,
            pool=snapshot.pools.get(command.claim.pool_name),
            drain=before_drain(command.node, snapshot),
        )

    def validate(self, one: UnderWay, settings: Settings, now: datetime) -> Validation:
        """Where one command of a group is rolled back, all are."""
        found = self.validate_one(one, settings, now)
        for other in one.others if not found.unwanted else ():
            theirs = self.validate_one(other, settings, now)
            instants = (found.gates_change_at, theirs.gates_change_at)
            at = min((at for at in instants if at is not None), default=None)
            if theirs.unwanted:
                why = NotReplacedTogether(other.command.claim.name, theirs.unwanted)
                return Validation(unwanted=(why,), gates_change_at=at)
            found = msgspec.structs.replace(found, gates_change_at=at)
        return found

    def validate_one(self, one: UnderWay, settings: Settings, now: datetime) -> Validation:
        """For every command: without its one Node or a known reason nothing can be wanted, and some
        gates roll it back."""
        command, method = one.command, self.of(one.command)
        if command.node is None:
            return Validation(unwanted=(NoSingleNode(command.claim.name, len(command.nodes)),))
        if method is None:
            return Validation(unwanted=(UnknownReason(command.reason),))
        validate = method.validate(command, one.facts, settings, now)
        if validate.unwanted:
            return validate
        gates = _gates_of(one, command.node, method.traits, validate.bound)
        blocked = first_blocked(validate.operation, gates, settings, now, only=ROLLS_BACK)
        if blocked is None:
            blocked = _closed(validate, gates, command.node, settings, now)
        if blocked is not None:
            return Validation(unwanted=blocked.facts, gates_change_at=blocked.recheck_at)
        at = changes_at(validate.operation, gates, now)
        return msgspec.structs.replace(validate, gates_change_at=at)

    def instants(self, one: UnderWay) -> Iterator[datetime]:
        for member in (one, *one.others):
            method = self.of(member.command)
            if method is not None and member.command.node is not None:
                yield from method.instants(member.command, member.facts)


def _gates_of(one: UnderWay, node: Node, traits: Traits, bound: timedelta | None) -> GateFacts:
    found = GateFacts(
        claim=one.command.claim, node=node, traits=traits, windows=one.windows, bound=bound
    )
    if one.drain is None:
        return found
    # Whether a budget is closed does not depend on the other nodes; ``execute`` counts them.
    alone = PoolFleet((FleetNode(name=node.name, labels=node.labels),))
    return msgspec.structs.replace(found, pool=one.pool, fleet=alone, drain=one.drain)


def _closed(
    validate: Validation, gates: GateFacts, node: Node, settings: Settings, now: datetime
) -> Blocked | None:
    """The first gate that a user has closed. Until the Node is tainted, a PDB that allows no eviction
    ends a command as well, unless other evictions use it up: that passes, and it would start again."""
    for gate in CLOSES:
        found = first_blocked(validate.operation, gates, settings, now, only=(gate,))
        if found is None:
            continue
        # Beside Karpenter no Node is tainted: the command has begun once it is committed.
        early = gate is Gate.PODS and not (settings.beside_karpenter or is_closed(node))
        if found.closed or (early and not all(_is_used_up(one.fact) for one in found.blockers)):
            return found
    return None


def _is_used_up(fact: Fact) -> bool:
    """By evictions under way, or by pods that are not healthy again yet."""
    if not isinstance(fact, PdbAllowsNoMore):
        return False
    return bool(fact.evicted or fact.first) or fact.healthy < fact.pods
