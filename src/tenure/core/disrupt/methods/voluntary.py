"""What the voluntary methods share: a condition of the claim says that its node may be a candidate.

The condition is written by a decider that looks at one claim at a time, so that the pipeline, which
looks at all of them, finds the few candidates by an index. Whether and from when on a node is due
follows from its claim and the ``disruption`` block of its pool (``due_at``), when a command is
planned and as long as it is under way.

Candidates of no method are nodes that are not initialized, share their instance with another claim,
or belong to a pool that is gone or has ``spec.replicas``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.core.decision import Commitment
from tenure.core.disrupt.facts.commands import NoLongerDue
from tenure.core.disrupt.method import AnyPlan, Candidate, Due, Validation, Watch
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.operations import Operation
from tenure.core.gates.traits import Traits
from tenure.core.marks.candidacy import is_open, node_of, says
from tenure.core.marks.command import Command
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import Disruption
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

#: More than any instant, in seconds.
_FIRST: Final = 1e12


class PoolRules(msgspec.Struct, frozen=True):
    """What of a pool decides over its candidates."""

    pool: str
    block: Disruption
    #: Names of the claims whose nodes come first.
    first: frozenset[str] = frozenset()


class VoluntaryMethod(AnyPlan, ABC):
    #: Of each voluntary method.
    traits: Traits
    watched_as: str
    #: The type of the claim's condition.
    condition: str

    # -- what differs ------------------------------------------------------------------

    @abstractmethod
    def due_at(self, claim: NodeClaim, rules: PoolRules) -> datetime | None:
        """From when on its node is a candidate; None: it is none."""

    @abstractmethod
    def why(self, claim: NodeClaim, node: Node, due_at: datetime) -> tuple[Fact, ...]:
        """What is the case, and since when."""

    def is_candidate(self, claim: NodeClaim, node: Node, snapshot: Snapshot) -> bool:
        """Whether there is more to it than its condition."""
        return True

    def node_of(self, claim: NodeClaim, snapshot: Snapshot) -> Node | None:
        """The Node of a claim that may be a candidate; None where it may not."""
        return node_of(claim, snapshot)

    def first(self, nodes: Iterable[tuple[NodeClaim, Node]], snapshot: Snapshot) -> frozenset[str]:
        """Names of the claims whose nodes come first; else those that have been due for longest."""
        return frozenset()

    def operation(self, rules: PoolRules) -> Operation:
        return Operation.VOLUNTARY

    # -- planning ----------------------------------------------------------------------

    def watch(self, snapshot: Snapshot) -> Iterable[Watch]:
        found: dict[str, list[tuple[NodeClaim, Node]]] = {}
        for _, claim in sorted(snapshot.claims_that_say(self.condition).items()):
            node = self.node_of(claim, snapshot)
            if node is not None and self.is_candidate(claim, node, snapshot):
                found.setdefault(claim.pool_name, []).append((claim, node))
        for pool, nodes in sorted(found.items()):
            block = snapshot.pools[pool].spec.disruption
            rules = PoolRules(pool, block, self.first(nodes, snapshot))
            yield Watch(pool=pool, nodes=tuple(nodes), facts=rules)

    def candidates(self, watch: Watch, settings: Settings, now: datetime) -> Due:
        rules: PoolRules = watch.facts
        due = [(self.due_at(claim, rules), claim, node) for claim, node in watch.nodes]
        return Due(
            candidates=tuple(
                self._candidate(claim, node, at, rules)
                for at, claim, node in due
                if at is not None and at <= now
            ),
            recheck_at=min((at for at, _, _ in due if at is not None and at > now), default=None),
        )

    def _candidate(self, claim: NodeClaim, node: Node, at: datetime, rules: PoolRules) -> Candidate:
        return Candidate(
            claim=claim,
            node=node,
            why=self.why(claim, node, at),
            rank=(_FIRST if claim.name in rules.first else 0.0) - at.timestamp(),
            operation=self.operation(rules),
            commits=self._commits(),
        )

    def _commits(self) -> Commitment:
        return Commitment(reason=self.traits.reason.lower())

    # -- carrying out ------------------------------------------------------------------

    def facts(self, command: Command, snapshot: Snapshot) -> PoolRules | None:
        pool = snapshot.pools.get(command.claim.pool_name)
        return PoolRules(pool.name, pool.spec.disruption) if is_open(pool) else None

    def validate(
        self, command: Command, facts: Any, settings: Settings, now: datetime
    ) -> Validation:
        at = self._due_at(command, facts)
        if at is None or now < at:
            reason = self.traits.reason
            return Validation(unwanted=(NoLongerDue(command.claim.name, reason, at),))
        return Validation(commits=self._commits())

    def instants(self, command: Command, facts: Any) -> Iterator[datetime]:
        at = self._due_at(command, facts)
        yield from (at,) if at is not None else ()

    def _due_at(self, command: Command, rules: PoolRules | None) -> datetime | None:
        said = says(command.claim, self.condition)
        return self.due_at(command.claim, rules) if rules is not None and said else None

    def pool_facts(self, pool: str, snapshot: Snapshot) -> Any:
        return None

    def gates(
        self, command: Command, pool_facts: Any, settings: Settings, now: datetime
    ) -> GateFacts:
        return GateFacts(claim=command.claim, node=command.node)
