"""Agents that take a startup taint away once they are at work on a node.

A network or storage agent makes a new node wait by a taint, and removes that taint itself.
Here each agent is one taint key and the time it needs on a Ready node. A taint that comes
back is taken away again; a key without an agent stays for ever, as on a real cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from tenure.model.api.resource import NODES
from tenure.sim.actors.nodestatus import READY, status_of
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.faults import FaultSwitch, strikes


class StartupAgents:
    def __init__(
        self,
        environment: Environment,
        store: Store,
        agents: Mapping[str, timedelta],
        *,
        faults: FaultSwitch | None = None,
    ) -> None:
        """``agents``: taint key → how long the agent needs on a Ready node."""
        self._environment, self._store = environment, store
        self._agents = dict(agents)
        self._faults = faults or FaultSwitch()
        self._random = environment.random_for("startup-agents")
        #: (node UID, taint key) pairs that an agent works on, or is stuck with.
        self._busy: set[tuple[str, str]] = set()
        if self._agents:
            store.subscribe(NODES, self._on_node, replay=True)

    def _on_node(self, type_: str, node: Obj, _old: Obj | None) -> None:
        if type_ == DELETED or status_of(node, READY) != "True":
            return
        for taint in node["spec"].get("taints", ()):
            job = (node["metadata"]["uid"], taint["key"])
            if taint["key"] not in self._agents or job in self._busy:
                continue
            self._busy.add(job)
            if not strikes(self._faults.current.startup_taint_stuck_rate, self._random):
                name = node["metadata"]["name"]
                self._environment.after(self._agents[taint["key"]], self._finish, name, job)

    def _finish(self, name: str, job: tuple[str, str]) -> None:
        self._busy.discard(job)
        node = self._store.find(NODES, "", name)
        if node is None or node["metadata"]["uid"] != job[0]:
            return
        taints = [taint for taint in node["spec"].get("taints", ()) if taint["key"] != job[1]]
        self._store.patch(NODES, "", name, {"spec": {"taints": taints or None}})
