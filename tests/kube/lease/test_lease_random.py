"""Replicas that lose answers, connections, time and the Lease itself, in any order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tenure.model.api.resource import LEASES
from tests.kube.leasereplicas import NAMESPACE, LeaseSetup, Replica, told

HOUR = timedelta(hours=1)


ELSEWHERE = "karpenter"
troubles = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from(["down", "slow", "pause", "lose", "delete"]),
        st.sampled_from([0.3, 1, 3, 8, 12, 17, 25]),
        st.booleans(),
    ),
    max_size=12,
)


@given(troubles, st.integers(0, 1000), st.booleans())
def test_whatever_happens_two_never_act_at_once_and_in_the_end_one_does(
    troubles: list[tuple[str, str, float, bool]], seed: int, fresh: bool
) -> None:
    """Each act looks at all fences: see ``LeaseSetup.acted``. One of four is in another namespace."""

    async def story(setup: LeaseSetup) -> None:
        await setup.namespace(ELSEWHERE)
        chance = Random(seed)
        replicas = {
            name: setup.replica(
                name,
                skew=chance.uniform(-1, 1) * HOUR,
                random=Random(seed),
                namespace=ELSEWHERE if name == "d" else NAMESPACE,
            )
            for name in "abcd"
        }
        for name, trouble, seconds, heals in troubles:
            way = replicas[name].way
            match trouble:
                case "down":
                    way.down = True
                case "slow":
                    way.latency = seconds / 5
                case "pause":
                    way.pause()
                case "lose":
                    way.lose += ["PATCH", "GET", "POST"]
                case "delete":
                    await _deleted(setup, ELSEWHERE if name == "d" else NAMESPACE)
            await asyncio.sleep(seconds)
            if heals:
                _heal(replicas.values())
        _heal(replicas.values())
        await asyncio.sleep(120)
        assert [one.leads for one in replicas.values()].count(True) == 1

    told(story, fresh=fresh)


def _heal(replicas: Iterable[Replica]) -> None:
    for replica in replicas:
        way = replica.way
        way.down, way.latency, way.lose = False, 0.0, []
        way.wake()


async def _deleted(setup: LeaseSetup, namespace: str) -> None:
    items, _ = await setup.client.list_all(LEASES, namespace)
    if items:
        await setup.delete(namespace)
