"""Whether kube-scheduler does what was planned, over 5,000 random pods on a real control plane.

    python -m benchmarks.run agreement         needs the test bed (make bed); about half an hour
    python benchmarks/bench_agreement.py [--pods 5000] [--round 250] [--seed 1]

Pods with spread, affinity, anti-affinity, host ports, volumes and priorities come in rounds; before each, some of
those that are there go. A pod disagrees when it needed another node than the one that was launched for it,
or is left pending; each is printed with what kube-scheduler said of it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure, Figures
from tenure.model.api.resource import NODES
from testbed.controlplane import EVERY_CONTROLLER, ControlPlane, control_plane
from tests.real.account import NAMESPACE, account, install_account
from tests.real.agreement import Agreement, Disagreement, Rounds, explained
from tests.real.cluster import install_crds
from tests.real.process import tenure_run
from tests.real.randomworkloads import surroundings
from tests.real.users import users_at

PODS: Final = 5_000
EACH_ROUND: Final = 250
FLAGS: Final = (f"--leader-election-namespace={NAMESPACE}",)
#: One in a thousand.
DISAGREEMENTS_MAX: Final = 5


def measure(pods: int = PODS, each_round: int = EACH_ROUND, seed: int = 1) -> Figures:
    with (
        control_plane(
            controllers=EVERY_CONTROLLER, scheduler=True, kwok=True, storage=True
        ) as plane,
        tempfile.TemporaryDirectory() as folder,
    ):
        install_crds(plane)
        install_account(plane)
        with tenure_run(account(plane), Path(folder), *FLAGS) as tenure:
            tenure.until_leading()
            came, found = asyncio.run(_rounds(plane, pods, each_round, seed))
    print(f"  disagreements: {explained(found)}")
    kinds = Counter(one.kind for one in found)
    print(f"  by kind: {dict(kinds)}")
    left = sum(not one.node for one in found)
    return Figures(
        title=f"agreement with kube-scheduler, {came:,} pods, seed {seed}",
        relative=(
            Figure(what="pods that disagree", value=len(found), limit=DISAGREEMENTS_MAX),
            Figure(what="of these left pending", value=left, limit=0),
        ),
        absolute=(),
    )


async def _rounds(
    plane: ControlPlane, pods: int, each_round: int, seed: int
) -> tuple[int, list[Disagreement]]:
    """How many came, and those that disagree."""
    async with users_at(plane, "agreement") as users:
        await users.apply(*surroundings())
        agreement, rounds, came = Agreement(users), Rounds(users, seed), 0
        async with agreement.watching():
            while came < pods:
                came += await rounds.next(min(each_round, pods - came))
                await agreement.settled(came)
                found, nodes = agreement.disagreements(), len(await users.all(NODES))
                print(f"  {came} pods, {nodes} nodes, {len(found)} disagree", flush=True)
            return came, agreement.disagreements()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench_agreement", allow_abbrev=False)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--round", type=int, default=EACH_ROUND)
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args(arguments)
    figures = measure(wanted.pods, wanted.round, wanted.seed)
    for figure in figures.relative:
        print(f"  {figure}")
    return 0 if figures.kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
