"""What a frame is made of. The board, the web page and ``kubectl tenure`` show these values and no others.

Sent to the page as JSON, with names in camel case. Prices are in micro-dollars an
hour; None is unknown, never 0. Instants are RFC 3339 in UTC.

Those of which there are thousands are not looked at by Python's collector (``gc=False``): none refers to what refers to it.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class Tone(StrEnum):
    """How a phase looks: few enough to be told apart without seeing colours."""

    SERVING = "serving"
    #: Launched, booting, joining, starting.
    COMING = "coming"
    #: A candidate: it would go, and something blocks it.
    WAITING = "waiting"
    #: Draining, terminating, being replaced.
    LEAVING = "leaving"
    UNHEALTHY = "unhealthy"
    #: Of another provider, or without a NodeClaim.
    FOREIGN = "foreign"


class Share(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """What pods request of what a node has: millicores, or bytes."""

    requested: int
    allocatable: int


class BlockerView(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    #: As in messages: ``PodDisruptionBudget/default/web``. The page links it.
    subject: str
    message: str
    until: datetime | None = None
    #: Only a user ends it.
    lasting: bool = False


class NodeView(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """A NodeClaim with its Node, or a Node without a NodeClaim."""

    #: Unique and stable: ``NodeClaim/general-4nv74``, or ``Node/ip-10-0-0-1``.
    key: str
    #: The NodeClaim's name; of a Node without one, the Node's.
    name: str
    node: str = ""
    pool: str = ""
    zone: str = ""
    instance_type: str = ""
    capacity_type: str = ""
    #: One or two words (``in service``, ``draining``), and how it looks.
    phase: str
    tone: Tone
    #: The verdict that governs it: its code, and its sentence.
    reason: str
    because: str
    #: What happens next in words, and when; the instant is the verdict's recheck time or a deadline.
    next: str = ""
    next_at: datetime | None = None
    created_at: datetime
    #: After this instant the node is torn down by force.
    deadline: datetime | None = None
    price: int | None = None
    pods: int = 0
    cpu: Share | None = None
    memory: Share | None = None
    #: The first twenty, and how many more there are.
    blockers: tuple[BlockerView, ...] = ()
    more_blockers: int = 0


class PoolView(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    name: str
    #: Nodes by tone.
    nodes: dict[Tone, int] = {}
    price: int = 0
    #: Nodes whose price is unknown; ``price`` is without them.
    unpriced: int = 0
    #: Its governing verdict, if that says more than how many nodes there are.
    reason: str = ""
    because: str = ""


class PendingPod(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """A pod that waits for a node."""

    #: ``Pod/default/web-1``
    key: str
    name: str
    namespace: str
    reason: str
    because: str
    since: datetime


class Totals(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    nodes: dict[Tone, int] = {}
    running: int = 0
    pending: int = 0
    price: int = 0
    unpriced: int = 0


class Lost(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The API server does not answer: what is shown is as of then."""

    since: datetime
    why: str


class Frame(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole cluster at an instant."""

    at: datetime
    #: What the cluster is called, and who acts on it.
    cluster: str = ""
    leader: str = ""
    #: What the reader has to know: kinds that cannot be listed, a clock that is wrong.
    notes: tuple[str, ...] = ()
    #: None: the API server answers.
    lost: Lost | None = None
    totals: Totals
    pools: tuple[PoolView, ...] = ()
    nodes: tuple[NodeView, ...] = ()
    #: The first hundred; ``totals.pending`` counts all.
    pending: tuple[PendingPod, ...] = ()


class Change(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is different from the frame before: nodes and pending pods that are new or differ, and keys that are gone."""

    at: datetime
    leader: str = ""
    notes: tuple[str, ...] = ()
    lost: Lost | None = None
    totals: Totals
    pools: tuple[PoolView, ...] = ()
    nodes: tuple[NodeView, ...] = ()
    gone: tuple[str, ...] = ()
    pending: tuple[PendingPod, ...] = ()


class Segment(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """A stretch of a node's life. Without an end it lasts."""

    begin: datetime
    end: datetime | None = None
    phase: str
    tone: Tone
    reason: str
    because: str


class Mark(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """An instant of a node's life, past or to come: ``launched``, ``ready``, ``deadline``, ``expires``."""

    at: datetime
    what: str
    because: str = ""
    #: From the forecast, and not from the journal.
    foreseen: bool = False


class Lane(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    key: str
    name: str
    pool: str
    zone: str = ""
    segments: tuple[Segment, ...] = ()
    marks: tuple[Mark, ...] = ()


class Cost(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    at: datetime
    price: int
    nodes: int
    unpriced: int = 0


class History(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What this replica has seen since it began, bounded: the oldest is forgotten."""

    since: datetime
    at: datetime
    #: Whether something was forgotten.
    cut: bool = False
    lanes: tuple[Lane, ...] = ()
    cost: tuple[Cost, ...] = ()
