"""What may go wrong in the embedded cluster: one value, everything off by default.

Actors ask the switch at every occasion (a launch, a boot, a cloud call), never ahead of
it, so that a story can turn a fault on at one instant and off at another. Which occasion
is hit is drawn from the actor's own random stream: the same seed hits the same ones.

Rates are shares of occasions between 0 and 1; durations are virtual time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any, Final, NewType

import msgspec

from tenure.errors import SpecError
from tenure.model.cloud.offering import OfferingKey

#: In ``cloud_dry``: any instance type, zone or capacity type.
ANY: Final = "*"

_NONE: Final = timedelta(0)

#: A span that may be negative.
Offset = NewType("Offset", timedelta)


class Faults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    # The Kubernetes API, as seen by its clients through a transport.
    #: Each request takes up to this much longer, drawn evenly.
    api_latency: timedelta = _NONE
    #: Share of requests that are answered 503 without being carried out.
    api_error_rate: float = 0.0
    #: Share of requests that are carried out although the answer is lost.
    api_lost_answer_rate: float = 0.0

    # The cloud's API.
    #: Each call takes up to this much longer, drawn evenly.
    cloud_latency: timedelta = _NONE
    #: Share of calls that are answered ``Throttled``.
    cloud_throttle_rate: float = 0.0
    #: Share of launches that fail for no stated reason (a plain ``ProviderError``).
    launch_failure_rate: float = 0.0
    #: Offerings that cannot be had: (instance type, zone, capacity type), ``*`` for any.
    cloud_dry: tuple[OfferingKey, ...] = ()
    #: Share of (launch, offering) pairs that turn out to be dry by chance.
    cloud_dry_rate: float = 0.0
    #: Not empty: every launch fails as ``Misconfigured``, with this sentence.
    node_class_broken: str = ""

    # Machines and their kubelets.
    #: Each boot takes up to this much longer, drawn evenly.
    boot_latency: timedelta = _NONE
    #: Share of instances that run but whose Node never appears.
    never_registers_rate: float = 0.0
    #: Share of nodes that register but never become Ready.
    never_ready_rate: float = 0.0
    #: Share of startup taints that are never removed.
    startup_taint_stuck_rate: float = 0.0
    #: Share of volumes that are never unmounted from a node that no longer needs them.
    volume_stuck_rate: float = 0.0
    #: A kubelet dies after this long on average (exponentially distributed); None = never.
    kubelet_dies_after_mean: timedelta | None = None
    #: Every kubelet dies this long after its node was to be Ready; None = never.
    kubelet_dies_after: timedelta | None = None

    #: Not empty: every kubelet refuses the pods of this app: they fail, with reason OutOfcpu.
    kubelet_refuses_app: str = ""

    # What others do to nodes and pods (``actors.nodes.otherprograms``).
    #: Not empty: an agent puts this taint, ``key=value:Effect``, on every Node, again and again.
    node_taint: str = ""
    #: Not empty: a controller deletes the pods of this app …
    pod_deleter_app: str = ""
    #: … so long after they have started.
    pod_deleter_after: timedelta = _NONE
    #: A webhook makes daemon pods ask for this share of their node's CPU.
    daemon_growth_share: float = 0.0
    #: Not empty: a webhook makes each new pod of this app …
    pod_growth_app: str = ""
    #: … ask for so many times the CPU of the one before.
    pod_growth: float = 2.0

    # The machine that Tenure runs on.
    #: How far its wall clock is ahead of the true time; behind it when negative.
    clock_offset: Offset = Offset(_NONE)

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if field.endswith("_rate") and not 0 <= value <= 1:
                raise SpecError(f"faults.{field}", value, "a share between 0 and 1", "E.g. 0.05.")
            if field != "clock_offset" and isinstance(value, timedelta) and value < _NONE:
                raise SpecError(f"faults.{field}", str(value), "a duration of at least 0")

    def is_dry(self, offering: OfferingKey) -> bool:
        return any(_matches(pattern, offering) for pattern in self.cloud_dry)


def _matches(pattern: Sequence[str], offering: OfferingKey) -> bool:
    return all(want in (ANY, have) for want, have in zip(pattern, offering, strict=True))


class FaultSwitch:
    """The faults in force now. One switch is shared by all actors of a cluster."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.current = faults or Faults()

    def set(self, **changes: Any) -> None:
        """Change some faults from now on; the others stay as they are."""
        self.current = msgspec.structs.replace(self.current, **changes)

    def clear(self) -> None:
        """From now on nothing goes wrong."""
        self.current = Faults()


def strikes(rate: float, random: Random) -> bool:
    """Whether this occasion is hit. A rate of 0 draws nothing: switched off means untouched."""
    return rate > 0 and random.random() < rate


def drawn(longest: timedelta, random: Random) -> timedelta:
    """Between nothing and ``longest``, evenly, in whole microseconds."""
    if not longest:
        return _NONE
    return timedelta(microseconds=random.randrange(longest // timedelta(microseconds=1) + 1))
