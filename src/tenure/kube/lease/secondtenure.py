"""Whether a Tenure runs in the other mode on the same cluster: one in charge, or one beside Karpenter.

The one in charge keeps windows and repairs nodes by itself, and takes back levers that it finds; there is no Karpenter
to accompany. So the one beside Karpenter stands back, and the one in charge says that the other runs. Each is known by
its Lease, which is watched as our own is: by our own clock, in every namespace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from tenure.errors import Forbidden, TenureError
from tenure.kube.client.client import Client
from tenure.kube.client.fence import Steady, boottime
from tenure.kube.lease.record import held_last_by_tenure, who_and_since
from tenure.kube.lease.renewals import Sightings
from tenure.kube.lease.store import list_leases
from tenure.model.api.workload import Lease
from tenure.model.settings import Settings, other_lease
from tenure.model.snapshot.unreadable import is_unreadable

#: How often the one in charge looks. It only says what it sees.
PERIOD: Final = timedelta(seconds=15)


class SecondTenure:
    def __init__(
        self,
        client: Client,
        settings: Settings,
        *,
        steady: Steady = boottime,
        warn: Callable[[str], None] = lambda _: None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client, self._steady = client, steady
        self._warn, self._say = warn, say
        self._beside = settings.beside_karpenter
        self._name = other_lease(settings)
        self._sightings = Sightings(settings.lease_duration)
        self._unseen = ""
        #: What it does there, in words; empty: there is none, as far as we know.
        self.sentence = ""

    async def look(self) -> str:
        """What is the case, in words; empty where no second Tenure runs.

        A role of an older release may not let us look: that is said once, and nothing waits for it.
        """
        asked_at = self._steady()
        try:
            leases = await list_leases(self._client, self._name)
        except Forbidden as error:
            self._say_once(f"whether a second Tenure runs is not known: {error}")
            leases = []
        self._sightings.note(leases, self._steady())
        found = self._sightings.renewed_outside("", asked_at)
        ours = [one for one in found if not is_unreadable(one) and held_last_by_tenure(one)]
        self.sentence = self._in_words(ours[0]) if ours else ""
        return self.sentence

    async def watch(self) -> None:
        """Until cancelled. A try that fails changes nothing."""
        while True:
            before = self.sentence
            try:
                now = await self.look()
            except TenureError:
                now = before  # The elector says what is wrong with Leases.
            if now != before:
                if now:
                    self._warn(now)
                else:
                    self._say(f"no second Tenure runs any more; before: {before}")
            await asyncio.sleep(PERIOD.total_seconds())

    def _in_words(self, lease: Lease) -> str:
        held = f"the Lease {lease.key} is held by {who_and_since(lease)}"
        if self._beside:
            return (
                f"{held}, a Tenure that is in charge of this cluster: there is no Karpenter to run beside; "
                "stop one of the two"
            )
        return (
            f"{held}, a Tenure beside Karpenter: it does not act while this one is in charge; "
            "stop one of the two"
        )

    def _say_once(self, sentence: str) -> None:
        if sentence != self._unseen:
            self._unseen = sentence
            self._warn(sentence)
