"""Pods that take their time to stop: waited for, cut at the deadline, and never beside their successor.

The API knows one pod of a name. That the old one has stopped before it is taken out of the API is
what keeps two of them from running, so only its kubelet may do that, or a program that knows that
its instance is gone.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Final

from tenure.model.api.resource import PODS
from testbed.controlplane import ControlPlane
from tests.builders import Manifest, a_stateful_set
from tests.real.deadlines import NEVER, STOPS_AFTER, Leaving, a_marked_pod, a_place, in_place, tell
from tests.real.terminations import Life
from tests.real.users import names, running

SECOND: Final = timedelta(seconds=1)
#: After its grace, or its node's deadline, a pod that is still there is not waited for any longer.
PATIENCE: Final = timedelta(minutes=1)


def a_slow_set(name: str, place: str, *, grace: int, stops_after: str) -> Manifest:
    return a_stateful_set(
        name,
        cpu="100m",
        terminationGracePeriodSeconds=grace,
        annotations={STOPS_AFTER: stops_after},
        **in_place(place),
    )


def test_slow_pods_are_waited_for_and_none_of_them_ever_runs_twice(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving) -> None:
        await leaving.settle(
            a_place("patient", "10m"),
            a_slow_set("slow", "patient", grace=3, stops_after="15s"),
            a_slow_set("graceless", "patient", grace=0, stops_after="10s"),
            a_place("hasty", "0s"),
            a_slow_set("rushed", "hasty", grace=300, stops_after="15s"),
            a_slow_set("instant", "hasty", grace=0, stops_after="10s"),
            a_place("bounded", "20s"),
            a_slow_set("hung", "bounded", grace=3, stops_after=NEVER),
            a_place("cut", "30s"),
            a_marked_pod(
                "long", {STOPS_AFTER: NEVER}, terminationGracePeriodSeconds=300, **in_place("cut")
            ),
            pods=6,
        )
        await asyncio.gather(patient(leaving), hasty(leaving), hung(leaving), cut(leaving))
        await leaving.users.until(PODS, lambda pods: len(running(pods)) == 5, "running again")

    tell(cluster, tmp_path, "slow", story)


async def patient(leaving: Leaving) -> None:
    """Longer than its grace, and the node waits; no grace at all is a second."""
    slow, graceless = await leaving.pod("slow-0"), await leaving.pod("graceless-0")
    claim, _ = await leaving.leave("patient")
    old = await leaving.seen.gone(slow)
    assert old.gone >= old.told + 15 * SECOND
    without = await leaving.seen.gone(graceless)
    assert without.gone >= without.told + 10 * SECOND
    node = await leaving.seen.node_gone(claim)
    assert node.ended > max(old.ended, without.ended), "it waits for them"
    (asked,) = leaving.audit.orders("slow-0")
    assert (asked.verb, asked.uid, asked.seconds) == ("evict", old.uid, None)
    (asked,) = leaving.audit.orders("graceless-0")
    assert (asked.verb, asked.uid, asked.seconds) == ("evict", without.uid, 1)
    await succeeded(leaving, "slow-0", old)
    await succeeded(leaving, "graceless-0", without)


async def hasty(leaving: Leaving) -> None:
    """Now is a second from now; the node still waits for the stop, for a minute."""
    pods = {name: await leaving.pod(name) for name in ("rushed-0", "instant-0")}
    claim, deadline = await leaving.leave("hasty")
    for name, seconds in (("rushed-0", 15), ("instant-0", 10)):
        old = await leaving.seen.gone(pods[name])
        assert old.told >= deadline
        assert old.gone >= old.told + seconds * SECOND
        assert [(o.verb, o.seconds) for o in leaving.audit.orders(name)] == [("delete", 1)]
        await succeeded(leaving, name, old)
    await leaving.seen.node_gone(claim)


async def hung(leaving: Leaving) -> None:
    """The node goes a minute after the grace, with its instance; only then the pod's object."""
    pod = await leaving.pod("hung-0")
    claim, deadline = await leaving.leave("bounded")
    node = await leaving.seen.node_gone(claim)
    old = leaving.seen.pods[pod["metadata"]["uid"]]
    assert old.stops_by[-1] <= deadline
    assert node.gone >= old.stops_by[-1] + PATIENCE
    assert (await leaving.seen.gone(pod)).ended > node.ended
    await succeeded(leaving, "hung-0", node)


async def cut(leaving: Leaving) -> None:
    """Told by hand to stop within five minutes, and then its node has half a minute."""
    pod = await leaving.pod("long")
    await leaving.users.delete(PODS, pod)
    told = (await leaving.seen.told(pod)).told
    claim, deadline = await leaving.leave("cut")
    node = await leaving.seen.node_gone(claim)
    life = leaving.seen.pods[pod["metadata"]["uid"]]
    assert life.stops_by == [told + 300 * SECOND, deadline], "by the API server's arithmetic"
    (order,) = leaving.audit.orders("long")
    assert (order.verb, order.uid) == ("delete", life.uid)
    assert order.seconds == (deadline - told) // SECOND
    assert node.gone >= deadline + PATIENCE


async def succeeded(leaving: Leaving, name: str, after: Life) -> None:
    """One more pod of that name was made, after the end of another thing."""
    await leaving.users.until(
        PODS, lambda pods: name in names(running(pods)), f"with another {name}"
    )
    assert (await leaving.seen.successor(name)).born > after.ended
