"""What the controllers of StatefulSets and Jobs do, embedded and real."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.model.api.resource import JOBS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from tests.contract.backends import Json, Watching
from tests.contract.clusters import Cluster

#: Seconds in which nothing may happen, where nothing is to happen.
QUIET = 3.0
HELD = "example.com/held"
PARALLEL: dict[str, Any] = {"podManagementPolicy": "Parallel"}
#: No node has this label: pods that ask for it wait.
NOWHERE = {"nodeSelector": {"example.com/lane": "nowhere"}}


async def a_set(cluster: Cluster, replicas: int = 2, **spec: Any) -> None:
    given = cluster.workload("db", replicas=replicas, serviceName="db", **spec)
    await cluster.created(STATEFUL_SETS, given)


async def resized(cluster: Cluster, replicas: int) -> None:
    answer = await cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": replicas}})
    assert answer.status == 200, answer


async def test_an_ordered_set_waits_for_each_pod(cluster: Cluster) -> None:
    await a_set(cluster, pod=NOWHERE)
    await cluster.until_pods("db", {"db-0"}, ready=False)
    await asyncio.sleep(QUIET)
    assert set(await cluster.pods("db")) == {"db-0"}


async def test_a_parallel_set_does_not(cluster: Cluster) -> None:
    await a_set(cluster, 3, pod=NOWHERE, **PARALLEL)
    await cluster.until_pods("db", {"db-0", "db-1", "db-2"}, ready=False)


async def test_pods_of_a_set_say_who_they_are(cluster: Cluster) -> None:
    await a_set(cluster, 1, pod=NOWHERE)
    pod = (await cluster.until_pods("db", {"db-0"}, ready=False))["db-0"]
    labels = pod["metadata"]["labels"]
    revision = labels.pop("controller-revision-hash")
    assert revision.startswith("db-")
    assert labels == {
        "app": "db",
        "statefulset.kubernetes.io/pod-name": "db-0",
        "apps.kubernetes.io/pod-index": "0",
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-0", "db")
    assert pod["metadata"]["generateName"] == "db-"


async def test_the_status_of_a_set_counts_its_pods(cluster: Cluster) -> None:
    await cluster.node("a")
    await a_set(cluster)
    status = await cluster.until_status(STATEFUL_SETS, "db", availableReplicas=2)
    revision = status["updateRevision"]
    assert status == {
        "observedGeneration": 1,
        "replicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "currentReplicas": 2,
        "updatedReplicas": 2,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }


async def test_an_evicted_pod_of_a_set_comes_back_as_another_of_the_same_name(
    cluster: Cluster,
) -> None:
    await cluster.node("a")
    await a_set(cluster)
    before = await cluster.until_pods("db", {"db-0", "db-1"})
    assert (await cluster.evict("db-0")).status == 201

    async def back() -> bool:
        pods = await cluster.pods("db")
        return "db-0" in pods and uid(pods["db-0"]) != uid(before["db-0"])

    await cluster.until(back, "db-0 is another pod")
    late = await cluster.evict("db-0", preconditions={"uid": uid(before["db-0"])})
    assert (late.status, late.reason) == (409, "Conflict"), "a late request evicts no pod"


async def test_a_pod_that_is_not_gone_has_no_successor(cluster: Cluster) -> None:
    await cluster.node("a")
    await a_set(cluster, 1, **PARALLEL)
    before = (await cluster.until_pods("db", {"db-0"}))["db-0"]
    await cluster.patch(PODS, "db-0", {"metadata": {"finalizers": [HELD]}})
    await cluster.evict("db-0")

    async def stopped() -> bool:
        return bool(
            (await cluster.pods("db"))["db-0"]["metadata"]["deletionGracePeriodSeconds"] == 0
        )

    await cluster.until(stopped, "the kubelet has stopped it")
    await asyncio.sleep(QUIET)
    assert uid((await cluster.pods("db"))["db-0"]) == uid(before)
    await cluster.patch(PODS, "db-0", {"metadata": {"finalizers": None}})
    after = await cluster.until_pods("db", {"db-0"})
    assert uid(after["db-0"]) != uid(before)


async def test_a_shrinking_set_gives_up_its_highest_pod_first(cluster: Cluster) -> None:
    await cluster.node("a")
    await a_set(cluster, 3)
    await cluster.until_pods("db", {"db-0", "db-1", "db-2"})
    await cluster.patch(PODS, "db-2", {"metadata": {"finalizers": [HELD]}})
    await resized(cluster, 1)

    async def leaving() -> list[str]:
        pods = await cluster.pods("db")
        return [name for name, pod in pods.items() if "deletionTimestamp" in pod["metadata"]]

    await cluster.until(leaving, "the first one is told to go")
    await asyncio.sleep(QUIET)
    assert await leaving() == ["db-2"], "the next one waits until it has gone"
    await cluster.patch(PODS, "db-2", {"metadata": {"finalizers": None}})
    await cluster.until_pods("db", {"db-0"})


async def test_the_claims_of_a_set_are_its_own_and_stay(cluster: Cluster) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"metadata": {"name": "data"}, "spec": {**claim, "storageClassName": "missing"}}
    await a_set(cluster, volumeClaimTemplates=[template], **PARALLEL)
    pods = await cluster.until_pods("db", {"db-0", "db-1"}, ready=False)
    claimed = {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
    assert claimed in pods["db-1"]["spec"]["volumes"]
    await resized(cluster, 0)
    await cluster.until_pods("db", set())
    claims = (await cluster.list(PERSISTENT_VOLUME_CLAIMS)).body["items"]
    assert [one["metadata"]["name"] for one in claims] == ["data-db-0", "data-db-1"]
    assert all(one["metadata"]["labels"] == {"app": "db"} for one in claims)
    assert all("ownerReferences" not in one["metadata"] for one in claims)


# Jobs.


async def a_job(cluster: Cluster, **spec: Any) -> None:
    template = cluster.template("sum", restartPolicy="Never")
    await cluster.created(
        JOBS, {"metadata": {"name": "sum"}, "spec": {"template": template, **spec}}
    )


async def working(cluster: Cluster, but: str = "") -> Json:
    """The job's pod that runs; ``but`` is one that no longer counts."""
    return (await all_working(cluster, 1, but))[0]


async def all_working(cluster: Cluster, count: int, but: str = "") -> list[Json]:
    """The job's pods, once this many of them run."""

    async def running() -> list[Json] | None:
        pods = (await cluster.pods("sum")).values()
        found = [p for p in pods if p["status"]["phase"] == "Running" and name(p) != but]
        return found if len(found) == count else None

    return await cluster.until(running, f"{count} pods of the job run")


async def ended(cluster: Cluster, pod: Json, phase: str) -> None:
    """End a pod that runs: a kubelet still starting it writes Running over the phase."""
    assert pod["status"]["phase"] == "Running", pod["status"]
    patch = {"status": {"phase": phase}}
    answer = await cluster.patch(PODS, name(pod), patch, subresource="status")
    assert answer.status == 200, answer


async def test_a_job_is_complete_when_its_pod_has_succeeded(cluster: Cluster) -> None:
    await cluster.node("a")
    await a_job(cluster)
    pod = await working(cluster)
    assert "batch.kubernetes.io/job-tracking" in pod["metadata"]["finalizers"]
    await ended(cluster, pod, "Succeeded")
    status = await cluster.until_status(JOBS, "sum", succeeded=1)
    conditions = (await completed(cluster))["conditions"]
    assert [(c["type"], c["reason"]) for c in conditions] == [
        ("SuccessCriteriaMet", "CompletionsReached"),
        ("Complete", "CompletionsReached"),
    ]
    assert "failed" not in status
    pods = await cluster.pods("sum")
    assert all("finalizers" not in one["metadata"] for one in pods.values()), "it was counted"


async def completed(cluster: Cluster) -> Json:
    async def over() -> Json | None:
        status: Json = (await cluster.get(JOBS, "sum")).body["status"]
        types = [c["type"] for c in status.get("conditions", ())]
        return status if "Complete" in types or "Failed" in types else None

    return await cluster.until(over, "the job is over")


async def test_an_evicted_pod_of_a_job_is_a_failure_and_replaced_after_a_pause(
    cluster: Cluster,
) -> None:
    await cluster.node("a")
    await a_job(cluster)
    pod = await working(cluster)
    watch = await cluster.watch(PODS, resourceVersion=pod["metadata"]["resourceVersion"])
    assert (await cluster.evict(name(pod))).status == 201
    marked = await evicted(watch)
    await cluster.until_status(JOBS, "sum", failed=1)
    successor = await working(cluster, but=name(pod))
    created = datetime.fromisoformat(successor["metadata"]["creationTimestamp"])
    grace = timedelta(seconds=marked["metadata"]["deletionGracePeriodSeconds"])
    asked = datetime.fromisoformat(marked["metadata"]["deletionTimestamp"]) - grace
    assert created - asked >= timedelta(seconds=9), "ten, but for the parts of a second"
    status = await cluster.until_status(JOBS, "sum", active=1)
    assert status["failed"] == 1


async def evicted(watch: Watching) -> Json:
    """The pod, as it is told to go."""
    while True:
        _, pod = await watch.event()
        if "deletionTimestamp" in pod["metadata"]:
            return pod


async def test_a_job_fails_with_more_failures_than_it_allows(cluster: Cluster) -> None:
    await cluster.node("a")
    await a_job(cluster, backoffLimit=0)
    await ended(cluster, await working(cluster), "Failed")
    status = await completed(cluster)
    assert [(c["type"], c["reason"]) for c in status["conditions"]] == [
        ("FailureTarget", "BackoffLimitExceeded"),
        ("Failed", "BackoffLimitExceeded"),
    ]
    assert status["failed"] == 1


async def test_a_job_runs_as_many_at_once_as_it_says(cluster: Cluster) -> None:
    await cluster.node("a")
    await a_job(cluster, completions=3, parallelism=2)
    await cluster.until_status(JOBS, "sum", active=2)
    for pod in await all_working(cluster, 2):
        await ended(cluster, pod, "Succeeded")
    await cluster.until_status(JOBS, "sum", succeeded=2, active=1)


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
async def test_a_deleted_job_takes_its_pods_along(cluster: Cluster, policy: str) -> None:
    await cluster.node("a")
    await a_job(cluster)
    await working(cluster)
    await cluster.delete(JOBS, "sum", propagationPolicy=policy)
    await cluster.until_pods("sum", set())
    await cluster.gone(JOBS, "sum")


async def test_a_job_deleted_silently_leaves_its_pods(cluster: Cluster) -> None:
    await cluster.node("a")
    await a_job(cluster)
    pod = await working(cluster)
    await cluster.delete(JOBS, "sum")
    await cluster.gone(JOBS, "sum")

    async def orphaned() -> bool:
        left = (await cluster.pods("sum"))[name(pod)]["metadata"]
        return "ownerReferences" not in left and "finalizers" not in left

    await cluster.until(orphaned, "the pod has no owner")


def name(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def uid(obj: Json) -> str:
    return str(obj["metadata"]["uid"])
