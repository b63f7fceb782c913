"""Whatever a cluster is like, a forecast of it can be made, shown, and starts nothing that is forbidden."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from tenure.cli.forecast.asjson import to_json
from tenure.cli.forecast.foretell import Setting
from tenure.cli.forecast.page import as_page
from tenure.cli.forecast.text import as_text
from tenure.core.forecast.forecast import Horizon, forecast
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.windows.windows import closed_by, windows_for_commands
from tenure.model.settings import Settings
from tests.properties.clusters import NOW, Cluster, clusters
from tests.properties.thoroughness import reached, tried
from tests.snapshots import snapshot_with

HORIZON = Horizon(timedelta(days=3))
SETTING = Setting(where="here")


@tried(60)
@given(cluster=clusters())
def test_it_keeps_to_windows_and_to_the_horizon(cluster: Cluster) -> None:
    snapshot = snapshot_with(*cluster.objects, observations=cluster.observations)
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


def test_random_clusters_have_starts_of_every_kind() -> None:
    """Else the others would say nothing."""

    def look(cluster: Cluster) -> set[bool]:
        found = forecast(snapshot_with(*cluster.objects), Settings(), NOW, HORIZON)
        return {one.replaced for one in found.starts}

    assert reached(clusters(), look, {True, False}, within=500) == {True, False}


@tried(60)
@given(cluster=clusters(), seed=st.integers(0, 2**16))
def test_it_can_be_shown_and_does_not_depend_on_the_order_of_lists(
    cluster: Cluster, seed: int
) -> None:
    shuffled = list(cluster.objects)
    random.Random(seed).shuffle(shuffled)
    first, second = (
        forecast(snapshot_with(*objects), Settings(), NOW, HORIZON)
        for objects in (cluster.objects, shuffled)
    )
    assert to_json(first, SETTING) == to_json(second, SETTING)
    assert as_text(first, SETTING) == as_text(second, SETTING)
    json.loads(to_json(first, SETTING))
    page = as_page(first, SETTING).partition("\n")[2]
    ElementTree.fromstring(page)  # noqa: S314  # our own
