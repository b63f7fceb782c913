"""When the pods that need new nodes are acted upon: together, not one after the other.

A batch begins with its first pod after the last decision that needs a new node, and closes a
quiet second after the last pod that came, ten seconds after its beginning at the latest. A pod that
fits a node in service does not count; one that fits a node on its way does: it is of the same
stream. Pods that a decision left without a node, or whose claim has failed since, belong to the
next batch, which then begins with the decision.

The age of the oldest pod would not do: while pods keep arriving some pod is always older than
ten seconds, and every look would act on what came in since the last one, each time with nodes
of its own.

While pods are still arriving (``arriving_until``), one node more costs a multiple of its fee: the
next pods use what a larger node has left. Otherwise each batch gets nodes that fit it exactly, and
a stream of pods gets the more and the smaller nodes the slower it flows.

When the last decision was is an observation. After a restart it is not known, and a batch that is
old by its pods' own word is acted upon at once: one decision early, no pod twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.provision.demand import Demand
from tenure.model.api.meta import earlier, later
from tenure.model.settings import Settings

#: The API cuts instants down to whole seconds: something has happened up to this much later.
CUT_OFF: Final = timedelta(seconds=1)

#: So many times its fee a node costs while pods are still arriving.
ARRIVING_FEE: Final = 4


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that wait, by what has to be done about them."""

    #: Need a new node.
    needing: Sequence[Demand] = ()
    #: Fit nodes on their way.
    coming: Sequence[Demand] = ()
    #: When the cloud last said that it has run out of something.
    sold_out_at: datetime | None = None

    def closes_at(self, decided_at: datetime | None, settings: Settings) -> datetime | None:
        """When the pods that need new nodes get them; None when there are none."""
        if not self.needing:
            return None
        first = min(map(came_at, self.needing))
        last = max(first, *map(came_at, self.needing), *map(came_at, self.coming))
        if decided_at is not None and first < (next_at := later(decided_at, settings.batch_max)):
            if self.sold_out_at is None or self.sold_out_at <= decided_at:
                return next_at
            return min(later(max(last, self.sold_out_at), settings.batch_idle), next_at)
        # By its own word, the last pod may have come at the end of the second that it names.
        return min(later(last, CUT_OFF + settings.batch_idle), later(first, settings.batch_max))


def arriving_until(demands: Iterable[Demand], settings: Settings) -> datetime | None:
    """Until when a next pod is to be expected; None where we saw no pod arrive."""
    came = [came_at(demand) for demand in demands if demand.seen_at is not None]
    return later(max(came), CUT_OFF + settings.batch_idle) if came else None


def came_at(demand: Demand) -> datetime:
    """By its own word, unless a watch told us later: pods that we see together share nodes, too."""
    seen_at = demand.seen_at
    return demand.since if seen_at is None else max(demand.since, earlier(seen_at, CUT_OFF))
