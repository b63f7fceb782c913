"""What people do with a node that has to go: they delete it, force it, or bring its end forward."""

from __future__ import annotations

import asyncio
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tenure.model.api.names import DO_NOT_DISRUPT, TERMINATION_TIMESTAMP
from tenure.model.api.resource import DAEMON_SETS, NODE_CLAIMS, NODES, PODS
from testbed.controlplane import ControlPlane
from tests.builders import Manifest, a_deployment, a_pdb
from tests.folders import ROOT
from tests.real.deadlines import Leaving, a_place, in_place, tell
from tests.real.programs import said
from tests.real.terminations import stamp_of
from tests.real.users import names

SECOND: Final = timedelta(seconds=1)
PAGE: Final = ROOT / "docs" / "termination.md"
#: What the page calls things.
NODE, CLAIM, INSTANT = "node-general-x7k2p", "general-x7k2p", "2026-03-02T12:00:00Z"


def shown(beginning: str) -> str:
    """The only command of the page that begins so."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    commands = "".join(blocks).replace("\\\n", "").splitlines()
    (command,) = [command for command in commands if command.startswith(beginning)]
    return command


async def do(plane: ControlPlane, command: str) -> None:
    await asyncio.to_thread(said, plane.kubeconfig, *shlex.split(command))


def a_daemon_set(name: str) -> Manifest:
    manifest = a_deployment(name, cpu="100m", memory="64Mi") | {"kind": DAEMON_SETS.kind}
    del manifest["spec"]["replicas"]
    return manifest


def test_a_node_that_is_held_goes_when_it_is_deleted_and_drained_without_evictions(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    """Without a deadline nothing else forces a pod that is protected for ever."""

    async def story(leaving: Leaving) -> None:
        web = a_deployment(replicas=2, annotations={DO_NOT_DISRUPT: "true"})
        place = a_place("general")
        await leaving.settle(place, web, a_pdb(minAvailable=2), a_daemon_set("agent"), pods=3)
        claim = await leaving.claim_in("general")
        node = claim["status"]["nodeName"]
        held = await leaving.users.all(PODS)
        await do(cluster, shown("kubectl delete node").replace(NODE, node))
        await leaving.event("FailedDraining", node, "protects from disruption for ever")
        assert await leaving.events("TerminationGracePeriodExpiring", node) == []

        await do(cluster, shown("kubectl drain").replace(NODE, node))
        for pod in held:
            await leaving.seen.gone(pod)
        await leaving.seen.node_gone(claim)
        await leaving.scene.until_gone(claim)
        assert leaving.audit.evicted() == [n for n in names(held) if n.startswith("agent-")]
        await leaving.scene.all_run(3)

    tell(cluster, tmp_path, "forced", story)


def test_a_deadline_is_written_on_the_claim_and_can_be_brought_forward(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving) -> None:
        web = a_deployment(
            annotations={DO_NOT_DISRUPT: "true"},
            terminationGracePeriodSeconds=20,
            **in_place("bounded"),
        )
        await leaving.settle(a_place("bounded", "2h"), web, pods=1)
        claim = await leaving.claim_in("bounded")
        await stale(leaving)

        (pod,) = await leaving.users.all(PODS)
        (node,) = await leaving.users.all(NODES)
        await leaving.users.delete(NODES, node)
        deadline = await leaving.deadline(claim)
        deleted = (await leaving.claim_in("bounded"))["metadata"]["deletionTimestamp"]
        assert deadline == datetime.fromisoformat(deleted) + timedelta(hours=2)
        await leaving.event("FailedDraining", names([node])[0], "protects from disruption for ever")

        earlier = (datetime.now(UTC) + 45 * SECOND).replace(microsecond=0)
        annotate = shown("kubectl annotate nodeclaim").replace(CLAIM, names([claim])[0])
        await do(cluster, annotate.replace(INSTANT, f"{earlier:%Y-%m-%dT%H:%M:%SZ}"))
        life = await leaving.seen.gone(pod)
        assert life.told >= earlier - 20 * SECOND
        assert life.stops_by[-1] <= earlier
        await leaving.seen.node_gone(claim)
        await leaving.scene.until_gone(claim)
        await leaving.scene.all_run(1)

    tell(cluster, tmp_path, "stamped", story)


async def stale(leaving: Leaving) -> None:
    """A claim that stays has no deadline: what says so is taken off."""
    claim = await leaving.claim_in("bounded")
    stamp = {TERMINATION_TIMESTAMP: "2020-01-01T00:00:00Z"}
    await leaving.patch(NODE_CLAIMS, claim, annotations=stamp)
    (after,) = await leaving.users.until(
        NODE_CLAIMS, lambda claims: not any(map(stamp_of, claims)), "without a stamp"
    )
    assert "deletionTimestamp" not in after["metadata"]
    assert leaving.audit.orders() == []
