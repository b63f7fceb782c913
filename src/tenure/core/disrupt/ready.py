"""What carrying out depends on: the commands whose replacements are all initialized, and their pools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from tenure.core.disrupt.candidates import NodeFacts, facts_of
from tenure.core.disrupt.method import Methods, UnderWay, is_readable
from tenure.core.gates.fleet import PoolFleet, fleet_of
from tenure.core.marks.command import commands_under_way
from tenure.core.marks.interruption import is_interrupted
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.snapshot import Snapshot


class Ready(msgspec.Struct, frozen=True):
    """A command whose replacements are all initialized."""

    under_way: UnderWay
    node: NodeFacts


class ReadyPool(msgspec.Struct, frozen=True):
    """What the gates depend on for the commands of one pool."""

    pool: NodePool | None
    fleet: PoolFleet
    #: By the reason of the method.
    facts: Mapping[str, Any]


def ready_commands(methods: Methods, snapshot: Snapshot) -> Iterator[Ready]:
    for command in commands_under_way(snapshot):
        claim, node = command.claim, command.node
        complete = command.complete and is_readable(command, snapshot)
        if not (claim.deleting or is_interrupted(claim)) and node is not None and complete:
            yield Ready(methods.under_way(command, snapshot), facts_of(claim, node, snapshot))


def pools_of(ready: Iterable[Ready], methods: Methods, snapshot: Snapshot) -> dict[str, ReadyPool]:
    """By name."""
    asked: dict[str, set[str]] = {}
    for one in ready:
        command = one.under_way.command
        if methods.of(command) is not None:
            asked.setdefault(command.claim.pool_name, set()).add(command.reason)
    return {
        name: ReadyPool(
            snapshot.pools.get(name),
            fleet_of(name, snapshot),
            {
                reason: methods.named(reason).pool_facts(name, snapshot)
                for reason in sorted(reasons)
            },
        )
        for name, reasons in sorted(asked.items())
    }
