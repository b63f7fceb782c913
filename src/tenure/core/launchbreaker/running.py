"""Since when pods of each owner run, kept over turns: only Nodes that something has changed of are read again.

It spares work and nothing else.
"""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime
from typing import Final

from tenure.core.launchbreaker.owners import namespace_of, owner_of
from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.snapshot import Snapshot


class RunningPods:
    def __init__(self) -> None:
        #: By Node and owner, and by owner and Node: when the first pod there started that runs.
        self._on_node: dict[str, dict[str, datetime]] = {}
        self._of_owner: dict[str, dict[str, datetime]] = {}
        #: Up to which change it has followed (``Touched``).
        self._number = -1

    def follow(self, snapshot: Snapshot) -> None:
        names, number = snapshot.touched_nodes(self._number)
        if names is None:  # Pods may be on Nodes that do not exist.
            names = [*{*self._on_node, *(pod.spec.node_name for pod in snapshot.pods.values())}]
        for name in names:
            self._read(name, snapshot)
        self._number = number

    def since(self, namespaces: Container[str]) -> dict[str, datetime]:
        """By owner, in these namespaces: since when a pod of it runs."""
        return {
            owner: min(nodes.values())
            for owner, nodes in self._of_owner.items()
            if namespace_of(owner) in namespaces
        }

    def _read(self, name: str, snapshot: Snapshot) -> None:
        found: dict[str, datetime] = {}
        for pod in snapshot.pods_on(name).values():
            started, owner = pod.status.start_time, snapshot.derived.of(_RUNNING, pod)
            if started is not None and owner:
                found[owner] = min(started, found.get(owner, started))
        for owner in self._on_node.pop(name, ()):
            del self._of_owner[owner][name]
            if not self._of_owner[owner]:
                del self._of_owner[owner]
        for owner, since in found.items():
            self._on_node.setdefault(name, {})[owner] = since
            self._of_owner.setdefault(owner, {})[name] = since


def running_since(snapshot: Snapshot, namespaces: Container[str]) -> dict[str, datetime]:
    """By owner, in these namespaces: since when a pod of it runs."""
    known: RunningPods = snapshot.derived.lasting.setdefault(RunningPods, RunningPods())
    known.follow(snapshot)
    return known.since(namespaces)


def _owner_if_running(pod: Pod) -> str:
    return owner_of(pod) if pod.active and pod.status.phase == "Running" else ""


_RUNNING: Final = Derivation("running", _owner_if_running)
