"""A second disruption method, for tests alone: a Node that a user has annotated as retired.

It proves that a method is one file: nothing else knows of it, not even its reason, which is in no
table of deciders, guard or checkers. It sets no drain bound, needs replacements, and respects
``karpenter.sh/do-not-disrupt`` on the Node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from tenure.core.decision import Commitment
from tenure.core.disrupt.method import AnyPlan, Candidate, Due, Methods, Validation, Watch
from tenure.core.disrupt.methods import SHIPPED
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.traits import Traits
from tenure.core.marks.command import Command
from tenure.core.marks.ownership import is_ours
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.window import ACTIONS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

RETIRE: Final = "test.tenure.dev/retire"
REASON: Final = "Retired"


class Retired(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is retired"


class NotRetired(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is no longer retired"


class RetiredMethod(AnyPlan):
    watched_as = "retired"

    def __init__(
        self,
        *,
        needs_replacement: bool = True,
        window_actions: frozenset[str] = frozenset(ACTIONS),
    ) -> None:
        self.traits = Traits(
            reason=REASON, needs_replacement=needs_replacement, window_actions=window_actions
        )

    def watch(self, snapshot: Snapshot) -> Iterable[Watch]:
        found: dict[str, list[tuple[NodeClaim, Node]]] = {}
        for _, node in sorted(snapshot.nodes.items()):
            claim = snapshot.claim_of(node)
            if claim is not None and RETIRE in node.annotations and is_ours(claim, snapshot):
                found.setdefault(claim.pool_name, []).append((claim, node))
        for pool, nodes in sorted(found.items()):
            yield Watch(pool=pool, nodes=tuple(nodes))

    def candidates(self, watch: Watch, settings: Settings, now: datetime) -> Due:
        return Due(
            candidates=tuple(
                Candidate(claim=claim, node=node, why=(Retired(node.name),))
                for claim, node in watch.nodes
            )
        )

    def facts(self, command: Command, snapshot: Snapshot) -> Any:
        return None

    def validate(
        self, command: Command, facts: Any, settings: Settings, now: datetime
    ) -> Validation:
        assert command.node is not None, "else it is rolled back"
        if RETIRE not in command.node.annotations:
            return Validation(unwanted=(NotRetired(command.node.name),))
        return Validation(commits=Commitment(reason="retired"))

    def instants(self, command: Command, facts: Any) -> Iterator[datetime]:
        return iter(())

    def pool_facts(self, pool: str, snapshot: Snapshot) -> Any:
        return None

    def gates(
        self, command: Command, pool_facts: Any, settings: Settings, now: datetime
    ) -> GateFacts:
        return GateFacts(claim=command.claim, node=command.node)


BOTH: Final = Methods((*SHIPPED, RetiredMethod()))
