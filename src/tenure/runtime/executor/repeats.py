"""The same write again and again: another program undoes it, and neither would ever end.

A write of an object of the cluster that was accepted so many times within a minute waits until the first of these is a
minute old. A few are let pass at once: someone may have undone it by hand, or restored an old manifest. The names in the status of pods are not
counted: kube-scheduler removes them, and they matter for a second.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import msgspec

from tenure.core.decision import Action, Patch
from tenure.model.api.resource import PODS

#: Of one write within ``WINDOW`` seconds.
FREE: Final = 5
WINDOW: Final = 60.0

_encoder: Final = msgspec.json.Encoder(order="deterministic")


class Repeats:
    def __init__(self) -> None:
        #: By write: when it was accepted, the last few times.
        self._accepted: dict[bytes, deque[float]] = {}
        #: Those that wait, and were told of.
        self._told: set[bytes] = set()

    def accepted(self, action: Action, now: float) -> None:
        if (key := _key(action)) is not None:
            self._accepted.setdefault(key, deque(maxlen=FREE)).append(now)

    def wait_until(self, action: Action, now: float) -> float | None:
        """When the write may be sent again; None when it may now."""
        key = _key(action)
        times = self._accepted.get(key) if key is not None else None
        if times is None or len(times) < FREE or now >= times[0] + WINDOW:
            return None
        return times[0] + WINDOW

    def is_news(self, action: Action) -> bool:
        """Whether it waits for the first time since it was last sent freely."""
        key = _key(action)
        assert key is not None
        new = key not in self._told
        self._told.add(key)
        return new

    def forget_before(self, instant: float) -> None:
        for key in [key for key, times in self._accepted.items() if times[-1] < instant]:
            del self._accepted[key]
            self._told.discard(key)

    def __len__(self) -> int:
        return len(self._accepted)


def _key(action: Action) -> bytes | None:
    """The same for writes that say the same, whatever version they are for."""
    if not isinstance(action, Patch) or action.resource == PODS:
        return None
    body: dict[str, Any] = dict(action.body)
    metadata = {k: v for k, v in body.pop("metadata", {}).items() if k != "resourceVersion"}
    return _encoder.encode((str(action.resource), action.name, action.uid, metadata, body))
