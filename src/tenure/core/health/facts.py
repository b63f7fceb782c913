"""The facts about tolerations, the circuit breaker, and outages of failure domains."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from tenure.core.facts import AT, THEN, Fact
from tenure.model.api.meta import format_time
from tenure.model.values.duration import Duration, compact

# -- which policy sets the toleration --------------------------------------------------------


class PoolPolicy(Fact, frozen=True):
    """An entry of the NodePool's ``spec.repair.policies``."""

    condition: str
    toleration: str
    status: str = ""
    reason: str = ""

    def __str__(self) -> str:
        of = f"{self.condition}={self.status}" if self.status else self.condition
        reason = f" ({self.reason})" if self.reason else ""
        return f"pool policy for {of}{reason}: toleration {self.toleration}"


class PoolDefault(Fact, frozen=True):
    """The NodePool's ``spec.repair.defaultTolerationDuration``."""

    toleration: str

    def __str__(self) -> str:
        return f"pool default: toleration {self.toleration}"


class ProviderPolicy(Fact, frozen=True):
    toleration: timedelta

    def __str__(self) -> str:
        return f"provider policy: toleration {compact(Duration.of(self.toleration))}"


Policy = PoolPolicy | PoolDefault | ProviderPolicy


# -- the circuit breaker of a pool -----------------------------------------------------------


class CircuitBreakerOpen(Fact, frozen=True):
    #: Empty for a claim without one: then all our Nodes are counted.
    pool: str
    unhealthy: int
    total: int
    allowed: int
    max_unhealthy: str

    def __str__(self) -> str:
        of = f" of NodePool {self.pool}" if self.pool else ""
        verb, nodes = "is" if self.unhealthy == 1 else "are", "Node" if self.total == 1 else "Nodes"
        return (
            f"circuit breaker{of} is open: {self.unhealthy} of {self.total} {nodes} {verb} unhealthy, "
            f"at most {self.allowed} may be (maxUnhealthy {self.max_unhealthy})"
        )


# -- failure domains -------------------------------------------------------------------------


class Domain(NamedTuple):
    """What nodes share that may fail as a whole."""

    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.kind}={self.value}"

    @property
    def mark(self) -> str:
        """In an annotation, where blanks and commas separate."""
        return str(self).replace(" ", "_").replace(",", "_")


class Outage(Fact, frozen=True, kw_only=True):
    """A domain in outage."""

    domain: Domain
    unhealthy: int
    recovered: int
    total: int
    #: Those of the unhealthy Nodes.
    pools: int
    #: None: only because of those that have just recovered.
    since: datetime | None
    #: Probes that have terminated, and whose replacement is not up yet.
    left: tuple[str, ...] = ()
    #: … until when, if nothing changes.
    until: datetime | None = None

    def __str__(self) -> str:
        verb = "is" if self.unhealthy == 1 else "are"
        pools = "1 NodePool" if self.pools == 1 else f"{self.pools} NodePools"
        where = f", in {pools}," if self.pools else ""
        unhealthy = (
            f"{self.unhealthy} of {self.total} Nodes with {self.domain}{where} {verb} unhealthy"
        )
        if self.left:
            probes = ", ".join(self.left)
            return (
                f"{unhealthy}; the replacement of probe NodeClaim {probes} is not initialized yet"
            )
        if self.since is not None:
            return f"{unhealthy} since {format_time(self.since)}"
        assert self.until is not None
        return (
            f"{unhealthy}, and {self.recovered} have just recovered: "
            f"none of them is repaired before {format_time(self.until)}"
        )


class FirstProbe(Fact, frozen=True):
    domain: Domain
    at: datetime

    def __str__(self) -> str:
        return f"no Node with {self.domain} is repaired before the first probe at {format_time(self.at)}"


class ProbeUnderWay(Fact, frozen=True):
    claim: str
    since: datetime
    #: When the next one begins at the latest.
    next_at: datetime

    def __str__(self) -> str:
        return (
            f"NodeClaim {self.claim} is the probe since {format_time(self.since)}; the next probe "
            f"begins when a new node is initialized, at {format_time(self.next_at)} at the latest"
        )


class OneProbe(Fact, frozen=True):
    domain: Domain

    def __str__(self) -> str:
        return f"of the Nodes with {self.domain}, one at a time is repaired as a probe"


EXAMPLES: Final[tuple[Fact, ...]] = (
    PoolPolicy("Ready", "10m"),
    PoolPolicy("GPUHealthy", "5m", status="False", reason="Xid79"),
    PoolDefault("30m"),
    ProviderPolicy(timedelta(minutes=30)),
    CircuitBreakerOpen("general", 2, 3, 1, "20%"),
    CircuitBreakerOpen("", 1, 1, 0, "20%"),
    Outage(
        domain=Domain("zone", "test-zone-a"),
        unhealthy=3,
        recovered=0,
        total=4,
        pools=2,
        since=AT,
    ),
    Outage(
        domain=Domain("zone", "test-zone-a"),
        unhealthy=1,
        recovered=3,
        total=4,
        pools=1,
        since=None,
        until=AT,
    ),
    Outage(
        domain=Domain("image", "ami-1"),
        unhealthy=3,
        recovered=0,
        total=4,
        pools=2,
        since=AT,
        left=("general-4nv74",),
    ),
    FirstProbe(Domain("zone", "test-zone-a"), AT),
    ProbeUnderWay("general-4nv74", AT, THEN),
    OneProbe(Domain("zone", "test-zone-a")),
)
