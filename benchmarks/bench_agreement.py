"""Whether kube-scheduler does what was planned, over 5,000 random pods on a real control plane.

    python -m benchmarks.run agreement         needs the test bed (make bed); four minutes
    python -m benchmarks.bench_agreement [--pods 5000] [--round 250] [--seed 1] [--log FOLDER]

Pods with spread, affinity, anti-affinity, host ports, volumes and priorities come in rounds; before each, some of
those that are there go. What it is for a pod to disagree says ``tests/real/agreement.py``; each that does is printed with
what kube-scheduler said of it, when it was nominated to which node, and which pods have the room that was planned for it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure, Figures
from tenure.model.api.resource import NODES
from testbed.controlplane import EVERY_CONTROLLER, ControlPlane, control_plane
from tests.real.account import NAMESPACE, account, install_account
from tests.real.agreement import (
    ROUNDS_EACH,
    Agreement,
    Rounds,
    explained,
    launched_after_all,
)
from tests.real.cluster import install_crds
from tests.real.process import tenure_run
from tests.real.randomworkloads import kind_of, surroundings
from tests.real.users import users_at

PODS: Final = 5_000
EACH_ROUND: Final = 250
FLAGS: Final = (f"--leader-election-namespace={NAMESPACE}", "--log-level=debug")
#: One in a thousand.
DISAGREEMENTS_MAX: Final = 5


def measure(
    pods: int = PODS, each_round: int = EACH_ROUND, seed: int = 1, log: Path | None = None
) -> Figures:
    """``log``: a folder in which the log of Tenure is kept, one file for each seed."""
    name = f"agreement-{seed}"
    if log:
        log.mkdir(parents=True, exist_ok=True)
        # Tenure appends, and what an earlier run says of a pod of the same name would count here.
        (log / f"{name}.log").unlink(missing_ok=True)
    with (
        control_plane(
            controllers=EVERY_CONTROLLER, scheduler=True, kwok=True, storage=True
        ) as plane,
        tempfile.TemporaryDirectory() as folder,
    ):
        install_crds(plane)
        install_account(plane)
        with tenure_run(account(plane), log or Path(folder), *FLAGS, name=name) as tenure:
            tenure.until_leading()
            came, agreement = asyncio.run(_rounds(plane, pods, each_round, seed))
            found = agreement.disagreements()
            known = {one.pod for one in found}
            others = {
                p: how for p, how in launched_after_all(tenure.lines()).items() if p not in known
            }
    for pod, how in others.items():
        print("\n    ".join((f"{pod}: {how}", *agreement.story_of(pod))))
    kinds = Counter([*(one.kind for one in found), *map(kind_of, others)])
    print(f"  by kind: {dict(kinds)}")
    left = sum(not one.node for one in found)
    return Figures(
        title=f"agreement with kube-scheduler, {came:,} pods, seed {seed}",
        relative=(
            Figure(what="pods that disagree", value=sum(kinds.values()), limit=DISAGREEMENTS_MAX),
            Figure(what="of these left pending", value=left, limit=0),
        ),
        absolute=(),
    )


async def _rounds(
    plane: ControlPlane, pods: int, each_round: int, seed: int
) -> tuple[int, Agreement]:
    """How many came, and what was seen of them."""
    async with AsyncExitStack() as stack:
        everyone = [
            await stack.enter_async_context(users_at(plane, f"agreement-{n}"))
            for n in range(-(-pods // (each_round * ROUNDS_EACH)))
        ]
        users = everyone[0]
        await users.apply(*surroundings())
        agreement, rounds, came = Agreement(*everyone), Rounds(*everyone, seed=seed), 0
        told: set[str] = set()
        async with agreement.watching():
            while came < pods:
                came += await rounds.next(min(each_round, pods - came))
                await agreement.settled(came)
                found, nodes = agreement.disagreements(), len(await users.all(NODES))
                print(f"  {came} pods, {nodes} nodes, {len(found)} disagree", flush=True)
                if new := [one for one in found if one.pod not in told]:
                    print(explained(new), flush=True)
                told |= {one.pod for one in new}
            return came, agreement


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench_agreement", allow_abbrev=False)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--round", type=int, default=EACH_ROUND)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path)
    wanted = parser.parse_args(arguments)
    figures = measure(wanted.pods, wanted.round, wanted.seed, wanted.log)
    for figure in figures.relative:
        print(f"  {figure}")
    return 0 if figures.kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
