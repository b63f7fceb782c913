"""What was planned is what kube-scheduler then does: random pods with every kind of constraint."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from testbed.controlplane import ControlPlane
from tests.real.agreement import Agreement, Rounds, explained, launched_after_all
from tests.real.randomworkloads import surroundings
from tests.real.scene import Scene, tell

PODS: Final = 100
#: Of two rounds, one in fifty: the fewer pods there are, the more a busy host adds. `make bench ARGS=agreement` counts
#: them over 5,000, where one in a thousand is the limit.
DISAGREEMENTS_MAX: Final = 4


def test_pods_get_the_nodes_that_were_planned_for_them(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        users = scene.users
        await users.apply(*surroundings())
        agreement, rounds = Agreement(users), Rounds(users, seed=1)
        with scene.tenure("tenure", "--log-level=debug") as tenure:
            async with agreement.watching():
                came = await rounds.next(PODS)
                await agreement.settled(came)
                came += await rounds.next(PODS)
                await agreement.settled(came)
                found = agreement.disagreements()
            others = launched_after_all(tenure.lines())
            tenure.kill()
        assert not [one for one in found if not one.node], explained(found)
        pods = {one.pod for one in found} | set(others)
        assert len(pods) <= DISAGREEMENTS_MAX, f"{explained(found)}\n{others}"

    tell(cluster, tmp_path, "agreement", story)
