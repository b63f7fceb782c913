"""Pods whose requirements no claim may name, beside one that needs the same node.

The rules are the CRD's, so it takes a real API server to say that our claims obey them.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tenure.model.api.resource import PODS
from tenure.model.settings import Settings
from testbed.controlplane import ControlPlane
from tests.builders import a_cluster, a_deployment
from tests.real.story import tenure_at_work
from tests.real.users import running
from tests.scenarios.test_refused_claims import HOSTNAME, SATISFIED, no, wanting

SETTINGS = Settings(cluster_name="bed", drain_min=timedelta(seconds=1))
VARIANTS = ("hostname", "legacy", "reserved", "many")


@pytest.mark.parametrize("name", VARIANTS)
def test_what_every_new_node_satisfies_keeps_no_pod_waiting(
    cluster: ControlPlane, name: str
) -> None:
    asyncio.run(_beside(cluster, SATISFIED[name], both_run=True))


def test_a_pod_that_no_new_node_satisfies_waits_alone(cluster: ControlPlane) -> None:
    asyncio.run(_beside(cluster, wanting(no(HOSTNAME)), both_run=False))


async def _beside(cluster: ControlPlane, odd: dict[str, Any], *, both_run: bool) -> None:
    expected = ["odd", "web"] if both_run else ["web"]
    async with tenure_at_work(cluster, "refused", settings=SETTINGS) as story:
        # Both are there before anything can be launched: so one decision is about both.
        await story.apply(a_deployment("odd", **odd), a_deployment("web"))
        await story.until(PODS, lambda pods: len(pods) == 2, "there")
        await story.apply(*a_cluster())
        await story.until(
            PODS,
            lambda pods: sorted(p["metadata"]["labels"]["app"] for p in running(pods)) == expected,
            f"{expected} running",
        )
        assert len(await story.claims()) == 1
