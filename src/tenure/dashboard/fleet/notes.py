"""What the reader of a frame has to know: kinds that cannot be listed, objects that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tenure.core.facts import counted
from tenure.dashboard.fleet.texts import cut
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import unreadable_object

#: So many objects are named.
NAMED_MAX: Final = 5


def notes_of(snapshot: Snapshot) -> Iterator[str]:
    for resource, why in sorted(snapshot.unlisted_kinds().items(), key=lambda one: str(one[0])):
        yield cut(f"{resource} cannot be listed: {why}")
    stand_ins = snapshot.unreadable()
    for (_, _), item in sorted(stand_ins.items(), key=lambda one: (str(one[0][0]), one[0][1]))[
        :NAMED_MAX
    ]:
        yield cut(str(unreadable_object(item)))
    if len(stand_ins) > NAMED_MAX:
        yield f"{counted(len(stand_ins) - NAMED_MAX, 'more object')} cannot be read"
