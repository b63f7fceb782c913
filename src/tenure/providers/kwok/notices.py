"""Notices that users give by hand: a label on the Node of an instance.

There is nothing behind a Node of kwok, so nothing takes it back. To try what Tenure does then, a user
labels the Node; the label is taken off when the notice is acknowledged:

=================  =========================================================================
value              announces
=================  =========================================================================
``rebalance``      a recommendation to leave the instance
``interrupt``      that the instance is taken back, without saying when
``interrupt-2m``   that it is taken back in two minutes; any Go duration
=================  =========================================================================

A label can be selected by, so looking for it is cheap however many Nodes there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Final

from tenure.errors import NotFound, ProviderError, SpecError, shown
from tenure.model.api.meta import later
from tenure.model.api.resource import NODES
from tenure.model.cloud.notice import Notice, NoticeKind
from tenure.model.values.duration import parse_duration
from tenure.ports.provider import Surroundings
from tenure.providers.kwok import labels as kwok
from tenure.providers.kwok.instances import KwokInstance, read_instance

#: How soon a label is seen.
LOOK_PERIOD: Final = timedelta(seconds=2)
REBALANCE: Final = "rebalance"
INTERRUPT: Final = "interrupt"
_EXPECTED: Final = f"{REBALANCE}, {INTERRUPT} or {INTERRUPT}- and a Go duration such as 2m"


class LabelNotices:
    def __init__(self, surroundings: Surroundings) -> None:
        self._api, self._clock = surroundings.api, surroundings.clock
        self._report = surroundings.report

    async def stream(self, cluster: str) -> AsyncIterator[Notice]:
        announced: set[str] = set()
        while True:
            labelled = {_receipt(one): one for one in await self._labelled(cluster)}
            announced &= labelled.keys()
            for receipt, instance in labelled.items():
                if receipt not in announced:
                    announced.add(receipt)
                    if (notice := self._read(instance, receipt)) is not None:
                        yield notice
            await asyncio.sleep(LOOK_PERIOD.total_seconds())

    async def acknowledge(self, notice: Notice) -> None:
        """Takes the label off, if the Node still has it."""
        name = notice.receipt.partition(" ")[0]
        try:
            instance = read_instance(await self._api.get(NODES, name))
            if instance is None or _receipt(instance) != notice.receipt:
                return
            meta = {"uid": instance.uid, "resourceVersion": instance.metadata.resource_version}
            body = {"metadata": {**meta, "labels": {kwok.NOTICE: None}}}
            await self._api.patch(NODES, name, body)
        except NotFound:
            pass

    async def _labelled(self, cluster: str) -> list[KwokInstance]:
        items, _ = await self._api.list_all(NODES, label_selector=kwok.NOTICE)
        found = [one for one in map(read_instance, items) if one is not None]
        return [one for one in found if one.is_of(cluster) and not one.terminated]

    def _read(self, instance: KwokInstance, receipt: str) -> Notice | None:
        value, now = instance.labels[kwok.NOTICE], self._clock.now()
        try:
            kind, deadline = parse_notice(value, now)
        except SpecError as error:
            what = f"label {kwok.NOTICE} of Node {instance.name}"
            self._report(ProviderError(f"{what}: got {shown(value)!r}, expected {error.expected}"))
            return None
        return Notice(
            kind=kind,
            provider_id=instance.spec.provider_id,
            at=now,
            deadline=deadline,
            receipt=receipt,
        )


def parse_notice(value: str, now: datetime) -> tuple[NoticeKind, datetime | None]:
    """What a label announces, and the instant that it says. Raises ``SpecError``."""
    if value == REBALANCE:
        return NoticeKind.REBALANCE, None
    verb, dash, span = value.partition("-")
    if verb != INTERRUPT or (dash and not span):
        raise SpecError(kwok.NOTICE, value, _EXPECTED)
    if not dash:
        return NoticeKind.INTERRUPTION, None
    try:
        return NoticeKind.INTERRUPTION, later(now, parse_duration(span).timedelta)
    except (SpecError, OverflowError) as error:
        raise SpecError(kwok.NOTICE, value, _EXPECTED) from error


def _receipt(instance: KwokInstance) -> str:
    return f"{instance.name} {instance.uid} {instance.labels.get(kwok.NOTICE, '')}"
