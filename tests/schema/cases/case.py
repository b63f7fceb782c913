"""One case, and the ways to write it down."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.schema.objects import Json, an_object

NO_DAYS = "for 1d use 24h"


class Case(msgspec.Struct, frozen=True):
    says: str
    kind: str
    changes: Json
    #: Field and part of the message; empty where the object is fine.
    field: str = ""
    message: str = ""
    #: What the object was before, for rules that evaluate a change.
    before: Json | None = None

    @property
    def object(self) -> Json:
        return an_object(self.kind, self.changes)

    @property
    def old(self) -> Json | None:
        return None if self.before is None else an_object(self.kind, self.before)


def requirement(key: str, operator: str, *values: str, **more: Any) -> Json:
    return {"key": key, "operator": operator, "values": list(values), **more}


def pool_case(says: str, path: str, value: Any, field: str = "", message: str = "") -> Case:
    return Case(says, "NodePool", {path: value}, field, message)


def template_cases(
    says: str, path: str, value: Any, field: str = "", message: str = ""
) -> list[Case]:
    """The same rule for a pool's template and for a claim."""
    return [
        Case(
            f"{says} in a {kind}",
            kind,
            {f"{at}.{path}": value},
            f"{at}.{field}" if field else "",
            message,
        )
        for kind, at in (("NodePool", "spec.template.spec"), ("NodeClaim", "spec"))
    ]
