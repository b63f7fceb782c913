"""What service accounts asked of the API server since a story began: its audit log."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final, NamedTuple

from testbed.controlplane import ControlPlane

READS: Final = frozenset({"get", "list", "watch"})
#: Renewed by whoever leads or wants to; told apart from what a leader does.
LEASES: Final = "leases"


class Deed(NamedTuple):
    """A request that would change something, whatever came of it."""

    at: datetime
    #: The account's name, without its namespace.
    who: str
    verb: str
    #: With its subresource.
    resource: str
    name: str
    #: The status of the answer; 0 if nobody waited for it.
    code: int

    @property
    def done(self) -> bool:
        return 200 <= self.code < 300


class Audit:
    def __init__(self, plane: ControlPlane) -> None:
        self._log = plane.audit_log
        self._begin = self._log.stat().st_size if self._log.exists() else 0

    def deeds(self, who: str = "", *, verb: str = "", resource: str = "") -> list[Deed]:
        """In the order in which they arrived; the Lease's only where one asks for them."""
        found = [deed for deed in self._all() if deed.resource == (resource or deed.resource)]
        return sorted(
            deed
            for deed in found
            if deed.verb == (verb or deed.verb)
            and deed.who == (who or deed.who)
            and (resource or deed.resource != LEASES)
        )

    def evicted(self) -> list[str]:
        """Names of the pods whose eviction was granted, each as often as it was."""
        return [d.name for d in self.deeds(resource="pods/eviction") if d.done]

    def _all(self) -> list[Deed]:
        with self._log.open("rb") as log:
            log.seek(self._begin)
            lines = [line for line in log if line.endswith(b"\n")]
        events = map(json.loads, lines)
        return [_deed(event) for event in events if event["verb"] not in READS]


def _deed(event: dict[str, Any]) -> Deed:
    what = event.get("objectRef", {})
    resource = "/".join(filter(None, [what.get("resource", ""), what.get("subresource", "")]))
    return Deed(
        at=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        who=event["user"]["username"].rpartition(":")[2],
        verb=event["verb"],
        resource=resource,
        name=what.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
    )
