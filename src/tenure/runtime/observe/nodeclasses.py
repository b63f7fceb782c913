"""Node classes: the instance types of each, classes the cloud cannot use, offerings sold out."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Subject
from tenure.model.api.meta import find_condition
from tenure.model.api.nodeclass import NodeClass
from tenure.model.cloud.offering import InstanceType, OfferingKey
from tenure.model.snapshot.observations import ClassRefusal
from tenure.runtime.observe.noted import Noted, move_all, moved

#: How long a node class that the cloud cannot use is left alone if it does not change.
UNUSABLE_MIN: Final = timedelta(minutes=1)
UNUSABLE_MAX: Final = timedelta(minutes=30)


class _Unusable(msgspec.Struct, frozen=True):
    state: str
    pause: timedelta
    refusal: ClassRefusal


def state_of(node_class: NodeClass | None) -> str:
    """What the cloud evaluates a class by: its spec, and whether it is Ready."""
    if node_class is None:
        return ""
    ready = find_condition(node_class.status.conditions, "Ready")
    return f"{node_class.metadata.generation} {ready.status if ready is not None else ''}"


class NodeClassObservations:
    """By node class key ``Kind/name``."""

    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self.instance_types: dict[str, tuple[InstanceType, ...]] = {}
        #: Until when an offering counts as sold out.
        self.dry_offerings: dict[OfferingKey, datetime] = {}
        self._unusable: dict[str, _Unusable] = {}

    @property
    def refusals(self) -> dict[str, ClassRefusal]:
        return {key: known.refusal for key, known in self._unusable.items()}

    def sold_out(self, offerings: Iterable[OfferingKey], until: datetime) -> None:
        for offering in offerings:
            self.dry_offerings[offering] = until

    def forget_dry(self, now: datetime) -> None:
        for key in [key for key, until in self.dry_offerings.items() if until <= now]:
            del self.dry_offerings[key]

    def misconfigured(self, node_class: str, state: str, now: datetime, message: str) -> None:
        """The cloud cannot use the class as it is: without its types nothing is planned on it.

        ``state``: of ``state_of``.
        """
        last = self._unusable.get(node_class)
        pause = min(last.pause * 2, UNUSABLE_MAX) if last else UNUSABLE_MIN
        if last is None or now >= last.refusal.until or state != last.state:
            refusal = ClassRefusal(message=message, at=now, until=now + pause)
            self._unusable[node_class] = _Unusable(state, pause, refusal)
        if self.instance_types.pop(node_class, None) is not None:
            self._note(node_class)

    def usable(self, node_class: str) -> None:
        self._unusable.pop(node_class, None)

    def unusable_until(self, node_class: str, state: str) -> datetime | None:
        """None when nothing is known against the class as it is now."""
        known = self._unusable.get(node_class)
        return known.refusal.until if known and known.state == state else None

    def types_known(self, node_class: str, types: tuple[InstanceType, ...]) -> None:
        if node_class not in self.instance_types or self.instance_types[node_class] != types:
            self.instance_types[node_class] = types
            self._note(node_class)

    def types_unknown(self, node_class: str) -> None:
        """The cloud did not answer; its last answer still counts."""
        if node_class not in self.instance_types:
            self.types_known(node_class, ())

    def forget_others(self, node_classes: Collection[str]) -> None:
        """Only these node classes are still in use."""
        for known in [known for known in self._unusable if known not in node_classes]:
            del self._unusable[known]
        for known in [known for known in self.instance_types if known not in node_classes]:
            del self.instance_types[known]
            self._note(known)

    def clock_stepped(self, step: timedelta) -> None:
        move_all(self.dry_offerings, step)
        for key, unusable in self._unusable.items():
            refusal = moved(unusable.refusal, step)
            self._unusable[key] = msgspec.structs.replace(unusable, refusal=refusal)

    def _note(self, node_class: str) -> None:
        self._noted.note(Subject("NodeClass", node_class))
