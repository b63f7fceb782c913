"""The web page of ``tenure up``, over HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.up.running import PATIENCE, Up, running


def address(up: Up) -> str:
    found = re.search(r"The same in a browser: (http://127\.0\.0\.1:\d+)", up.screen)
    assert found is not None, up.screen
    return found[1]


def asked(up: Up, path: str, **headers: str) -> tuple[int, bytes]:
    request = Request(f"{address(up)}{path}", headers=headers)  # noqa: S310 - http alone
    try:
        with urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            return answer.status, answer.read()
    except HTTPError as error:
        return error.code, error.read()


def told(up: Up, path: str) -> Any:
    status, body = asked(up, path)
    assert status == 200, body
    return json.loads(body)


def test_the_page_tells_what_becomes_of_a_workload(tmp_path: Path) -> None:
    with running(tmp_path, "--speed", "20") as up:
        status, shell = asked(up, "/")
        assert (status, b"<script" in shell) == (200, True)
        assert told(up, "/api/about")["mode"] == "up"
        assert told(up, "/api/about")["speed"] == 20
        assert (
            up.kubectl("create", "deployment", "web", "--image=web", "--replicas=3").returncode == 0
        )
        up.until(
            lambda: [one["phase"] for one in told(up, "/api/fleet")["nodes"]] == ["in service"],
            "node in service on the page",
        )
        (node,) = told(up, "/api/fleet")["nodes"]
        assert (node["pods"], node["pool"]) == (3, "default")
        assert node["price"] > 0
        why = told(up, f"/api/why?subject={node['key']}")
        assert (why["reason"], node["name"] in why["text"]) == ("InService", True)
        phases = [one["phase"] for one in told(up, "/api/history")["lanes"][0]["segments"]]
        assert phases[-1] == "in service"
        reasons = {one["reason"] for one in told(up, f"/api/entries?subject={node['key']}")}
        assert {"Launched", "InService"} & reasons
        assert [pool["name"] for pool in told(up, "/api/calendar")["pools"]] == ["default"]
        assert asked(up, "/api/fleet", Host="attacker.example")[0] == 403
        assert "a fault of ours" not in up.screen
