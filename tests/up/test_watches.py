"""Many watches at once, as a dashboard in a terminal has them: tables of every kind."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from tenure.model.api.resource import CONFIG_MAPS
from tenure.sim.apiserver.objects.kinds import ALL
from tests.contract.backends import ServedStore

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
FROM_THE_START: Final = {
    "watch": "true",
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
}
PATIENCE: Final = 120


async def _event(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(await asyncio.wait_for(answer.content.readline(), PATIENCE))
    return event


async def _until_synced(answer: aiohttp.ClientResponse) -> int:
    """How many rows came before the bookmark that ends the beginning."""
    count = 0
    while (event := await _event(answer))["type"] != "BOOKMARK":
        assert event["object"]["kind"] == "Table"
        count += 1
    return count


async def _watch_everything(kubeconfig: Path) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    tls = ssl.create_default_context(cadata=authority)
    headers = {"Authorization": f"Bearer {user['token']}", "Accept": TABLE}
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    async with aiohttp.ClientSession(
        cluster["server"], headers=headers, connector=connector
    ) as http:
        paths = [resource.prefix + f"/{resource.plural}" for resource in ALL] * 2
        answers = await asyncio.gather(*(http.get(path, params=FROM_THE_START) for path in paths))
        assert {answer.status for answer in answers} == {200}
        rows = await asyncio.gather(*map(_until_synced, answers))
        assert rows[: len(ALL)] == rows[len(ALL) :]
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen"}}
        made = await http.post(CONFIG_MAPS.path("default"), json=obj)
        assert made.status == 201
        for at in (ALL.index(CONFIG_MAPS), ALL.index(CONFIG_MAPS) + len(ALL)):
            event = await _event(answers[at])
            assert event["type"] == "ADDED"
            assert event["object"]["rows"][0]["cells"][:2] == ["seen", "0"]
        for answer in answers:
            answer.close()


def test_every_kind_is_watched_as_a_table_twice_at_once(tmp_path: Path) -> None:
    served = ServedStore(tmp_path)
    served.start()
    try:
        served.loop.run_until_complete(_watch_everything(served.kubeconfig))
    finally:
        served.stop()
    assert served.faults == []
