"""Which pods really run on which machine, whatever the API says; and names that ran twice.

A pod object that is force deleted leaves its containers behind: a living kubelet stops them
within the pod's grace, a silent one keeps them running until it is back or its machine is switched
off. If a pod of the same name starts meanwhile, as a StatefulSet's does, two copies of it run: what
no drain may ever cause. A real cluster does not report it; here it is recorded.
"""

from __future__ import annotations

from datetime import datetime

import msgspec


class Twice(msgspec.Struct, frozen=True):
    """A pod that started while an older copy of the same name was still running."""

    at: datetime
    #: Namespace and name.
    pod: str
    node: str
    older_on: str


class _Copy(msgspec.Struct, frozen=True):
    pod: str
    uid: str
    node: str


class Copies:
    def __init__(self) -> None:
        self._by_uid: dict[str, _Copy] = {}
        self._by_pod: dict[str, dict[str, _Copy]] = {}
        #: In the order in which it happened.
        self.twice: list[Twice] = []

    def start(self, pod: str, uid: str, node: str, now: datetime) -> None:
        if uid in self._by_uid:
            return
        others = self._by_pod.setdefault(pod, {})
        self.twice += [Twice(now, pod, node, older.node) for older in others.values()]
        self._by_uid[uid] = others[uid] = _Copy(pod, uid, node)

    def end(self, uid: str) -> None:
        copy = self._by_uid.pop(uid, None)
        if copy is None:
            return
        left = self._by_pod[copy.pod]
        del left[uid]
        if not left:
            del self._by_pod[copy.pod]

    def on(self, node: str) -> list[str]:
        """The UIDs of the pods that run on that machine."""
        return [uid for uid, copy in self._by_uid.items() if copy.node == node]
