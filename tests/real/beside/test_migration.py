"""docs/migration.md, command by command, with Karpenter's own controller: look, accompany, take over, back.

kwok plays the pods of both Deployments. Where a command starts or stops them, the test does the same to the
program that runs in their place.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from tenure.core.reasons import Reason
from testbed.karpenter import Karpenter
from tests.folders import ROOT
from tests.real.account import USER
from tests.real.beside.release import LOOK_EVERY, Cluster, Json, blocks
from tests.real.process import PATIENCE, Process

PAGE: Final = ROOT / "docs" / "migration.md"
KARPENTER: Final = "system:serviceaccount:kube-system:karpenter"
INSTANCE_KNOWN: Final = str(Reason.INSTANCE_KNOWN)
READS: Final = frozenset({"get", "list", "watch"})


class Move:
    def __init__(self, karpenter: Karpenter, folder: Path) -> None:
        self.karpenter = karpenter
        self.cluster = Cluster(karpenter.plane, folder)

    def entries(self, user: str) -> list[Json]:
        """What that account has written, Leases and events left out."""
        log = self.karpenter.plane.audit_log
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [
            each
            for each in events
            if each["user"]["username"] == user
            and each["verb"] not in READS
            and each["objectRef"]["resource"] not in ("leases", "events")
        ]

    def created(self, user: str) -> list[datetime]:
        """When that account has created NodeClaims."""
        return [
            datetime.fromisoformat(each["requestReceivedTimestamp"])
            for each in self.entries(user)
            if (each["verb"], each["objectRef"]["resource"]) == ("create", "nodeclaims")
        ]

    def until_another(self, user: str, known: int) -> datetime:
        """The instant of that account's next claim."""
        deadline = time.monotonic() + PATIENCE
        while len(found := self.created(user)) <= known:
            assert time.monotonic() < deadline, f"{user} creates no claim"
            time.sleep(LOOK_EVERY)
        return found[known]

    def measured(self, what: str, time: timedelta) -> None:
        """For docs/migration.md; on a machine that is busy with other tests it is longer."""
        sys.stdout.write(f"{what}: {time.total_seconds():.1f} s\n")
        assert time < timedelta(minutes=2)

    @contextmanager
    def acting(self, **more: str) -> Iterator[Process]:
        with self.cluster.tenure(**more) as tenure:
            tenure.until_leading()
            yield tenure


@pytest.fixture(scope="module")
def move(bare_karpenter: Karpenter, tmp_path_factory: pytest.TempPathFactory) -> Move:
    """The stories follow each other, as the steps of the page do."""
    return Move(bare_karpenter, tmp_path_factory.mktemp("move"))


def fleet(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """Each Node and NodeClaim of the pool, by name: its UID, and what says that it has drifted or leaves."""
    things = [*cluster.nodes(), *cluster.all("nodeclaims.karpenter.sh")]
    return {
        f"{each['kind']}/{each['metadata']['name']}": (each["metadata"]["uid"], _fate(each))
        for each in things
    }


def _fate(thing: Json) -> str:
    conditions = thing.get("status", {}).get("conditions", [])
    said = [
        c["type"]
        for c in conditions
        if c["type"] in ("Drifted", "DisruptionReason") and c["status"] == "True"
    ]
    return " ".join([*said, *(["leaving"] if "deletionTimestamp" in thing["metadata"] else [])])


def test_looking_writes_nothing_and_needs_no_right_but_to_read(move: Move) -> None:
    cluster = move.cluster
    cluster.fleet(2)
    kinds, rights, look = blocks(PAGE, "Look")
    cluster.typed(*kinds, *rights)
    jane = cluster.plane.kubeconfig_for("jane")
    before = written(cluster)
    for command in look:
        ended = cluster.type(command, jane)
        assert ended.returncode in ((0, 1) if "lint" in command else (0,)), ended.stderr
        assert "forbidden" not in (ended.stdout + ended.stderr).lower()
    plan = cluster.type(look[0], jane).stdout
    assert "MaintenanceWindow" in plan
    assert written(cluster) == before
    assert cluster.marks() == []


def written(cluster: Cluster) -> dict[str, Json]:
    """By UID: what Tenure could write. Karpenter, the controllers and kubelets write status all the time."""
    ours, others = "maintenancewindows,nodepoolpolicies", "nodes,nodepools,nodeclaims,pods"
    found = {each["metadata"]["uid"]: each for each in cluster.all(ours)}
    for each in cluster.all(f"{others},deployments,crds"):
        told = ("generation", "labels", "annotations", "finalizers", "ownerReferences")
        found[each["metadata"]["uid"]] = {key: each["metadata"].get(key) for key in told}
    return found


def test_accompanying_sets_levers_and_karpenter_stays_in_charge(move: Move) -> None:
    cluster = move.cluster
    before = fleet(cluster)
    install, rolled, shown = blocks(PAGE, "Accompany")[0]
    cluster.typed(install, rolled)
    known = len(move.created(KARPENTER))
    with move.acting() as tenure:
        tenure.until(lambda: cluster.levers() == 2, "levers")
        assert "MaintenanceWindow" in cluster.type(shown).stdout
        assert before.items() <= fleet(cluster).items()
        cluster.kubectl("scale", "deployment/web", "--namespace=default", "--replicas=3")
        move.until_another(KARPENTER, known)
        cluster.rolled_out("web")
        tenure.until(lambda: cluster.levers() == 3, "a lever on the new Node")
        assert tenure.stop() == 0
    assert {entry["objectRef"]["resource"] for entry in move.entries(USER)} == {
        "maintenancewindows",
        "nodes",
    }


def test_tenure_takes_the_nodes_over_and_karpenter_takes_them_back_and_none_is_lost(
    move: Move,
) -> None:
    cluster = move.cluster
    before = fleet(cluster)
    with taken_over(move) as tenure:
        assert before.items() <= fleet(cluster).items()
        before = fleet(cluster)
        given_back(move, tenure)
    assert before.items() <= fleet(cluster).items()
    assert cluster.levers() == 0, "windows were Tenure's to keep, without levers"


@contextmanager
def taken_over(move: Move) -> Iterator[Process]:
    cluster = move.cluster
    prepare, stop, settle = blocks(PAGE, "Take over")
    cluster.typed(*prepare)
    with cluster.tenure(TENURE_GARBAGE_PERIOD="5s") as tenure:
        tenure.until_said("not acting: the Lease kube-system/karpenter-leader-election is held by")
        cluster.typed(*stop)
        known = len(move.created(USER))
        move.karpenter.kill()  # It has no handler for SIGTERM, either, and gives no Lease back.
        ended = now()
        cluster.kubectl("scale", "deployment/web", "--namespace=default", "--replicas=4")
        move.measured("from Karpenter to Tenure", move.until_another(USER, known) - ended)
        cluster.rolled_out("web")
        tenure.until(lambda: cluster.levers() == 0, "levers that it takes back")
        cluster.typed(*settle)
        assert cluster.levers() == 0
        tenure.until_said("", reason=INSTANCE_KNOWN, times=3)  # Cloud and claims were compared.
        yield tenure


def given_back(move: Move, tenure: Process) -> None:
    cluster = move.cluster
    (*stop, start), _ = blocks(PAGE, "Back")
    cluster.typed(*stop)
    known = len(move.created(KARPENTER))
    assert tenure.stop() == 0
    ended = now()
    cluster.kubectl("scale", "deployment/web", "--namespace=default", "--replicas=5")
    cluster.typed(start)
    move.karpenter.start()
    move.measured("from Tenure to Karpenter", move.until_another(KARPENTER, known) - ended)
    cluster.rolled_out("web")


def now() -> datetime:
    return datetime.now().astimezone()


def test_tenure_is_beside_karpenter_again_and_leaves(move: Move) -> None:
    cluster = move.cluster
    before = fleet(cluster)
    _, beside = blocks(PAGE, "Back")
    cluster.typed(*beside)
    with move.acting() as tenure:
        tenure.until(lambda: cluster.levers() == 5, "levers")
        assert before.items() <= fleet(cluster).items()
        assert tenure.stop() == 0
    cluster.typed(*blocks(PAGE, "Leave")[0])
    assert cluster.marks() == []
    assert before.items() <= fleet(cluster).items()
