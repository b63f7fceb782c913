"""A look at a cluster that Tenure runs beside Karpenter in: the same levers as the replica decides on."""

from __future__ import annotations

from tenure.cli.cluster.read import ClusterReading, read
from tenure.cli.lint.cluster import remarks_on_cluster
from tenure.core.reasons import Reason
from tenure.model.settings import Settings
from tenure.providers.absent import NO_PROVIDER
from tenure.runtime.readonly import LookOnlyTransport
from tenure.schema.findings import Code
from tenure.sim.world import World
from tests.cli.readclusters import a_transport
from tests.scenarios.test_beside_karpenter import KARPENTER, MINUTE, freeze
from tests.scenarios.test_beside_scale import put_nodes

BESIDE = Settings(beside_karpenter=True)


def seen(world: World) -> ClusterReading:
    found: list[ClusterReading] = []

    async def story() -> None:
        door = LookOnlyTransport(a_transport(world))
        found.append(await read(door, BESIDE, NO_PROVIDER, world.environment.clock))

    world.loop.run_until_complete(story())
    return found[0]


def test_plan_and_explain_show_the_lever_that_would_be_set_and_ask_no_cloud() -> None:
    with World() as world:
        put_nodes(world, 2)
        world.apply(KARPENTER)
        world.apply(freeze(0 * MINUTE, 60 * MINUTE))
        reading = seen(world)
        verdicts = reading.evaluated.evaluator.about("Node", "node-0001")
        assert [one.reason for one in verdicts] == [Reason.LEVER_SET, Reason.LEVER_OFF]
        assert reading.notes == ()


def test_lint_says_what_a_window_does_beyond_what_it_names_and_what_it_does_not() -> None:
    with World() as world:
        put_nodes(world, 1)
        for name, actions in (
            ("drift", ["Drift"]),
            ("both", ["Drift", "Consolidation"]),
            ("more", ["Drift", "Consolidation", "Expiration"]),
        ):
            window = freeze(0 * MINUTE, 60 * MINUTE, name)
            world.apply({**window, "spec": {**window["spec"], "actions": actions}})
        remarks, _ = remarks_on_cluster(seen(world).evaluated.snapshot, world.now)
        found = {(one.about, one.finding.code): one.finding.message for one in remarks}
        blocks = found.pop(("MaintenanceWindow/drift", Code.BLOCKS_MORE))
        assert "consolidation" in blocks
        lever = found.pop(("MaintenanceWindow/more", Code.NO_LEVER))
        assert lever == "beside Karpenter the window has no effect on Expiration"
        assert not {code for _, code in found} & {Code.BLOCKS_MORE, Code.NO_LEVER}
