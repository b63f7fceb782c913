"""What carrying out depends on: the commands whose replacements are all initialized, and their pools.

Claims that are replaced together are carried out together, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from tenure.core.disrupt.candidates import NodeFacts, facts_of
from tenure.core.disrupt.method import Methods, UnderWay, is_readable
from tenure.core.gates.fleet import PoolFleet, fleet_of
from tenure.core.marks.command import Command, commands_under_way
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


def ready_commands(methods: Methods, snapshot: Snapshot) -> Iterator[tuple[Ready, ...]]:
    """Each with all commands of its group."""
    complete = {
        one.claim.name: one
        for one in snapshot.once(commands_under_way)
        if not (one.claim.deleting or is_interrupted(one.claim)) and one.complete
    }
    for name, command in complete.items():
        group = command.group
        if name == group[0] and all(one in complete for one in group):
            found = tuple(ready_of(complete[one], methods, snapshot) for one in group)
            ready = tuple(one for one in found if one is not None)
            if len(ready) == len(group):
                yield ready


def ready_of(command: Command, methods: Methods, snapshot: Snapshot) -> Ready | None:
    """None: it has not just one Node, or something in the way cannot be read."""
    if command.node is None or not is_readable(command, snapshot):
        return None
    facts = facts_of(command.claim, command.node, snapshot)
    return Ready(methods.under_way(command, snapshot), facts)


def pools_of(
    ready: Iterable[Sequence[Ready]], methods: Methods, snapshot: Snapshot
) -> dict[str, ReadyPool]:
    """By name."""
    asked: dict[str, set[str]] = {}
    for one in chain.from_iterable(ready):
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
