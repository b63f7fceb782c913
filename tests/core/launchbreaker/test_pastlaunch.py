"""What became of a launch is worked out once, and again only where something has changed of it."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from tenure.core.launchbreaker import pastlaunch, running
from tenure.core.launchbreaker.history import IN_VAIN_MAX, History, launch_history
from tenure.core.launchbreaker.ledger import For, launched_for, launched_of
from tenure.core.launchbreaker.owners import owner_of
from tenure.model.api import names
from tenure.model.api.meta import OwnerReference
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tests.core.build import NOW, a_claim, a_node, a_pending_pod, a_pod, a_pool, ago
from tests.snapshots import SERVED

CLAIMS = 4


class Worked:
    """Which claims' launches, and which pods, are looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.claims: list[str] = []
        self.pods: list[str] = []

        def launched(claim: NodeClaim) -> tuple[For, ...]:
            self.claims.append(claim.name)
            return launched_of(claim)

        def owned(pod: Pod) -> str:
            self.pods.append(pod.name)
            return owner_of(pod)

        monkeypatch.setattr(pastlaunch, "launched_of", launched)
        monkeypatch.setattr(running, "owner_of", owned)

    def take(self) -> tuple[list[str], list[str]]:
        claims, pods = sorted({*self.claims}), sorted({*self.pods})
        self.claims, self.pods = [], []
        return claims, pods


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> Worked:
    return Worked(monkeypatch)


def of(pod: Pod, owner: str) -> Pod:
    owners = (OwnerReference(kind="StatefulSet", name=owner, uid=owner, controller=True),)
    meta = msgspec.structs.replace(pod.metadata, owner_references=owners)
    status = msgspec.structs.replace(pod.status, start_time=ago(60))
    return msgspec.structs.replace(pod, metadata=meta, status=status)


def a_web_pod(number: int, **fields: Any) -> Pod:
    return of(a_pod(f"web{number}-0", **{"node": f"n{number}"} | fields), f"web{number}")


def a_fleet(count: int = CLAIMS) -> Tables:
    """Each claim was launched for one pod, which runs there."""
    tables = Tables()
    tables.put(NODE_POOLS, a_pool())
    for number in range(count):
        pod = a_web_pod(number)
        said = {names.LAUNCHED_FOR: launched_for([pod])}
        tables.put(NODE_CLAIMS, a_claim(f"c{number}", annotations=said))
        tables.put(NODES, a_node(f"n{number}", claim=f"c{number}"))
        tables.put(PODS, pod)
    return tables


def history_of(tables: Tables, **observed: Any) -> History:
    snapshot = Snapshot(tables, Observations(**observed), ours=SERVED)
    return launch_history(snapshot, (a_pending_pod("waits"),))


def test_only_launches_that_something_has_changed_of_are_worked_out_again(worked: Worked) -> None:
    tables = a_fleet()
    history_of(tables)
    assert worked.take()[0] == ["c0", "c1", "c2", "c3"]
    history_of(tables)
    assert worked.take()[0] == []
    tables.put(PODS, a_web_pod(1, phase="Failed"))
    history_of(tables)
    assert worked.take()[0] == ["c1"], "what it was launched for, and what is on its Node"
    tables.put(PODS, a_web_pod(2, node="n3"))
    history_of(tables)
    assert worked.take()[0] == ["c2", "c3"], "the pod of one runs on the Node of the other"
    tables.remove(NODES, "n0")
    history_of(tables)
    assert worked.take()[0] == ["c0"]
    tables.put(NODE_CLAIMS, a_claim("c3", annotations=tables.table(NODE_CLAIMS)["c3"].annotations))
    history_of(tables)
    assert worked.take()[0] == ["c3"]


def test_what_the_cloud_and_the_pods_said_counts_at_once() -> None:
    tables = a_fleet(1)
    tables.remove(PODS, "default/web0-0")
    (neighbour,) = history_of(tables).neighbours["default"]
    assert neighbour.deserted is not None
    served = {tables.table(NODE_CLAIMS)["c0"].uid: frozenset({neighbour.owner})}
    assert history_of(tables, served_claims=served).neighbours == {}
    vanished = {tables.table(NODE_CLAIMS)["c0"].uid: NOW}
    (missing,) = history_of(tables, vanished=vanished).neighbours["default"]
    assert missing.missing_after is not None
    assert history_of(tables).neighbours["default"] == (neighbour,)


def test_running_pods_are_read_again_only_on_nodes_that_something_has_changed_of(
    worked: Worked,
) -> None:
    tables = a_fleet(IN_VAIN_MAX)
    tables.put(PODS, a_web_pod(IN_VAIN_MAX, node="does-not-exist"))
    first = history_of(tables).running
    assert len(first) == IN_VAIN_MAX + 1, "a Node need not exist"
    assert len(worked.take()[1]) == IN_VAIN_MAX + 1
    assert history_of(tables).running == first
    assert worked.take()[1] == []
    tables.put(PODS, of(a_pod("web1-1", node="n1", phase="Pending"), "web1"))
    tables.remove(PODS, "default/web2-0")
    tables.put(PODS, a_web_pod(3, node="n4"))
    running = history_of(tables).running
    assert worked.take()[1] == ["web3-0"], "what only waits is not asked about"
    assert running.keys() == first.keys() - {"StatefulSet/default/web2"}


def test_what_is_kept_does_not_show() -> None:
    """After any of many changes the history is as one that has kept nothing finds it."""
    tables, random = a_fleet(IN_VAIN_MAX), Random(7)
    for step in range(60):
        number, other = random.randrange(IN_VAIN_MAX), random.randrange(IN_VAIN_MAX)
        match random.randrange(5):
            case 0:
                tables.put(PODS, a_web_pod(number, node=f"n{other}"))
            case 1:
                tables.put(PODS, a_web_pod(number, phase=random.choice(("Failed", "Succeeded"))))
            case 2 if f"default/web{number}-0" in tables.table(PODS):
                tables.remove(PODS, f"default/web{number}-0")
            case 3:
                tables.put(NODES, a_node(f"n{number}", claim=f"c{number}", unschedulable=True))
            case _ if f"n{number}" in tables.table(NODES):
                tables.remove(NODES, f"n{number}")
        anew = Tables()
        for resource, objects in tables.objects.items():
            for item in objects.values():
                anew.put(resource, item)
        assert history_of(tables) == history_of(anew), step
