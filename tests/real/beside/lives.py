"""How both sides live while a story is told: through, or killed at their writes and started again.

A story says at its end how many writes there were, and after which of them its side was killed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from itertools import chain, repeat
from typing import Any, Final, Protocol

from tests.real.beside.accompanied import Accompanied
from tests.real.beside.doorway import Doorway
from tests.real.beside.mortal import WRITES
from tests.real.process import program
from tests.real.users import LOOK_EVERY

WHOLE, KILLED = "whole", "killed after each write"
#: Tenure lives through.
KARPENTER: Final = "Karpenter-killed"
#: Of Tenure, and of Karpenter.
LIVES: Final = (WHOLE, KILLED, KARPENTER)
#: After how many writes each life of Karpenter ends, the last excepted; in the environment, for others.
MOMENTS: Final = "TESTBED_KARPENTER_WRITES"
FEW: Final = (1, 4, 9)


class Lives(Protocol):
    """The lives of the side that is killed."""

    #: The writes after which it was killed.
    ends: list[str]

    def may_end(self) -> None:
        """The story has begun."""

    def said(self) -> str:
        """How many writes there were, and after which it was killed."""


class Whole:
    def __init__(self) -> None:
        self.ends: list[str] = []

    def may_end(self) -> None:
        pass

    def said(self) -> str:
        return "no side was killed"


class OfTenure(Whole):
    """Each of its writes is the last of a life."""

    def said(self) -> str:
        number = len(self.ends)
        return f"Tenure made {number} writes, and was killed after each: {', '.join(self.ends)}"


class OfKarpenter(Whole):
    def __init__(self, doorway: Doorway) -> None:
        super().__init__()
        self._doorway = doorway
        self._moments = moments()

    def may_end(self) -> None:
        """The next life, too; the last one does not end, and its writes are counted."""
        self._doorway.count(next(self._moments))

    def ended(self) -> None:
        number = self._doorway.killed_at[-1]
        self.ends.append(f"{number} ({self._doorway.writes[number - 1]})")

    def said(self) -> str:
        number = len(self._doorway.writes)
        return (
            f"Karpenter made {number} writes, and was killed after {', '.join(self.ends) or 'none'}"
        )


def moments() -> Iterator[float]:
    """Writes of each life, for ever."""
    asked = os.environ.get(MOMENTS)
    numbers = FEW if asked is None else [int(number) for number in asked.split(",") if number]
    return chain(numbers, repeat(float("inf")))


@asynccontextmanager
async def living(seen: Accompanied, life: str) -> AsyncIterator[Lives]:
    """Tenure and Karpenter in one of ``LIVES``."""
    told: Lives
    if life == KILLED:
        told = OfTenure()
        async with meanwhile(_tenure_dies_and_lives(seen, told)):
            yield told
    elif life == KARPENTER:
        async with _through_a_doorway(seen) as doorway:
            told = of_karpenter = OfKarpenter(doorway)
            with seen.tenure("tenure"):
                async with meanwhile(_karpenter_dies_and_lives(seen, doorway, of_karpenter)):
                    yield told
        assert told.ends, "Karpenter was never killed"
    else:
        told = Whole()
        with seen.tenure("tenure"):
            yield told
    print(f"\n{seen.users.namespace}: {told.said()}")  # noqa: T201


@asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """It goes on while the block lasts, and must not end by itself."""
    task = asyncio.create_task(work)
    try:
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _tenure_dies_and_lives(seen: Accompanied, told: Lives) -> None:
    while True:
        name = f"life-{len(told.ends)}"
        mortal = program("tests.real.beside.mortal")
        with seen.tenure(name, program=mortal, **{WRITES: "1"}) as tenure:
            while tenure.running:
                await asyncio.sleep(LOOK_EVERY)
            last = tenure.log_file.read_text(errors="replace").splitlines()[-1]
            assert last.startswith("killed after"), last
        told.ends.append(last.removeprefix("killed after "))
        await seen.renew_lease()


async def _karpenter_dies_and_lives(seen: Accompanied, doorway: Doorway, told: OfKarpenter) -> None:
    while True:
        await doorway.shut.wait()
        await asyncio.to_thread(seen.karpenter.kill)
        told.ended()
        doorway.let_in()
        told.may_end()
        await seen.restart_karpenter()


@asynccontextmanager
async def _through_a_doorway(seen: Accompanied) -> AsyncIterator[Doorway]:
    """Karpenter reaches the API server through it while the block lasts."""
    karpenter, direct = seen.karpenter, seen.karpenter.kubeconfig
    doorway = Doorway(direct, seen.folder)
    async with doorway.served():
        karpenter.kubeconfig = doorway.kubeconfig
        try:
            await seen.restart_karpenter()
            yield doorway
        finally:
            karpenter.kubeconfig = direct
            doorway.count(None)
            await asyncio.shield(seen.restart_karpenter())
