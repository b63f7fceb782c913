"""The facts about launch breakers. Owners are written ``Kind/namespace/name``, as in ``owners``."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, THEN, Fact
from tenure.core.launchbreaker.owners import in_words
from tenure.model.api.meta import format_time


class BreakerOpen(Fact, frozen=True):
    """The pods of one owner did not stay on the nodes that were launched for them."""

    owner: str
    #: After how many of the launches the owner's pods were pending again.
    pending_again: int
    launches: int
    since: datetime
    #: The claim of the last of them, if it is known.
    last: str = ""
    #: None in a pool's condition, which does not follow the time.
    next_at: datetime | None = None

    def __str__(self) -> str:
        last = f", last after NodeClaim {self.last}" if self.last else ""
        next_launch = (
            _next_launch(self.next_at) if self.next_at else "launches back off from 1m to 30m"
        )
        return (
            f"{_is_open(self.owner)}: its pods were pending again after {self.pending_again} of "
            f"{self.launches} launches since {format_time(self.since)}{last}; {next_launch}"
        )


class TooManyInVain(Fact, frozen=True):
    """An owner has to wait because as many launches as may be in vain in an hour were.

    Those of the owner itself; or those of its family or namespace, while its own breaker is closed.
    """

    owner: str
    #: At most one of these two.
    family: str
    namespace: str
    nodes: int
    #: For so many owners.
    owners: int
    most: int
    since: datetime
    next_at: datetime

    def __str__(self) -> str:
        vain = f"{_nodes(self.nodes)} launched in vain"
        since = f"since {format_time(self.since)}, {self.most} an hour are allowed"
        if self.family or self.namespace:
            group = in_words(self.family) if self.family else f"namespace {self.namespace}"
            return (
                f"{group} has reached its limit for launches in vain: {vain} for pods of "
                f"{self.owners} owners {since}; {_next_launch(self.next_at)}"
            )
        return f"{_is_open(self.owner)}: {vain} for its pods {since}; {_next_launch(self.next_at)}"


class PendingAgain(Fact, frozen=True):
    owner: str
    nodes: int
    last: datetime

    def __str__(self) -> str:
        return (
            f"pods of {in_words(self.owner)} are pending again although {_nodes(self.nodes)} "
            f"launched for them, last at {format_time(self.last)}; the third launch in vain within "
            "10m opens the launch breaker"
        )


class DeletedSoon(Fact, frozen=True):
    """Nodes that neither Tenure nor the cloud deleted."""

    family: str
    nodes: int
    #: From so many an hour on, the breaker is open.
    most: int

    def __str__(self) -> str:
        return (
            f"{_nodes(self.nodes)} launched for pods of {in_words(self.family)} and deleted by "
            f"users or other controllers within 10m; {self.most} or more such launches in an hour "
            "open the launch breaker"
        )


class BreakerClosed(Fact, frozen=True):
    owners: tuple[str, ...]

    def __str__(self) -> str:
        if not self.owners:
            return "no launch breaker is open"
        owners = ", ".join(map(in_words, self.owners))
        if len(self.owners) == 1:
            return f"launch breaker of {owners} is closed"
        return f"launch breakers of {owners} are closed"


def _is_open(owner: str) -> str:
    return f"launch breaker of {in_words(owner)} is open"


def _next_launch(at: datetime) -> str:
    return f"next launch not before {format_time(at)}"


def _nodes(count: int) -> str:
    return "1 node was" if count == 1 else f"{count} nodes were"


EXAMPLES: Final[tuple[Fact, ...]] = (
    BreakerOpen("Deployment/default/web", 3, 4, AT, "general-4nv74", THEN),
    BreakerOpen("Deployment/default/web", 3, 4, AT),
    TooManyInVain("Deployment/default/web", "", "", 64, 1, 64, AT, THEN),
    TooManyInVain("Job/default/import-x7k2p", "Job/default/import-*", "", 64, 40, 64, AT, THEN),
    TooManyInVain("Deployment/default/web", "", "default", 64, 64, 64, AT, THEN),
    PendingAgain("Deployment/default/web", 1, AT),
    PendingAgain("Deployment/default/web", 2, AT),
    DeletedSoon("Job/default/import-*", 5, 60),
    BreakerClosed(("Deployment/default/web",)),
    BreakerClosed(("Deployment/default/web", "StatefulSet/default/db")),
    BreakerClosed(()),
)
