"""Which Leases are being renewed, told by our own clock.

What stands in a Lease was written by another replica's clock, which may be an hour off: only
*that* it changed tells us something, and *when we saw it*. A Lease with a holder counts as
renewed until we have watched it unchanged for as long as it holds; so does one that we
meet for the first time. A Lease that is deleted leaves a holder behind who does not know
yet: it counts as if it had been renewed just then.

In other namespaces tenants may write Leases, with any duration. None counts for longer than
``HELD_MAX`` after it was last seen to change, whatever it says, and whether or not it can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

import msgspec

from tenure.kube.lease.record import validity
from tenure.model.api.workload import Lease
from tenure.model.snapshot.unreadable import is_unreadable

#: No Lease holds for longer without a renewal: twenty times as long as Karpenter's and ours.
HELD_MAX: Final = timedelta(minutes=5)


class Sighting(msgspec.Struct, frozen=True):
    lease: Lease
    #: Seconds on the steady clock: since when it has looked like this.
    since: float
    #: It is not there any more.
    gone: bool = False


class Sightings:
    """The Leases of one name, by namespace."""

    def __init__(self, fallback: timedelta) -> None:
        self._fallback = fallback
        #: Replicas of ours may have been told a longer duration.
        self._longest = max(HELD_MAX, 3 * fallback)
        self._seen: dict[str, Sighting] = {}

    def note(self, leases: Iterable[Lease], now: float) -> None:
        """All that there are, as of ``now``."""
        seen = {lease.namespace: self._sighting(lease, now) for lease in leases}
        for namespace, old in self._seen.items():
            if namespace not in seen:
                gone = old if old.gone else Sighting(old.lease, now, gone=True)
                if self.is_renewed(gone, now):
                    seen[namespace] = gone
        self._seen = seen

    def _sighting(self, lease: Lease, now: float) -> Sighting:
        old = self._seen.get(lease.namespace)
        unchanged = old is not None and not old.gone and _looks_like(old.lease, lease)
        return Sighting(lease, old.since if old is not None and unchanged else now)

    def find(self, namespace: str) -> Sighting | None:
        return self._seen.get(namespace)

    def renewed_outside(self, namespace: str, asked_at: float) -> Iterator[Lease]:
        """Those of other namespaces that are being renewed, in the order of their names."""
        for other, sighting in sorted(self._seen.items()):
            if other != namespace and self.is_renewed(sighting, asked_at):
                yield sighting.lease

    def is_renewed(self, sighting: Sighting, asked_at: float) -> bool:
        """``asked_at``: when the last look began, so that a pause after it makes nothing older."""
        lease = sighting.lease
        unreadable = is_unreadable(lease)  # Then its holder and its duration are unknown.
        if not unreadable and not lease.spec.holder_identity:
            return False
        holds = self._longest if unreadable else min(validity(lease, self._fallback), self._longest)
        return asked_at <= sighting.since + holds.total_seconds()


def _looks_like(old: Lease, new: Lease) -> bool:
    if is_unreadable(old) or is_unreadable(new):
        return old.metadata.resource_version == new.metadata.resource_version
    return old.spec == new.spec
