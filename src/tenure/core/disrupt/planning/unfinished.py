"""Commands that are committed on some claims of their group, and not on the others yet.

A leader died between two of these writes, or one was refused. Whatever method proposed the group may
know nothing of it any more, so it is read from the marks: the others are candidates as if they were
committed. Where they cannot be committed now, the marks that are there are taken off (``plan``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import Concern, Verdict
from tenure.core.disrupt.candidates import Unfinished
from tenure.core.disrupt.facts.commands import RolledBack
from tenure.core.disrupt.method import Methods, UnderWay, is_readable
from tenure.core.disrupt.passes import Pass
from tenure.core.disrupt.ready import Ready, ready_of
from tenure.core.disrupt.replacements import failure_of
from tenure.core.facts import Fact
from tenure.core.marks.command import (
    Command,
    as_committed,
    command_of,
    commands_under_way,
    is_replaced,
    roll_back,
)
from tenure.core.marks.interruption import is_interrupted
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, say
from tenure.model.api.meta import later
from tenure.model.snapshot.snapshot import Snapshot

_say = partial(say, Concern.DISRUPTION)

#: From the creation of its last replacement on, so long it waits for what passes by itself.
WAITS: Final = timedelta(minutes=15)


class UnfinishedGroup(msgspec.Struct, frozen=True):
    #: Names of its claims, sorted.
    group: tuple[str, ...]
    begun: tuple[Ready, ...]
    missing: tuple[Unfinished, ...]


def unfinished_groups(methods: Methods, snapshot: Snapshot) -> Iterator[UnfinishedGroup]:
    found = [one for one in snapshot.once(commands_under_way) if one.uncommitted and _is_here(one)]
    for command in found:
        others = (one for one in command.others if is_replaced(one))
        begun = (command, *(command_of(one, snapshot) for one in others))
        if command.claim.name != min(one.claim.name for one in begun):
            continue  # Each group once.
        ready = [ready_of(one, methods, snapshot) for one in begun]
        known = tuple(one for one in ready if one is not None)
        if len(known) == len(ready):
            missing = tuple(_missing(command, methods, snapshot))
            yield UnfinishedGroup(command.group, known, missing)


def waits_until(group: UnfinishedGroup, now: datetime) -> datetime:
    """Until when it may wait for what passes by itself."""
    commands = (one.under_way.command for one in group.begun)
    news = [new for one in commands for _, new in one.replacements if new is not None]
    return max((later(new.created_at, WAITS) for new in news), default=now)


def roll_back_unfinished(group: UnfinishedGroup, why: Fact, shared: Pass) -> Iterator[Verdict]:
    commands = [one.under_way.command for one in group.begun]
    for one in group.begun:
        found = shared.methods.validate(one.under_way, shared.settings, shared.now)
        if found.unwanted or failure_of(one.under_way.command, shared.now) is not None:
            return  # ``orchestrate`` says so.
    for command in commands:
        assert command.node is not None, "else it is not in the group"
        facts = (why, RolledBack(command.node.name))
        action = roll_back(command.claim)
        verdict = _say(command.claim, Reason.DISRUPTION_CANCELLED, *facts, action=action)
        yield from (verdict, also_of(command.node, verdict))


def _is_here(command: Command) -> bool:
    return not (command.claim.deleting or is_interrupted(command.claim))


def _missing(command: Command, methods: Methods, snapshot: Snapshot) -> Iterable[Unfinished]:
    for claim in command.others:
        if not is_replaced(claim):
            committed = command_of(as_committed(claim, command.names, command.reason), snapshot)
            under_way: UnderWay | None = None
            if is_readable(committed, snapshot):
                under_way = methods.under_way(committed, snapshot)
            yield Unfinished(claim, under_way)
