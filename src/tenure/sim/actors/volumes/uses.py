"""Which pods use which claims, kept from the store's events.

A pod uses the claims that its volumes name, and for each ephemeral volume the claim that is made
for it. It uses them from the moment it exists until it is finished or gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tenure.model.api.resource import PERSISTENT_VOLUME_CLAIMS, PODS
from tenure.sim.actors.workloads.podtemplate import owner_reference
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED

_FINISHED: Final = ("Succeeded", "Failed")
#: Namespace and name.
ClaimKey = tuple[str, str]


class ClaimUses:
    def __init__(self, store: Store, used: Callable[[ClaimKey], object]) -> None:
        """``used`` is called whenever the pods of a claim change."""
        self._store = store
        self._used = used
        self._pods: dict[ClaimKey, dict[str, Obj]] = {}
        store.subscribe(PODS, self._on_pod, replay=True)

    def of(self, claim: ClaimKey) -> list[Obj]:
        """The unfinished pods that use the claim, in the order in which they came."""
        return list(self._pods.get(claim, {}).values())

    def on(self, node: str) -> list[ClaimKey]:
        """The claims whose pods are bound to that node."""
        return [
            claim
            for claim, pods in self._pods.items()
            if any(_node(pod) == node for pod in pods.values())
        ]

    def _on_pod(self, type_: str, pod: Obj, old: Obj | None) -> None:
        if "volumes" not in pod["spec"]:
            return  # Nearly every pod of nearly every story.
        for claim in claims_of(pod):
            if type_ != DELETED and old is None:
                self._claim_ephemeral(pod, claim)
            if self._put(claim, pod, using=type_ != DELETED and _uses(pod)):
                self._used(claim)

    def _put(self, claim: ClaimKey, pod: Obj, *, using: bool) -> bool:
        """Take the pod's new state; whether that changes any use."""
        pods, uid = self._pods.setdefault(claim, {}), pod["metadata"]["uid"]
        before = pods.pop(uid, None)
        if using:
            pods[uid] = pod
        elif not pods:
            del self._pods[claim]
        return (before is not None) != using or _node(before) != _node(pod)

    def _claim_ephemeral(self, pod: Obj, claim: ClaimKey) -> None:
        """The claim of an ephemeral volume is the pod's own, and goes with it."""
        namespace, name = claim
        template = _templates(pod).get(name)
        if template is None or self._store.find(PERSISTENT_VOLUME_CLAIMS, *claim) is not None:
            return
        given = template.get("metadata") or {}
        metadata = {"name": name, "namespace": namespace}
        metadata |= {key: given[key] for key in ("labels", "annotations") if given.get(key)}
        owner = owner_reference(pod, PODS)
        claim_object = {"metadata": {**metadata, "ownerReferences": [owner]}}
        self._store.create(PERSISTENT_VOLUME_CLAIMS, {**claim_object, "spec": template["spec"]})


def claims_of(pod: Obj) -> list[ClaimKey]:
    """The claims that the pod's volumes stand for."""
    namespace = pod["metadata"]["namespace"]
    volumes = pod["spec"].get("volumes") or ()
    named = [dig(volume, "persistentVolumeClaim", "claimName") for volume in volumes]
    return [(namespace, name) for name in (*named, *_templates(pod)) if name]


def _templates(pod: Obj) -> dict[str, Obj]:
    """The claim templates of its ephemeral volumes, by the name that the claim gets."""
    found = {
        f"{pod['metadata']['name']}-{volume['name']}": dig(
            volume, "ephemeral", "volumeClaimTemplate"
        )
        for volume in pod["spec"].get("volumes") or ()
    }
    return {name: template for name, template in found.items() if template}


def _uses(pod: Obj) -> bool:
    return dig(pod, "status", "phase") not in _FINISHED


def _node(pod: Obj | None) -> str:
    return dig(pod, "spec", "nodeName") or ""
