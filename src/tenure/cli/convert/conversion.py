"""A NodePool in the making: its fields, where each comes from, and what there is to report."""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.cli.convert.fields import Fields, shown_value
from tenure.cli.convert.report import Code, Note
from tenure.cli.lint.source import Source


class Conversion(msgspec.Struct):
    """``pool`` is None where the Provisioner cannot be converted."""

    source: Source
    notes: list[Note] = []
    pool: dict[str, Any] | None = None
    #: Field of the NodePool → field of the Provisioner that it was made from.
    origins: dict[str, str] = {}

    def put(self, to: str, value: Any, origin: str | None = None) -> None:
        """Set a field of the NodePool, and remember what it was made from; None: a default."""
        assert self.pool is not None
        *above, last = to.split(".")
        place = self.pool
        for step in above:
            place = place.setdefault(step, {})
        place[last] = value
        if origin is not None:
            self.origins[to] = origin

    def note(self, code: Code, message: str, *fields: str) -> None:
        self.notes.append(Note(code, fields, message))

    def report_left(self, fields: Fields) -> None:
        """What nothing has taken from there."""
        for path, value in fields.left():
            if (meant := fields.meant(path)) is not None:
                self.note(Code.INVALID, f"unknown field; did you mean {meant}?", path)
                continue
            message = f"{shown_value(value)} has no successor in a NodePool, and is left out"
            self.note(Code.NO_SUCCESSOR, message, path)
