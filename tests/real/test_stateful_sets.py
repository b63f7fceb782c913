"""StatefulSets with volumes: nodes come where the volumes are, and as many as can attach them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

from tenure.model.api.names import ZONE
from tenure.model.api.resource import EVENTS, NODE_CLAIMS
from testbed.controlplane import ControlPlane
from testbed.storage.orders import VOLUMES_LABEL
from tests.builders import a_node_class
from tests.real import unhealthy as nodehealth
from tests.real.scene import EIGHT_CORES, TWO_CORES, Scene, tell
from tests.real.storage import a_class, a_database, a_storage_pool, attached, places
from tests.real.users import Json, Users

#: One pod fills a node of two cores.
FILLS: Final[dict[str, Any]] = {"cpu": "1500m"}
ONE_PER_ZONE: Final[dict[str, Any]] = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "db"}},
}
#: Of the kwok provider; tolerated for a shorter time, so that the story is short.
GRACEFUL: Final = {
    "terminationMode": "Graceful",
    "policies": [{"conditionType": "KWOKUnhealthy", "toleration": "2s"}],
}


def test_a_database_scales_out_and_a_repair_brings_its_pod_back_to_its_volume(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        users = scene.users
        with scene.tenure("tenure") as tenure:
            await users.apply(
                a_node_class(),
                a_storage_pool(TWO_CORES, repair=GRACEFUL),
                a_class("disks"),
                a_database("disks", topologySpreadConstraints=[ONE_PER_ZONE], **FILLS),
            )
            await scene.all_run(3)
            before = await places(users)
            assert len({place.zone for place in before.values()}) == 3
            assert len({place.node for place in before.values()}) == 3
            await attached(users, before)

            claim = await claim_on(users, before["db-1"].node)
            await nodehealth.say(users, claim, "KWOKUnhealthy", "True")
            await scene.until_gone(claim)
            await scene.all_run(3)
            after = await places(users)
            assert after["db-1"].node != before["db-1"].node
            assert (after["db-1"].zone, after["db-1"].volume) == (
                before["db-1"].zone,
                before["db-1"].volume,
            )
            assert {**after, "db-1": before["db-1"]} == before, "the others stayed"
            await attached(users, after)
            await scene.in_order(claims=3, ever=4)
            tenure.kill()

    tell(cluster, tmp_path, "database", story)


def test_volumes_that_do_not_wait_for_a_pod_lead_its_node_into_their_zone(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        with scene.tenure("tenure") as tenure:
            await scene.users.apply(
                a_node_class(),
                a_storage_pool(TWO_CORES),
                a_class("narrow", "test-zone-c", mode="Immediate"),
                a_database("narrow", replicas=2, policy="Parallel", **FILLS),
            )
            await scene.all_run(2)
            found = await places(scene.users)
            assert {place.zone for place in found.values()} == {"test-zone-c"}
            await attached(scene.users, found)
            await scene.in_order(claims=2, ever=2)
            tenure.kill()

    tell(cluster, tmp_path, "immediate", story)


def test_no_node_gets_more_volumes_than_its_csi_node_allows(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    """The instance type does not say how many: a full node shows it, and another one comes."""

    async def story(scene: Scene) -> None:
        with scene.tenure("tenure") as tenure:
            await scene.users.apply(
                a_node_class(),
                a_storage_pool(EIGHT_CORES, labels={VOLUMES_LABEL: "2"}),
                a_class("disks"),
                a_database("disks", replicas=5, policy="Parallel", cpu="100m"),
            )
            await scene.all_run(5)
            found = await places(scene.users)
            on_each = Counter(place.node for place in found.values())
            assert sorted(on_each.values()) == [1, 2, 2]
            await attached(scene.users, found)
            await scene.in_order(claims=3, ever=3)
            tenure.kill()

    tell(cluster, tmp_path, "limited", story)


def test_a_missing_storage_class_is_told_to_the_pod_until_it_is_there(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        users = scene.users
        with scene.tenure("tenure") as tenure:
            database = a_database("later", replicas=1, **FILLS)
            await users.apply(a_node_class(), a_storage_pool(TWO_CORES), database)
            sentence = (
                "StorageClass later of PersistentVolumeClaim missing/data-db-0 does not exist"
            )
            await users.until(
                EVENTS,
                lambda events: any(
                    sentence in event["message"]
                    for event in events
                    if event["involvedObject"]["name"] == "db-0"
                ),
                f"told: {sentence}",
            )
            assert not await users.all(NODE_CLAIMS)
            await users.apply(a_class("later"))
            await scene.all_run(1)
            await attached(users, await places(users))
            await scene.in_order(claims=1, ever=1)
            tenure.kill()

    tell(cluster, tmp_path, "missing", story)


async def claim_on(users: Users, node: str) -> Json:
    (found,) = [c for c in await users.all(NODE_CLAIMS) if c["status"].get("nodeName") == node]
    return found
