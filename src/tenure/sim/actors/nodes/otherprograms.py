"""What others in a cluster do to nodes and pods, so that a node launched for a pod is no use to it.

Each is switched on by a fault, and each is a program that real clusters run:

* an agent that taints every Node, and puts its taint back when it is taken off;
* a controller that deletes the pods of an app a while after they have started;
* an admission webhook that gives daemon pods a share of the node that they are for, whatever their
  template says;
* an admission webhook that gives each new pod of an app more than the one before, as a vertical
  autoscaler does.
"""

from __future__ import annotations

from tenure.errors import ApiError
from tenure.model.api.resource import NODES, PODS
from tenure.model.values.quantity import format_quantity, parse_quantity
from tenure.sim.actors.workloads.daemonpods import target_node
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.faults import FaultSwitch


class OtherPrograms:
    def __init__(self, environment: Environment, store: Store, faults: FaultSwitch) -> None:
        self._environment, self._store, self._faults = environment, store, faults
        #: UIDs of pods that a deletion is due for.
        self._doomed: set[str] = set()
        store.subscribe(NODES, self._on_node, replay=True)
        store.subscribe(PODS, self._on_pod, replay=True)
        #: How many pods of the app that grows were created.
        self._created = 0
        store.gate.webhooks += (self._grown, self._larger)

    def _on_node(self, type_: str, node: Obj, _old: Obj | None) -> None:
        if type_ != DELETED and (taint := _taint(self._faults.current.node_taint)):
            self._environment.soon(self._put_taint, node["metadata"]["name"], taint)

    def _put_taint(self, name: str, taint: Obj) -> None:
        node = self._store.find(NODES, "", name)
        if node is None or "deletionTimestamp" in node["metadata"]:
            return
        taints = node["spec"].get("taints") or []
        if not any((t["key"], t["effect"]) == (taint["key"], taint["effect"]) for t in taints):
            self._store.patch(NODES, "", name, {"spec": {"taints": [*taints, taint]}})

    def _on_pod(self, type_: str, pod: Obj, _old: Obj | None) -> None:
        faults, uid = self._faults.current, pod["metadata"]["uid"]
        if type_ == DELETED:
            self._doomed.discard(uid)
            return
        app = dig(pod, "metadata", "labels", "app")
        if not faults.pod_deleter_app or app != faults.pod_deleter_app or uid in self._doomed:
            return
        if dig(pod, "status", "phase") == "Running":
            self._doomed.add(uid)
            self._environment.after(faults.pod_deleter_after, self._delete, pod)

    def _delete(self, pod: Obj) -> None:
        meta = pod["metadata"]
        try:
            self._store.delete(PODS, meta["namespace"], meta["name"], uid=meta["uid"])
        except ApiError:
            return  # It has gone already.

    def _grown(self, pod: Obj) -> Obj:
        share = self._faults.current.daemon_growth_share
        node = self._store.find(NODES, "", target_node(pod)) if share else None
        cpu = dig(node, "status", "allocatable", "cpu")
        if not cpu:
            return pod
        return _asking_for(pod, int(parse_quantity(cpu) * share))

    def _larger(self, pod: Obj) -> Obj:
        faults = self._faults.current
        app = dig(pod, "metadata", "labels", "app")
        cpu = dig(pod["spec"]["containers"][0], "resources", "requests", "cpu")
        if not faults.pod_growth_app or app != faults.pod_growth_app or not cpu:
            return pod
        times = faults.pod_growth**self._created
        self._created += 1
        return _asking_for(pod, int(parse_quantity(cpu) * times))


def _asking_for(pod: Obj, cpu: int) -> Obj:
    """The pod with that much CPU for its first container, in nano-units."""
    first, *others = pod["spec"]["containers"]
    resources = first.get("resources") or {}
    requests = {**(resources.get("requests") or {}), "cpu": format_quantity(cpu)}
    grown = {**first, "resources": {**resources, "requests": requests}}
    return {**pod, "spec": {**pod["spec"], "containers": [grown, *others]}}


def _taint(text: str) -> Obj | None:
    """``key=value:Effect``, the value may be left out."""
    if not text:
        return None
    key, _, effect = text.rpartition(":")
    key, _, value = key.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}
