"""A claim that is being replaced, as the cluster says it: by whom, why, and whether that goes well.

On the claim that goes, ``karpenter.sh/replaced-by`` names its replacements, all of which exist by
then, and ``karpenter.sh/disruption-reason`` says why; on each replacement ``karpenter.sh/replaces``
has that claim's UID. Nobody remembers anything beside that.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from tenure.core.claim.ownership import is_ours, listed
from tenure.core.disrupt.blockers import Disruption
from tenure.core.pool.facts import rules_of
from tenure.core.protect.protection import protection_on
from tenure.core.repair.health import examine
from tenure.core.repair.readiness import Stage, boot_of, initialized_until
from tenure.core.repair.rules import Illness, Rules
from tenure.core.unreadable.decider import in_the_way
from tenure.model.api import names
from tenure.model.api.meta import format_time
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import first_unreadable


class Command(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    nodes: tuple[Node, ...]
    #: By the names that the claim's mark has; None is gone.
    replacements: tuple[tuple[str, NodeClaim | None], ...]
    rules: Rules

    @property
    def node(self) -> Node | None:
        return self.nodes[0] if len(self.nodes) == 1 else None

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.replacements]

    @property
    def complete(self) -> bool:
        """Whether everything that was launched for it is there."""
        return all(one is not None and one.initialized for _, one in self.replacements)

    # -- whether to go on --------------------------------------------------------------

    def pointless(self, settings: Settings, now: datetime) -> str:
        """Why nothing is to be replaced any more; empty where that is still wanted."""
        node, claim = self.node, self.claim
        if node is None:
            return "it has no Node any more, or several"
        if claim.annotations.get(names.DISRUPTION_REASON) != Disruption.UNHEALTHY:
            return "nobody knows why it is being replaced"
        for thing in (node, claim):
            veto = protection_on(thing, names.DO_NOT_REPAIR)
            if veto is not None and now < veto.until:
                return f"{names.DO_NOT_REPAIR} vetoes its repair"
        if self.overdue(now):
            return ""
        if not settings.node_repair:
            return "node repair is switched off (--node-repair or feature gate NodeRepair)"
        if not self.ill:
            return f"{self._no_illness(node)}"
        return ""

    def _no_illness(self, node: Node) -> str:
        if any((c.type, c.status) in self.rules.sick for c in node.status.conditions):
            return f"its pool no longer asks to repair what Node {node.name} has"
        return f"Node {node.name} has recovered"

    @property
    def ill(self) -> list[Illness]:
        """Tolerated or not: one that changes its status meanwhile is no better for it."""
        assert self.node is not None, "who has none is not asked"
        found = examine(self.claim, self.node, self.rules).ill
        return [one for one in found if one.counts]

    def due(self, now: datetime) -> list[Illness]:
        return [one for one in self.ill if one.due_at is not None and one.due_at <= now]

    def overdue(self, now: datetime) -> bool:
        """Ready, and not initialized in time."""
        boot = None if self.claim.initialized else boot_of(self.claim, self.node)
        return boot is not None and boot.stage is Stage.INITIALIZATION and boot.due_at <= now

    def failure(self, now: datetime) -> str:
        """What is wrong with a replacement; empty where all may still come up."""
        for name, replacement in self.replacements:
            if replacement is None:
                return f"its replacement {name} is gone"
            if replacement.deleting:
                return f"its replacement {name} did not come up, or was deleted"
            until = initialized_until(replacement)
            if until is not None and until <= now:
                at = format_time(until)
                if why := first_unreadable((replacement,)):
                    return (
                        f"its replacement did not come up by {at} for all that can be told: {why}"
                    )
                return f"its replacement {name} was Ready, but not initialized by {at}"
        return ""

    # -- when it may look different ----------------------------------------------------

    def instants(self) -> Iterator[datetime]:
        """When a replacement takes too long (before it is Ready its own TTL counts), a veto ends,
        or another policy falls due."""
        for _, replacement in self.replacements:
            if replacement is not None and (until := initialized_until(replacement)) is not None:
                yield until
        if self.node is not None:
            vetoes = (protection_on(one, names.DO_NOT_REPAIR) for one in (self.node, self.claim))
            yield from (veto.until for veto in vetoes if veto is not None)
            yield from (one.due_at for one in self.ill if one.due_at is not None)
            boot = None if self.claim.initialized else boot_of(self.claim, self.node)
            if boot is not None:
                yield boot.due_at


def command_of(claim: NodeClaim, snapshot: Snapshot) -> Command:
    nodes = snapshot.nodes_with_provider(claim.provider_id)
    if len(snapshot.claims_with_provider(claim.provider_id)) > 1:
        nodes = {}  # Whose they are cannot be told.
    named = listed(claim.annotations.get(names.REPLACED_BY, ""))
    return Command(
        claim=claim,
        nodes=tuple(nodes[name] for name in sorted(nodes)),
        replacements=tuple((name, _standing_in(name, claim, snapshot)) for name in named),
        rules=rules_of(claim.pool_name, snapshot),
    )


def commands_under_way(snapshot: Snapshot) -> tuple[Command, ...]:
    """Of all our claims, those that leave included: whoever is drained still needs his place."""
    marked = snapshot.replaced_claims()
    ours = (marked[name] for name in sorted(marked) if is_ours(marked[name], snapshot))
    return tuple(command_of(claim, snapshot) for claim in ours)


def is_readable(command: Command, snapshot: Snapshot) -> bool:
    """Whether it may go on: the claim, its Nodes, their pods and its pool can all be read."""
    pool = snapshot.pools.get(command.claim.pool_name)
    return not in_the_way(command.claim, command.nodes, pool, snapshot)


def standing_in(snapshot: Snapshot) -> dict[str, tuple[NodeClaim, ...]]:
    """By the UID of the claim that goes: who came for it, marked there or not yet."""
    marked = (claim for claim in snapshot.claims.values() if names.REPLACES in claim.annotations)
    found: dict[str, tuple[NodeClaim, ...]] = {}
    for claim in sorted(marked, key=lambda claim: claim.name):
        if not claim.deleting:
            for uid in listed(claim.annotations[names.REPLACES]):
                found[uid] = (*found.get(uid, ()), claim)
    return found


def _standing_in(name: str, claim: NodeClaim, snapshot: Snapshot) -> NodeClaim | None:
    """The replacement of that name; another claim that got its name later is none."""
    found = snapshot.claims.get(name)
    if found is None or claim.uid not in listed(found.annotations.get(names.REPLACES, "")):
        return None
    return found


def comes_up(replacement: NodeClaim, now: datetime) -> bool:
    """One that was Ready and is not initialized in time has failed once, and would again."""
    until = initialized_until(replacement)
    return until is None or until > now
