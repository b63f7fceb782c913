"""A disruption method that replaces nodes together, for tests alone.

Nodes that a user has annotated with the same value are one group; a value that one node has alone is
a group of one. It takes no plan that launches as many claims as it takes away, or more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from tenure.core.decision import Commitment
from tenure.core.disrupt.method import AnyPlan, Candidate, Due, Methods, Validation, Watch
from tenure.core.disrupt.methods import SHIPPED
from tenure.core.disrupt.simulate import LeavingNode, Plan, Simulation
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.traits import Traits
from tenure.core.marks.command import Command
from tenure.core.marks.ownership import is_ours
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

MERGE: Final = "test.tenure.dev/merge"
REASON: Final = "Merged"


class ToBeMerged(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is to be merged"


class NotMerged(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is no longer to be merged"


class NotFewer(Fact, frozen=True):
    nodes: int
    claims: int

    def __str__(self) -> str:
        return f"{self.claims} claims for {self.nodes} nodes"


class MergeMethod(AnyPlan):
    watched_as = "to be merged"
    traits = Traits(reason=REASON)

    def __init__(self, *, proposes: bool = True) -> None:
        """``proposes``: else it has forgotten what it wanted, as after a restart."""
        self._proposes = proposes

    def watch(self, snapshot: Snapshot) -> Iterable[Watch]:
        found: dict[str, list[tuple[NodeClaim, Node]]] = {}
        groups: dict[str, list[str]] = {}
        for _, node in sorted(snapshot.nodes.items() if self._proposes else ()):
            claim = snapshot.claim_of(node)
            if claim is not None and MERGE in node.annotations and is_ours(claim, snapshot):
                found.setdefault(claim.pool_name, []).append((claim, node))
                groups.setdefault(node.annotations[MERGE], []).append(claim.name)
        facts = {name: tuple(sorted(claims)) for name, claims in sorted(groups.items())}
        for pool, nodes in sorted(found.items()):
            yield Watch(pool=pool, nodes=tuple(nodes), facts=facts)

    def candidates(self, watch: Watch, settings: Settings, now: datetime) -> Due:
        return Due(
            candidates=tuple(
                Candidate(
                    claim=claim,
                    node=node,
                    why=(ToBeMerged(node.name),),
                    group=watch.facts[node.annotations[MERGE]],
                )
                for claim, node in watch.nodes
            )
        )

    def facts(self, command: Command, snapshot: Snapshot) -> Any:
        return None

    def validate(
        self, command: Command, facts: Any, settings: Settings, now: datetime
    ) -> Validation:
        assert command.node is not None, "else it is rolled back"
        if MERGE not in command.node.annotations:
            return Validation(unwanted=(NotMerged(command.node.name),))
        return Validation(commits=Commitment(reason="merged"))

    def instants(self, command: Command, facts: Any) -> Iterator[datetime]:
        return iter(())

    def pool_facts(self, pool: str, snapshot: Snapshot) -> Any:
        return None

    def gates(
        self, command: Command, pool_facts: Any, settings: Settings, now: datetime
    ) -> GateFacts:
        return GateFacts(claim=command.claim, node=command.node)

    def rejects(
        self,
        leaving: Sequence[LeavingNode],
        plan: Plan,
        simulation: Simulation,
        settings: Settings,
        now: datetime,
    ) -> Fact | None:
        claims = len(plan.claims) + len(plan.came)
        return NotFewer(len(leaving), claims) if claims >= len(leaving) else None


MERGES: Final = Methods((*SHIPPED, MergeMethod()))
FORGETFUL: Final = Methods((*SHIPPED, MergeMethod(proposes=False)))
