"""The same write again and again: another program undoes it, and neither would ever end.

A write of an object of the cluster that was accepted so many times within a minute waits until the first of these is a
minute old. A few are let pass at once: someone may have undone it by hand, or restored an old manifest.

The names in the status of pods matter for a second, and kube-scheduler removes one each time that it tries the pod in vain: ten of them within
ten seconds are let pass at once, then one a second.
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

#: Of one write of a pod, the same; and from then on, the seconds between two of them.
PODS_FREE: Final = 10
PODS_WINDOW: Final = 10.0
PODS_GAP: Final = 1.0

_encoder: Final = msgspec.json.Encoder(order="deterministic")


class Repeats:
    def __init__(self) -> None:
        #: By write: when it was accepted, the last few times.
        self._accepted: dict[bytes, deque[float]] = {}
        #: Those that wait, and were told of.
        self._told: set[bytes] = set()

    def accepted(self, action: Action, now: float) -> None:
        if (key := _key(action)) is not None:
            free = PODS_FREE if _is_of_pod(action) else FREE
            self._accepted.setdefault(key, deque(maxlen=free)).append(now)

    def wait_until(self, action: Action, now: float) -> float | None:
        """When the write may be sent again; None when it may now."""
        key = _key(action)
        times = self._accepted.get(key) if key is not None else None
        if times is None or len(times) < (times.maxlen or 0):
            return None
        if _is_of_pod(action):
            within, until = times[0] + PODS_WINDOW, times[-1] + PODS_GAP
        else:
            within = until = times[0] + WINDOW
        return until if now < min(within, until) else None

    def is_news(self, action: Action) -> bool:
        """Whether it waits for the first time since it was last sent freely. Of a pod it never is: kube-scheduler is no stranger."""
        if _is_of_pod(action):
            return False
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


def _is_of_pod(action: Action) -> bool:
    return isinstance(action, Patch) and action.resource == PODS


def _key(action: Action) -> bytes | None:
    """The same for writes that say the same, whatever version they are for."""
    if not isinstance(action, Patch):
        return None
    body: dict[str, Any] = dict(action.body)
    metadata = {k: v for k, v in body.pop("metadata", {}).items() if k != "resourceVersion"}
    return _encoder.encode((str(action.resource), action.name, action.uid, metadata, body))
