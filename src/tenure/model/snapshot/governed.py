"""NodePools and NodeClaims as policies make them: what deciders see in place of what is written.

A NodePoolPolicy speaks where the NodePool says nothing. What it says is put into the NodePool and its claims
before a decider sees them, so a decider reads one value and need not know where it comes from. Which policy
that is, and what is left of one that cannot be used, is decided elsewhere (``core.poolpolicy``); here the
values take their places.

The metadata is that of the object as it is written, so patches and preconditions are the same. What is
compared with an object's own record, or copied into a new object, is asked as ``as_written``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Protocol, TypeVar, cast

import msgspec
from msgspec.structs import replace

from tenure.errors import SpecError
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import Budget, DisruptionStart, NodePool, Repair
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.values.duration import NEVER
from tenure.model.values.problem import Problem, problems_from

T = TypeVar("T", bound=ApiObject)

#: What the API server writes where a user wrote nothing: such a value says nothing.
DEFAULT_READINESS_TTL: Final = "15m"


class Refusal(msgspec.Struct, frozen=True):
    """Policies for the pool that cannot be used, or contradict each other."""

    #: What is wrong: a field, what is there, what is expected, what to do.
    at: str
    got: object
    expected: str
    hint: str = ""
    #: Whether one of them has budgets, or may have: then no node is disrupted by choice.
    budgets: bool = False
    #: Whether one of them has a repair block, or may have: then no node is repaired.
    repair: bool = False
    #: Policies must not be listed: there may be some, and no one knows what they say.
    unlisted: bool = False

    @property
    def error(self) -> SpecError:
        return SpecError(self.at, self.got, self.expected, self.hint)

    @property
    def problem(self) -> Problem:
        return problems_from((self.error,))[0]


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What policies say about one pool, of what the pool itself does not say."""

    #: The policy that applies; of a refusal, those that would.
    policies: tuple[str, ...] = ()
    readiness_ttl: str | None = None
    initialization_ttl: str | None = None
    expire_after: str | None = None
    repair: Repair | None = None
    max_pod_protection: str | None = None
    #: All of them: the policy's, and those of the pool that say something.
    budgets: tuple[Budget, ...] | None = None
    #: Beside Karpenter, where the status of the pool is not ours: the departures that policies remember.
    starts: tuple[DisruptionStart, ...] | None = None
    refusal: Refusal | None = None

    @property
    def values(self) -> Mapping[str, object]:
        """By the name of the field in a policy: what is taken from there."""
        named = {
            "readinessTTL": self.readiness_ttl,
            "initializationTTL": self.initialization_ttl,
            "expireAfter": self.expire_after,
            "repair": self.repair,
            "maxPodProtection": self.max_pod_protection,
            "budgets": self.budgets,
        }
        return {name: value for name, value in named.items() if value is not None}


class Govern(Protocol):
    """What policies say about a pool; None: nothing. ``unlisted``: why there may be more of them."""

    def __call__(
        self, pool: NodePool, policies: Collection[NodePoolPolicy], unlisted: str = "", /
    ) -> Ruling | None: ...


class GovernedPool(NodePool, frozen=True, kw_only=True):
    written: NodePool = NodePool()
    ruling: Ruling = Ruling()


class GovernedClaim(NodeClaim, frozen=True, kw_only=True):
    written: NodeClaim = NodeClaim()
    ruling: Ruling = Ruling()


def as_written(item: T) -> T:
    """The object as the API server has it."""
    if isinstance(item, GovernedPool | GovernedClaim):
        return cast("T", item.written)
    return item


def ruling_of(item: ApiObject | None) -> Ruling | None:
    """What policies made of it; None where they say nothing."""
    return item.ruling if isinstance(item, GovernedPool | GovernedClaim) else None


def starts_of(pool: NodePool) -> tuple[DisruptionStart, ...]:
    """What is remembered of the disruptions of a pool, for budgets with ``within``: in its status, or
    beside Karpenter in the status of policies."""
    ruling = ruling_of(pool)
    remembered = ruling.starts if ruling is not None else None
    return pool.status.disruption_starts if remembered is None else remembered


def of_policies(pool: NodePool) -> bool:
    """Whether policies remember them."""
    ruling = ruling_of(pool)
    return ruling is not None and ruling.starts is not None


def with_starts(pool: NodePool, starts: tuple[DisruptionStart, ...]) -> NodePool:
    """The pool as if that were remembered."""
    if isinstance(pool, GovernedPool):
        return replace(pool, ruling=replace(pool.ruling, starts=starts))
    return replace(pool, status=replace(pool.status, disruption_starts=starts))


def refusal_of(item: ApiObject | None) -> Refusal | None:
    ruling = ruling_of(item)
    return ruling.refusal if ruling is not None else None


def known_part(pool: NodePool) -> NodePool:
    """The pool by the policies that are known, whatever others there may be."""
    refusal = refusal_of(pool)
    if not isinstance(pool, GovernedPool) or refusal is None or not refusal.unlisted:
        return pool
    ruling = pool.ruling
    budgets = ruling.budgets[:-1] if ruling.budgets is not None else None  # The last one closes it.
    repair = None if refusal.repair else ruling.repair
    return replace(pool, ruling=replace(ruling, budgets=budgets, repair=repair, refusal=None))


def governed_pool(pool: NodePool, ruling: Ruling) -> NodePool:
    """The pool with the values in their places."""
    template, block = pool.spec.template, pool.spec.disruption
    spec = template.spec
    if ruling.readiness_ttl is not None:
        spec = replace(spec, readiness_ttl=ruling.readiness_ttl)
    if ruling.initialization_ttl is not None:
        spec = replace(spec, initialization_ttl=ruling.initialization_ttl)
    if ruling.expire_after is not None:
        spec = replace(spec, expire_after=ruling.expire_after)
        block = replace(block, expiration_policy="WhenAllowed")
    if ruling.max_pod_protection is not None:
        block = replace(block, max_pod_protection=ruling.max_pod_protection)
    if ruling.budgets is not None:
        block = replace(block, budgets=ruling.budgets)
    return GovernedPool(
        api_version=pool.api_version,
        kind=pool.kind,
        metadata=pool.metadata,
        spec=replace(
            pool.spec,
            template=replace(template, spec=spec),
            disruption=block,
            repair=pool.spec.repair if ruling.repair is None else ruling.repair,
        ),
        status=pool.status,
        written=pool,
        ruling=ruling,
    )


def governed_claim(claim: NodeClaim, ruling: Ruling) -> NodeClaim:
    """The claim, which has a copy of its pool's times: those that its copy does not say, from the policy.

    The same claim where that makes no difference.
    """
    spec = claim.spec
    if ruling.readiness_ttl is not None and spec.readiness_ttl in (None, DEFAULT_READINESS_TTL):
        spec = replace(spec, readiness_ttl=ruling.readiness_ttl)
    if ruling.initialization_ttl is not None and spec.initialization_ttl is None:
        spec = replace(spec, initialization_ttl=ruling.initialization_ttl)
    if ruling.expire_after is not None and spec.expire_after == NEVER:
        spec = replace(spec, expire_after=ruling.expire_after)
    if spec is claim.spec:
        return claim
    return GovernedClaim(
        api_version=claim.api_version,
        kind=claim.kind,
        metadata=claim.metadata,
        spec=spec,
        status=claim.status,
        written=claim,
        ruling=replace(ruling, starts=None),  # A start of the pool changes none of its claims.
    )
