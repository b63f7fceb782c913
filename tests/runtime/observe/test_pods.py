"""What is seen of pods that wait for a node, or were just created."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from tenure.model.api.meta import OwnerReference
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS
from tenure.model.snapshot.snapshot import Change
from tenure.runtime.observe.pods import CREATORS_MAX, PodObservations
from tenure.runtime.observe.store import ObservationStore
from tests.core.build import NOW, a_pod


def created_by(uid: str, *, node: str = "") -> Pod:
    pod = a_pod(node=node, phase="Pending")
    owner = OwnerReference(kind="ReplicaSet", name=uid, uid=uid, controller=True)
    metadata = msgspec.structs.replace(pod.metadata, owner_references=(owner,))
    return msgspec.structs.replace(pod, metadata=metadata)


def observed() -> PodObservations:
    return ObservationStore().pods


def came(pod: Pod, old: Pod | None = None) -> Change:
    return Change(PODS, pod.key, old, pod)


def test_a_controller_was_last_seen_to_create_a_pod_that_is_not_bound() -> None:
    pods = observed()
    pods.see_waiting([came(created_by("web"))], NOW)
    pods.see_waiting([came(created_by("api", node="node-a"))], NOW)
    later = NOW + timedelta(seconds=5)
    pods.see_waiting([came(created_by("web"), old=created_by("web"))], later)
    assert pods.created_seen == {"web": NOW}


def test_controllers_that_created_nothing_for_long_are_forgotten() -> None:
    pods = observed()
    for number in range(CREATORS_MAX + 1):
        at = NOW + timedelta(seconds=number)
        pods.see_waiting([came(created_by(f"job-{number}"))], at)
    assert len(pods.created_seen) <= CREATORS_MAX
    assert f"job-{CREATORS_MAX}" in pods.created_seen
