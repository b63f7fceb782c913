"""Whatever a cluster is like, a forecast of it can be made, shown, and starts nothing that is forbidden."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from tenure.cli.forecast.asjson import to_json
from tenure.cli.forecast.forecasting import Setting
from tenure.cli.forecast.page import as_page
from tenure.cli.forecast.text import as_text
from tenure.core.forecast.forecast import Horizon, forecast
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.windows.windows import closed_by, windows_for_commands
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import NODEPOOL
from tenure.model.settings import Settings
from tests.core.build import a_claim, a_node, a_pod, a_pool, ago, condition
from tests.properties.clusters import Cluster, clusters
from tests.properties.drawn.basics import NOW
from tests.properties.thoroughness import reached, tried
from tests.snapshots import snapshot_with

HORIZON = Horizon(timedelta(days=3))
SETTING = Setting(where="here")
POOL = {NODEPOOL: "extra"}
SHARES = ("1", "30%", "100%")


def with_candidates(cluster: Cluster, share: str) -> list[ApiObject]:
    """The cluster, and a pool in which six nodes have drifted: random ones rarely may start."""
    found: list[ApiObject] = [a_pool("extra", disruption={"budgets": [{"nodes": share}]})]
    for index in range(6):
        name, said = f"extra-{index}", [condition("Drifted", at=ago(60 * index))]
        found += [
            a_claim(name, labels=POOL, conditions=said, spec={"expire_after": "30h"}),
            a_node(f"node-{name}", claim=name, labels=POOL),
            a_pod(f"pod-{name}", node=f"node-{name}"),
        ]
    return [*cluster.objects, *found]


@tried(60)
@given(cluster=clusters(), share=st.sampled_from(SHARES))
def test_it_keeps_to_windows_and_to_the_horizon(cluster: Cluster, share: str) -> None:
    objects = with_candidates(cluster, share)
    snapshot = snapshot_with(*objects, observations=cluster.observations)
    found = forecast(snapshot, Settings(), NOW, HORIZON)
    instants = [one.at for one in found.starts]
    assert instants == sorted(instants)
    assert all(NOW <= at <= NOW + HORIZON.span for at in instants)
    assert len({(one.claim, one.generation) for one in found.starts}) == len(instants)
    for one in found.starts:
        actions = TRAITS[Disruption(one.reason)].window_actions
        node = snapshot.nodes[snapshot.claims[one.claim].status.node_name]
        windows = windows_for_commands(actions, snapshot)
        assert closed_by(windows, node, actions, one.at) is None


def test_they_do_start() -> None:
    """Else the other tests would say nothing."""

    def look(cluster: Cluster) -> set[bool]:
        found = forecast(snapshot_with(*with_candidates(cluster, "1")), Settings(), NOW, HORIZON)
        return {bool(found.starts)}

    assert True in reached(clusters(), look, {True}, within=50)


@tried(60)
@given(cluster=clusters(), seed=st.integers(0, 2**16))
def test_it_can_be_shown_and_does_not_depend_on_the_order_of_lists(
    cluster: Cluster, seed: int
) -> None:
    listed = with_candidates(cluster, "30%")
    shuffled = list(listed)
    random.Random(seed).shuffle(shuffled)
    first, second = (
        forecast(snapshot_with(*objects), Settings(), NOW, HORIZON)
        for objects in (listed, shuffled)
    )
    assert to_json(first, SETTING) == to_json(second, SETTING)
    assert as_text(first, SETTING) == as_text(second, SETTING)
    json.loads(to_json(first, SETTING))
    page = as_page(first, SETTING).partition("\n")[2]
    ElementTree.fromstring(page)  # noqa: S314  # our own
