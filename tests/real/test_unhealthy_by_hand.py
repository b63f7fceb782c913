"""How users make a node of kwok unhealthy: the commands of the page work, and kwok does not undo them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tenure.model.api.resource import NODES
from testbed.controlplane import KWOK_LABEL, ControlPlane, control_plane
from tests.folders import ROOT
from tests.real.programs import said
from tests.real.users import Json, Users, is_true, names, users_at

#: What the page calls the node.
NODE: Final = "kwok-general-x7k2p"
#: As kwok's own stages do: a Node that is not Ready becomes Ready, whatever was written there.
UNDOING: Final = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-initialize}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector:
    matchExpressions:
      - key: '.status.conditions.[] | select( .type == "Ready" ) | .status'
        operator: NotIn
        values: ["True"]
  next:
    statusTemplate: |
      conditions:
        - {type: Ready, status: "True", reason: KubeletReady, lastTransitionTime: {{ Now | Quote }}}
"""


@pytest.fixture
def kept_well(tmp_path: Path) -> Iterator[ControlPlane]:
    """A cluster whose kwok cures every node, but for what the shipped stage takes out of its hands."""
    stages = tmp_path / "stages.yaml"
    shipped = (ROOT / "examples" / "kwok-unhealthy-nodes.yaml").read_text(encoding="utf-8")
    stages.write_text(f"{UNDOING}\n---\n{shipped}", encoding="utf-8")
    with control_plane(kwok=True, stages=stages) as plane:
        yield plane


def test_the_commands_of_the_page_make_a_node_unhealthy_and_kwok_does_not_undo_it(
    kept_well: ControlPlane,
) -> None:
    asyncio.run(_becomes_unhealthy(kept_well))


async def _becomes_unhealthy(plane: ControlPlane) -> None:
    unhealthy, label, not_ready = shown()
    async with users_at(plane, "unhealthy") as users:
        key, _, value = KWOK_LABEL.partition("=")
        for name in (NODE, "other"):
            manifest = {"metadata": {"name": name, "labels": {key: value}}}
            await users.client.create(NODES, manifest)
        await until_well(users, NODE, "other")
        await do(plane, unhealthy)
        await do(plane, label)
        await do(plane, not_ready)
        await do(plane, not_ready.replace(NODE, "other"))
        await until_well(users, "other")
        (marked,) = [node for node in await users.all(NODES) if names([node]) == [NODE]]
        assert conditions(marked) == {"Ready": "False", "KWOKUnhealthy": "True"}
        await do(plane, f"kubectl label node {NODE} kwok.x-k8s.io/stage-")
        await until_well(users, NODE)


def shown() -> list[str]:
    """What the page does to a node; the stage that it applies is part of this cluster already."""
    page = (ROOT / "docs" / "kwok.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", page, re.S)
    commands = "".join(blocks).replace("\\\n", "").splitlines()
    return [command for command in commands if NODE in command]


async def do(plane: ControlPlane, command: str) -> None:
    """By a shell: the commands ask it for the time."""
    await asyncio.to_thread(said, plane.kubeconfig, "bash", "-euc", command)


async def until_well(users: Users, *expected: str) -> None:
    """Ready again, by kwok's stages alone."""

    def well(nodes: list[Json]) -> bool:
        return set(expected) <= set(names(filter(is_true("Ready"), nodes)))

    await users.until(NODES, well, "well")


def conditions(node: Json) -> dict[str, str]:
    return {each["type"]: each["status"] for each in node["status"]["conditions"]}
