"""The pods of a Node, by a list of their own: right before its claim is deleted by choice, and right before
its instance is terminated, no matter who deleted the claim.

A watch may be late. The taint keeps new pods away, and says nothing of those that were bound before
it and are not heard of yet. What the list brings is put into the cache, like the answer to a write:
so the guard sees it at once, and the next turn decides on it.
"""

from __future__ import annotations

import msgspec

from tenure.kube.cache.cache import Cache
from tenure.kube.client.client import Client
from tenure.model.api.meta import ApiObject
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS
from tenure.model.snapshot.kinds import decode_list


async def changed_pods(node: str, client: Client, cache: Cache) -> list[str]:
    """Which of them are new or changed; those that are gone since hold nothing back."""
    pods = await _taken_in(node, client, cache)
    return [pod.key for pod, known in pods if known is None or not _is_same(known, pod)]


async def unknown_pods(node: str, client: Client, cache: Cache) -> list[str]:
    """Which of them no drain has seen: the instance would end under them.

    What was known has been drained, or is not waited for; that it has changed says nothing.
    """
    pods = await _taken_in(node, client, cache)
    return [
        pod.key
        for pod, known in pods
        if (known is None or known.uid != pod.uid) and _is_drained(pod)
    ]


async def _taken_in(
    node: str, client: Client, cache: Cache
) -> list[tuple[ApiObject, ApiObject | None]]:
    """Each pod as it is now, and as it was known."""
    items = await client.list_now(PODS, field_selector=f"spec.nodeName={node}")
    found = []
    for pod in decode_list(PODS, items):
        found.append((pod, cache.tables.table(PODS).get(pod.key)))
        cache.upsert(PODS, pod)
    return found


def _is_drained(pod: ApiObject) -> bool:
    """Whether a drain evicts it or waits for it; one that cannot be read counts."""
    return not isinstance(pod, Pod) or not (pod.finished or pod.daemon or pod.mirror)


def _is_same(known: ApiObject, pod: ApiObject) -> bool:
    """Whether a disruption cannot tell the two apart: what a kubelet says of a pod that runs changes often,
    and protects nothing."""
    version = known.metadata.resource_version
    if (known.uid, version) == (pod.uid, pod.metadata.resource_version):
        return True
    if not (isinstance(known, Pod) and isinstance(pod, Pod)) or type(known) is not type(pod):
        return False
    meta = msgspec.structs.replace(pod.metadata, resource_version=version)
    same = meta == known.metadata and pod.spec == known.spec
    return same and pod.finished == known.finished
