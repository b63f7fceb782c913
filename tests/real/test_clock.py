"""The wall clock of a running replica is set, back and ahead, by libfaketime.

Its monotonic clock goes on, as on a machine whose clock an administrator or NTP has set.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tenure.model.api.names import INSTANCE_TYPE
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from testbed import faketime
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_node_class, a_pool, a_requirement
from tests.real import unhealthy as nodehealth
from tests.real.account import account
from tests.real.deadlines import in_place
from tests.real.process import Process, tenure_run
from tests.real.scene import BRISK, EIGHT_CORES
from tests.real.unhealthy import a_forceful_pool
from tests.real.users import Json, Users, is_true, names, running, users_at

#: Less than the step: a clock that is an hour ahead has both behind it.
TOLERATED: Final = {"policies": [{"conditionType": "Ready", "toleration": "20m"}]}
#: How long everything is left as it is, in seconds.
WATCHED: Final = 15


class SetClock:
    """What libfaketime reads before it answers: how far the clock is off."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.set("+0")
        self.environment = {
            "LD_PRELOAD": str(faketime.found()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, offset: str) -> None:
        part = self._file.with_suffix(".part")
        part.write_text(f"{offset}\n")
        part.replace(self._file)  # In one step: it is read at any moment.


def metric(process: Process, series: str) -> float:
    found = re.search(rf"^{re.escape(series)} (\S+)$", process.get("/metrics")[1], re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.mark.process_story
@pytest.mark.parametrize(("offset", "direction"), [("-1h", "back"), ("+1h", "ahead")])
def test_a_step_of_the_clock_stops_nothing_and_ends_nothing(
    cluster: ControlPlane, tmp_path: Path, offset: str, direction: str
) -> None:
    asyncio.run(_story(cluster, tmp_path, offset, direction))


async def _story(cluster: ControlPlane, folder: Path, offset: str, direction: str) -> None:
    clock = SetClock(folder)
    async with users_at(cluster, f"clock-{direction}") as users:
        with tenure_run(account(cluster), folder, *BRISK, **clock.environment) as tenure:
            tenure.until_leading()
            await _boots_and_is_unhealthy(users)
            before = names(await users.all(NODE_CLAIMS))
            turns = metric(tenure, "tenure_turns_total")

            clock.set(offset)
            tenure.until_said(f"the wall clock was set {direction} by ")
            tenure.until_said("nothing is taken away, and no deadline is set, until they agree")
            # The loop works: a pod that comes now gets a node.
            late = a_deployment("late", **in_place("late"))
            await users.apply(_plain_pool("late"), late)
            await users.until(PODS, lambda pods: _runs("late-", pods), "late running")
            await asyncio.sleep(WATCHED)
            assert metric(tenure, "tenure_turns_total") > turns
            assert metric(tenure, "tenure_leader") == 1
            series = f'tenure_clock_steps_total{{direction="{direction}"}}'
            assert metric(tenure, series) == 1
            assert tenure.get("/healthz")[0] == 200
            claims = await users.all(NODE_CLAIMS)
            assert set(before) < set(names(claims)), "nothing was taken away"
            assert not [claim for claim in claims if _leaving(claim)]

            clock.set("+0")
            tenure.until_said("agrees with the API server's again")
            (spare,) = [one for one in claims if one["metadata"]["name"] not in before]
            await users.delete(NODE_CLAIMS, spare)
            await users.until(
                NODE_CLAIMS,
                lambda claims: names([spare])[0] not in names(claims),
                "gone: what was held goes on",
            )
            assert set(before) <= set(names(await users.all(NODE_CLAIMS)))


async def _boots_and_is_unhealthy(users: Users) -> None:
    """One claim whose Node does not come for long, and one whose Node is not Ready."""
    await users.apply(
        a_node_class(),
        a_node_class("slow", nodeRegistrationDelay="30m"),
        _plain_pool("slow", node_class="slow"),
        a_deployment("slow", **in_place("slow")),
        a_forceful_pool("unhealthy", repair=TOLERATED),
        a_deployment("web", **in_place("unhealthy")),
    )
    await users.until(PODS, lambda pods: _runs("web-", pods), "web running")
    claims = await users.until(
        NODE_CLAIMS,
        lambda claims: (
            sum(map(is_true("Launched"), claims)) == 2
            and sum(map(is_true("Initialized"), claims)) == 1
        ),
        "launched, and one of them initialized",
    )
    (unhealthy,) = [claim for claim in claims if is_true("Initialized")(claim)]
    await nodehealth.say(users, unhealthy, "Ready", "False")
    await users.until(NODES, lambda nodes: not any(map(is_true("Ready"), nodes)), "not Ready")


def _plain_pool(name: str, **more: Any) -> Json:
    return a_pool(name, requirements=[a_requirement(INSTANCE_TYPE, EIGHT_CORES)], **more)


def _runs(prefix: str, pods: list[Json]) -> bool:
    return any(name.startswith(prefix) for name in names(running(pods)))


def _leaving(thing: Json) -> bool:
    return "deletionTimestamp" in thing["metadata"]
