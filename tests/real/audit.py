"""What service accounts asked of the API server since a story began, and which program removed a pod: its audit log."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final, NamedTuple

from testbed.controlplane import ControlPlane

Json = dict[str, Any]
READS: Final = frozenset({"get", "list", "watch"})
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
#: Renewed by every replica; counted apart from what a leader does.
LEASES: Final = "leases"


class AuditEntry(NamedTuple):
    """A request that would change something, whatever came of it."""

    at: datetime
    #: The account's name, without its namespace.
    who: str
    verb: str
    #: With its subresource.
    resource: str
    name: str
    #: The status of the answer; 0 if the client did not wait for it.
    code: int

    @property
    def done(self) -> bool:
        return 200 <= self.code < 300


class Order(NamedTuple):
    """A request that a pod go, whatever came of it."""

    at: datetime
    #: ``evict`` or ``delete``.
    verb: str
    name: str
    #: Which pod of that name is meant; empty: whichever there is.
    uid: str
    #: How long it may take to stop; None: what it says itself.
    seconds: int | None
    code: int


class Removal(NamedTuple):
    """A pod was evicted or deleted, by any user: what set its ``deletionTimestamp`` comes first."""

    at: datetime
    #: ``evict`` or ``delete``.
    verb: str
    #: The account's name, without its namespace; of other users the program and its part, too.
    by: str

    def __str__(self) -> str:
        return f"{self.verb} by {self.by} at {self.at:%H:%M:%S.%f}"


class Audit:
    def __init__(self, plane: ControlPlane) -> None:
        self._log = plane.audit_log
        self._begin = self._log.stat().st_size if self._log.exists() else 0

    def entries(self, who: str = "", *, verb: str = "", resource: str = "") -> list[AuditEntry]:
        """In the order in which they arrived; the Lease's only where one asks for them."""
        found = [entry for entry in self._all() if entry.resource == (resource or entry.resource)]
        return sorted(
            entry
            for entry in found
            if entry.verb == (verb or entry.verb)
            and entry.who == (who or entry.who)
            and (resource or entry.resource != LEASES)
        )

    def evicted(self) -> list[str]:
        """Names of the pods whose eviction was granted, each as often as it was."""
        return [d.name for d in self.entries(resource="pods/eviction") if d.done]

    def orders(self, name: str = "") -> list[Order]:
        """In the order in which they arrived; those to that pod."""
        found = [_order(event) for event in self._of_accounts() if _tells_to_go(event)]
        return sorted(order for order in found if order.name == (name or order.name))

    def removals(self, namespace: str, pod: str) -> list[Removal]:
        """What removed that pod, in the order in which the requests arrived."""
        found = [event for event in self._events() if _tells_to_go(event)]
        meant = [event for event in found if _place(event) == (namespace, pod)]
        return sorted(_removal(event) for event in meant if _deed(event).done)

    def _all(self) -> list[AuditEntry]:
        return [_deed(event) for event in self._of_accounts()]

    def _of_accounts(self) -> list[Json]:
        return [event for event in self._events() if _is_account(event)]

    def _events(self) -> list[Json]:
        with self._log.open("rb") as log:
            log.seek(self._begin)
            lines = [line for line in log if line.endswith(b"\n")]
        return [event for event in map(json.loads, lines) if event["verb"] not in READS]


def _is_account(event: Json) -> bool:
    return SERVICE_ACCOUNTS in event["user"].get("groups", ())


def _place(event: Json) -> tuple[str, str]:
    what = event["objectRef"]
    return what.get("namespace", ""), what.get("name", "")


def _removal(event: Json) -> Removal:
    deed = _deed(event)
    verb = "evict" if deed.resource == "pods/eviction" else "delete"
    return Removal(
        deed.at, verb, deed.who if _is_account(event) else f"{deed.who}: {_program(event)}"
    )


def _program(event: Json) -> str:
    """``kube-controller-manager, node-controller`` of a user agent with a part of the program at its end."""
    words = event.get("userAgent", "").split()
    program = words[0].partition("/")[0] if words else "no user agent"
    part = words[-1].rpartition("/")[2] if len(words) > 2 else ""
    return ", ".join(filter(None, [program, part]))


def _deed(event: Json) -> AuditEntry:
    what = event.get("objectRef", {})
    resource = "/".join(filter(None, [what.get("resource", ""), what.get("subresource", "")]))
    return AuditEntry(
        at=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        who=event["user"]["username"].rpartition(":")[2],
        verb=event["verb"],
        resource=resource,
        name=what.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
    )


def _tells_to_go(event: Json) -> bool:
    what = event.get("objectRef", {})
    if what.get("resource") != "pods":
        return False
    return event["verb"] == "delete" or bool(what.get("subresource") == "eviction")


def _order(event: Json) -> Order:
    body = event.get("requestObject", {})
    evicts = event["objectRef"].get("subresource") == "eviction"
    options = body.get("deleteOptions", {}) if evicts else body
    return Order(
        at=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        verb="evict" if evicts else "delete",
        name=event["objectRef"]["name"],
        uid=options.get("preconditions", {}).get("uid", ""),
        seconds=options.get("gracePeriodSeconds"),
        code=event.get("responseStatus", {}).get("code", 0),
    )
