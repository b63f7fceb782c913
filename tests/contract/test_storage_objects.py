"""Claims, volumes, attachments, StatefulSets and Jobs as objects: what a server makes of them."""

from __future__ import annotations

import asyncio

from tenure.model.api.resource import (
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from tests.contract.backends import WORKLOAD, Backend, Json

CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME: Json = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "csi": {"driver": "disk.example.com", "volumeHandle": "a"},
}
HELD = "example.com/held"


def an_attachment(name: str, node: str = "node-1") -> Json:
    source = {"persistentVolumeName": "pv"}
    spec = {"attacher": "disk.example.com", "nodeName": node, "source": source}
    return {"metadata": {"name": name, "finalizers": [HELD]}, "spec": spec}


def a_job(**spec: object) -> Json:
    pod = {**WORKLOAD["template"]["spec"], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    return {"metadata": {"name": "a"}, "spec": {"template": template, **spec}}


async def test_claims_and_volumes_are_protected_from_the_start(api: Backend) -> None:
    claim = await api.created(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "a"}, "spec": CLAIM})
    assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert (claim["status"]["phase"], claim["spec"]["volumeMode"]) == ("Pending", "Filesystem")
    name = api.unique("pv")
    volume = await api.created(PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": VOLUME})
    assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    await api.delete(PERSISTENT_VOLUMES, name)
    assert "deletionTimestamp" in (await api.get(PERSISTENT_VOLUMES, name)).body["metadata"]


async def test_a_storage_class_deletes_its_volumes_and_binds_at_once_unless_it_says_so(
    api: Backend,
) -> None:
    given = {"metadata": {"name": api.unique("fast")}, "provisioner": "disk.example.com"}
    created = await api.created(STORAGE_CLASSES, given)
    assert (created["reclaimPolicy"], created["volumeBindingMode"]) == ("Delete", "Immediate")


async def test_where_a_class_makes_volumes_is_said_by_labels(api: Backend) -> None:
    given = {"metadata": {"name": api.unique("fast")}, "provisioner": "disk.example.com"}
    wrong = await api.create(STORAGE_CLASSES, {**given, "allowedTopologies": ["zone-a"]})
    assert wrong.status == 400
    term = {"key": "topology.kubernetes.io/zone", "values": ["zone-a"]}
    topologies = [{"matchLabelExpressions": [term]}]
    created = await api.created(STORAGE_CLASSES, {**given, "allowedTopologies": topologies})
    assert created["allowedTopologies"] == topologies


async def test_a_claim_that_names_no_class_gets_the_default_one(api: Backend) -> None:
    name, mark = api.unique("default"), {"storageclass.kubernetes.io/is-default-class": "true"}
    metadata = {"name": name, "annotations": mark}
    await api.created(
        STORAGE_CLASSES, {"metadata": metadata, "provisioner": "kubernetes.io/no-provisioner"}
    )
    try:
        assert await first_class(api, name)
        for given in ("", "other"):
            spec = {**CLAIM, "storageClassName": given}
            metadata = {"name": f"says-{given or 'none'}"}
            made = await api.created(PERSISTENT_VOLUME_CLAIMS, {"metadata": metadata, "spec": spec})
            assert made["spec"]["storageClassName"] == given
    finally:  # A real bed has one for all tests.
        await api.delete(STORAGE_CLASSES, name)


async def first_class(api: Backend, name: str) -> bool:
    """Whether claims get that class. A real server hears of a class a moment after it is made."""
    for attempt in range(50):
        metadata = {"name": f"plain-{attempt}"}
        made = await api.created(PERSISTENT_VOLUME_CLAIMS, {"metadata": metadata, "spec": CLAIM})
        if made["spec"].get("storageClassName") == name:
            return True
        await asyncio.sleep(0.1)
    return False


async def test_an_attachment_begins_detached_and_its_driver_says_when_it_is_not(
    api: Backend,
) -> None:
    name = api.unique("va")
    created = await api.created(VOLUME_ATTACHMENTS, an_attachment(name))
    assert created["status"] == {"attached": False}
    patch = {"status": {"attached": True}}
    await api.patch(VOLUME_ATTACHMENTS, name, patch)
    assert (await api.get(VOLUME_ATTACHMENTS, name)).body["status"] == {"attached": False}
    await api.patch(VOLUME_ATTACHMENTS, name, patch, subresource="status")
    assert (await api.get(VOLUME_ATTACHMENTS, name)).body["status"] == {"attached": True}


async def test_an_attachment_cannot_move(api: Backend) -> None:
    name = api.unique("va")
    await api.created(VOLUME_ATTACHMENTS, an_attachment(name))
    answer = await api.patch(VOLUME_ATTACHMENTS, name, {"spec": {"nodeName": "another"}})
    assert (answer.status, answer.fields) == (422, ["spec"])


async def test_an_attachment_is_there_until_its_driver_lets_go(api: Backend) -> None:
    name = api.unique("va")
    await api.created(VOLUME_ATTACHMENTS, an_attachment(name))
    await api.delete(VOLUME_ATTACHMENTS, name)
    assert "deletionTimestamp" in (await api.get(VOLUME_ATTACHMENTS, name)).body["metadata"]
    await api.patch(VOLUME_ATTACHMENTS, name, {"metadata": {"finalizers": None}})
    assert (await api.get(VOLUME_ATTACHMENTS, name)).status == 404


async def test_a_job_selects_its_pods_by_its_own_uid(api: Backend) -> None:
    job = await api.created(JOBS, a_job())
    uid = job["metadata"]["uid"]
    labels = {
        "app": "web",
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "a",
        "controller-uid": uid,
        "job-name": "a",
    }
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert job["spec"]["template"]["metadata"]["labels"] == labels
    assert job["metadata"]["labels"] == labels


async def test_what_a_job_leaves_out_is_filled_in(api: Backend) -> None:
    spec = (await api.created(JOBS, a_job()))["spec"]
    said = ("completions", "parallelism", "backoffLimit", "completionMode", "podReplacementPolicy")
    assert [spec[field] for field in said] == [1, 1, 6, "NonIndexed", "TerminatingOrFailed"]


async def test_a_queue_of_work_has_no_number_of_completions(api: Backend) -> None:
    spec = (await api.created(JOBS, a_job(parallelism=2)))["spec"]
    assert ("completions" in spec, spec["parallelism"]) == (False, 2)


async def test_pods_of_a_job_must_be_able_to_end(api: Backend) -> None:
    job = a_job()
    del job["spec"]["template"]["spec"]["restartPolicy"]
    answer = await api.create(JOBS, job)
    assert (answer.status, answer.fields) == (422, ["spec.template.spec.restartPolicy"])


async def test_what_a_stateful_set_leaves_out_is_filled_in(api: Backend) -> None:
    created = await api.created(STATEFUL_SETS, {"metadata": {"name": "a"}, "spec": WORKLOAD})
    spec = created["spec"]
    assert (spec["replicas"], spec["podManagementPolicy"]) == (1, "OrderedReady")
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert spec["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    }
    assert created["status"] == {"replicas": 0, "availableReplicas": 0}


async def test_an_evicted_pod_is_told_why(api: Backend) -> None:
    await api.running_pod("a")
    await api.evict("a")
    conditions = (await api.get(PODS, "a")).body["status"]["conditions"]
    told = [c for c in conditions if c["type"] == "DisruptionTarget"]
    assert [(c["status"], c["reason"], c["message"]) for c in told] == [
        ("True", "EvictionByEvictionAPI", "Eviction API: evicting")
    ]


async def test_a_refused_eviction_says_nothing_to_its_pod(api: Backend) -> None:
    pod = await api.running_pod("a")
    await api.budget("b", disruptionsAllowed=0)
    await api.evict("a")
    await api.evict("a", preconditions={"uid": "another"})
    after = (await api.get(PODS, "a")).body
    assert after["metadata"]["resourceVersion"] == pod["metadata"]["resourceVersion"]
