"""What may happen in a scenario, verb by verb: small values that know how to be done.

``crash`` is special only in that time must stand still for it, which it does between
two instants.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Protocol

import msgspec

from tenure.model.api import resource as r
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.scenario.context import Gone, Missing, ScenarioContext, span
from tenure.sim.scenario.targets import ALL, Target
from tenure.sim.virtual.faults import Faults

_NONE: Final = timedelta(0)


class StepAction(Protocol):
    """Something that happens."""

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        """Do it; return whom it was about and what was done, for the history."""
        ...


class Apply(msgspec.Struct, frozen=True):
    manifests: tuple[Obj, ...]

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        for manifest in self.manifests:
            apply(context, manifest)
        named = [subject_of(manifest) for manifest in self.manifests]
        return named[0] if len(named) == 1 else "Script", f"applied {', '.join(named)}"


def apply(context: ScenarioContext, manifest: Obj) -> None:
    """Apply a manifest; a Node that the scenario creates gets a kubelet."""
    obj = context.world.apply(manifest)
    name = obj["metadata"]["name"]
    if obj["kind"] == r.NODES.kind and not context.world.kubelets.is_alive(name):
        context.world.kubelets.adopt(name)


class Delete(msgspec.Struct, frozen=True):
    target: Target

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        obj = context.found(self.target)
        metadata = obj["metadata"]
        # As kubectl asks for it: what depends on the object goes with it.
        context.store.delete(
            self.target.resource,
            metadata.get("namespace", ""),
            metadata["name"],
            propagation_policy="Background",
        )
        return subject_of(obj), f"deleted {self.target}"


class Patch(msgspec.Struct, frozen=True):
    target: Target
    merge: Obj

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        obj = context.found(self.target)
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "")
        context.store.patch(self.target.resource, namespace, metadata["name"], self.merge)
        return subject_of(obj), f"changed {', '.join(self.merge)} of {self.target}"


class Scale(msgspec.Struct, frozen=True):
    target: Target
    replicas: int

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        obj = context.found(self.target)
        before = obj["spec"].get("replicas", 1)
        Patch(self.target, {"spec": {"replicas": self.replicas}}).do(context)
        return subject_of(obj), f"scaled from {before} to {self.replicas}"


class Cordon(msgspec.Struct, frozen=True):
    target: Target
    closed: bool

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        obj = context.found(self.target)
        Patch(self.target, {"spec": {"unschedulable": self.closed or None}}).do(context)
        return subject_of(obj), "closed for new pods" if self.closed else "open for new pods again"


class SetCondition(msgspec.Struct, frozen=True):
    target: Target
    type: str
    status: str
    reason: str
    message: str

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        node = _living(context, self.target)
        context.world.kubelets.set_condition(
            node["metadata"]["name"], self.type, self.status, self.reason, self.message
        )
        return subject_of(
            node
        ), f"its kubelet says {self.type}={self.status} {self.reason}".rstrip()


class Kubelet(msgspec.Struct, frozen=True):
    target: Target
    verb: str
    down_for: timedelta = _NONE

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        kubelets = context.world.kubelets
        if self.verb == "reboot":
            node = _living(context, self.target)
            kubelets.reboot(node["metadata"]["name"], self.down_for)
            return subject_of(node), f"reboots, down for {span(self.down_for)}"
        nodes = self.target.find_all(context.store) or [context.found(self.target)]
        tell = kubelets.silence if self.verb == "silence" else kubelets.resume
        for node in nodes:
            tell(node["metadata"]["name"])
        said = "falls silent" if self.verb == "silence" else "is back"
        if self.target.pick == ALL:
            return "Script", f"the kubelet of {self.target} {said}: {len(nodes)}"
        return subject_of(nodes[0]), f"its kubelet {said}"


class Volumes(msgspec.Struct, frozen=True):
    target: Target
    stuck: bool

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        node = context.found(self.target)
        attachments = context.world.infrastructure.storage.attachments
        if self.stuck:
            attachments.stick(node["metadata"]["name"])
            return subject_of(node), "no volume can be unmounted from it"
        attachments.unstick(node["metadata"]["name"])
        return subject_of(node), "volumes can be unmounted from it again"


class Vanish(msgspec.Struct, frozen=True):
    target: Target

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        obj, provider_id = _instance(context, self.target, "vanish")
        context.world.cloud.vanish(provider_id)
        return subject_of(obj), f"its instance {provider_id} is lost"


class RecommendRebalance(msgspec.Struct, frozen=True):
    target: Target

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        obj, provider_id = _instance(context, self.target, "be recommended to leave")
        context.world.cloud.recommend_rebalance(provider_id)
        return subject_of(obj), f"the cloud recommends to leave its instance {provider_id}"


class Interrupt(msgspec.Struct, frozen=True):
    target: Target
    grace: timedelta
    #: Whether the notice says when.
    dated: bool

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        obj, provider_id = _instance(context, self.target, "be interrupted")
        context.world.cloud.interrupt(provider_id, self.grace, dated=self.dated)
        said = f"the cloud takes back its instance {provider_id} in {span(self.grace)}"
        return subject_of(obj), said if self.dated else f"{said}, and does not say when"


class ReleaseImage(msgspec.Struct, frozen=True):
    #: Empty: the next version.
    image: str

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        image = context.world.cloud.release_image(self.image)
        return "Cloud", f"released image {image}"


class ZoneOutage(msgspec.Struct, frozen=True):
    zone: str
    #: None: until the end of the run.
    lasts: timedelta | None
    refuses_launches: bool

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        context.world.infrastructure.outages.begin(
            self.zone, refuses_launches=self.refuses_launches
        )
        until = f", for {span(self.lasts)}" if self.lasts else ""
        launches = "are refused" if self.refuses_launches else "do not become nodes"
        said = f"is cut off{until}: its kubelets are silent, and launches there {launches}"
        return f"Zone/{self.zone}", said


class EndOutage(msgspec.Struct, frozen=True):
    """Not a verb of its own: the other half of an outage."""

    outage: ZoneOutage

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        zone = self.outage.zone
        context.world.infrastructure.outages.end(
            zone, refuses_launches=self.outage.refuses_launches
        )
        still = context.world.infrastructure.outages.is_out(zone)
        return f"Zone/{zone}", "is still cut off by another outage" if still else "is back"


class SetFaults(msgspec.Struct, frozen=True):
    faults: Faults

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        context.world.infrastructure.faults.current = self.faults
        wrong = [
            name.replace("_", "-")
            for name, value in msgspec.structs.asdict(self.faults).items()
            if value != getattr(Faults(), name)
        ]
        return (
            "Faults",
            f"from now on: {', '.join(wrong)}" if wrong else "nothing is wrong any more",
        )


class Crash(msgspec.Struct, frozen=True):
    down_for: timedelta

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        context.world.crash(stay_down=self.down_for > _NONE)
        if self.down_for > _NONE:
            return "Tenure", f"killed, started again after {span(self.down_for)}"
        return "Tenure", "killed and started again"


class Start(msgspec.Struct, frozen=True):
    """Not a verb of its own: the other half of a crash that lasts."""

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        context.world.start()
        return "Tenure", "started again"


class ApiRestart(msgspec.Struct, frozen=True):
    def do(self, context: ScenarioContext) -> tuple[str, str]:
        context.store.compact()
        context.store.end_watches()
        return "API", "restarted: watches end, and what they knew is too old"


class Say(msgspec.Struct, frozen=True):
    text: str

    def do(self, context: ScenarioContext) -> tuple[str, str]:
        return "Story", self.text


def _instance(context: ScenarioContext, target: Target, could: str) -> tuple[Obj, str]:
    """The object, and the provider id of its instance."""
    obj = context.found(target)
    field = "spec" if target.resource == r.NODES else "status"
    provider_id = dig(obj, field, "providerID") or ""
    if all(provider_id != one.provider_id for one in context.world.cloud.instances()):
        # Launching, or terminated: a moment earlier or later there is one.
        raise Gone(f"{target} has no instance that could {could}")
    return obj, provider_id


def _living(context: ScenarioContext, target: Target) -> Obj:
    node = context.found(target)
    name = node["metadata"]["name"]
    if not context.world.kubelets.is_there(name):
        raise Gone(f"the instance of {target} is gone, and its kubelet with it")
    if not context.world.kubelets.is_alive(name):
        raise Missing(f"the kubelet of {target} is silent and cannot report; resume it first")
    return node


def subject_of(obj: Obj) -> str:
    """As the history names it."""
    metadata = obj["metadata"]
    parts = (obj["kind"], metadata.get("namespace", ""), metadata.get("name", ""))
    return "/".join(part for part in parts if part)
