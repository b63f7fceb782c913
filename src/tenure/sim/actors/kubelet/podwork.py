"""What a kubelet knows of one pod beyond the API."""

from __future__ import annotations

import asyncio
from datetime import datetime

from tenure.sim.apiserver.objects.tree import Obj, dig


class PodWork:
    __slots__ = (
        "admitted_at",
        "done",
        "name",
        "namespace",
        "ready",
        "running",
        "stop_at",
        "timer",
        "uid",
    )

    def __init__(self, pod: Obj, now: datetime) -> None:
        metadata = pod["metadata"]
        self.namespace, self.name = metadata["namespace"], metadata["name"]
        self.uid = metadata["uid"]
        self.admitted_at = now
        self.running = dig(pod, "status", "phase") == "Running"
        self.ready = self.running
        self.stop_at: datetime | None = None
        self.done = False
        self.timer: asyncio.TimerHandle | None = None
