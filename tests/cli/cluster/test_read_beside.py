"""A look at a cluster that Tenure runs beside Karpenter in: the same levers as the replica decides on."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta

from tenure.cli.cluster.read import ClusterReading, read
from tenure.cli.explain.repairtext import repair_json, repair_outlook
from tenure.cli.forecast.forecasting import forecast_of
from tenure.cli.lint.cluster import remarks_on_cluster
from tenure.cli.plan.planning import plan_of
from tenure.cli.plan.text import Setting, as_text
from tenure.core.reasons import Reason
from tenure.model.api.names import EXPIRED_AT
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOL_POLICIES, NODE_POOLS
from tenure.model.settings import Settings
from tenure.providers.absent import NO_PROVIDER
from tenure.runtime.readonly import LookOnlyTransport
from tenure.schema.findings import Code
from tenure.sim.world import World
from tests.builders import a_pool
from tests.cli.readclusters import a_transport
from tests.scenarios.karpenterplayed import Accompanied
from tests.scenarios.test_beside_karpenter import KARPENTER, MINUTE, freeze
from tests.scenarios.test_beside_repair import FORCEFUL, karpenter, put_node
from tests.scenarios.test_beside_replacement import a_cluster
from tests.scenarios.test_beside_scale import put_nodes
from tests.scenarios.test_pool_policies import a_policy

BESIDE = Settings(beside_karpenter=True)


def seen(world: World, gates: str = "") -> ClusterReading:
    found: list[ClusterReading] = []
    settings = BESIDE
    if gates:
        settings = Settings(
            beside_karpenter=True, karpenter_version="1.15", karpenter_feature_gates=gates
        )

    async def story() -> None:
        door = LookOnlyTransport(a_transport(world))
        found.append(await read(door, settings, NO_PROVIDER, world.environment.clock))

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
        told = as_text(plan_of(reading.evaluated), Setting(where="here"))
        assert "blocks voluntary disruption of Node node-0000" in told


def test_lint_says_what_a_window_does_beyond_what_it_names_and_what_it_does_not() -> None:
    with World() as world:
        put_nodes(world, 1)
        for name, actions in (
            ("drift", ["Drift"]),
            ("both", ["Drift", "Consolidation"]),
            ("more", ["Drift", "Consolidation", "Expiration"]),
            ("repair", ["Repair"]),
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


def test_plan_and_explain_show_time_outs_and_repair_and_what_is_karpenters_of_it() -> None:
    with World() as world:
        world.apply(a_pool())
        world.apply(a_policy(readinessTTL="5m", repair=FORCEFUL))
        world.apply(KARPENTER)
        put_node(world)
        world.crash(stay_down=True)
        world.run(6 * MINUTE)
        reading = seen(world)
        verdicts = reading.evaluated.evaluator.about("NodeClaim", "stuck")
        assert verdicts[0].reason is Reason.READINESS_TIMEOUT
        row, remarks = outlook(reading)
        assert row == ("Ready", "replaced forcefully", None)
        assert remarks["new"].startswith("until its first Ready, readinessTTL 5m overrides")
        world.apply(karpenter("NodeRepair=true"))
        row, remarks = outlook(seen(world))
        assert row == ("Ready", "replaced forcefully", "switched off")
        assert remarks["off"].startswith("Karpenter 1.15 repairs nodes")
        world.store.delete(NODE_POOL_POLICIES, "", "usual")
        world.apply(karpenter())
        _, remarks = outlook(seen(world))
        assert remarks["new"].startswith("no readinessTTL is written for it")
        assert remarks["off"].startswith("NodePool general has no repair block")


def outlook(reading: ClusterReading) -> tuple[tuple[str | None, ...], dict[str, str]]:
    """What would be done about Ready, and what is said of the Node."""
    snapshot = reading.evaluated.snapshot
    found = repair_outlook(snapshot.nodes["node-stuck"], snapshot, BESIDE, reading.evaluated.at)
    assert found is not None
    row = repair_json(found)["conditions"][0]
    return (row["type"], row["then"], row["blockedBy"]), dict(found.remarks)


def test_lint_is_silent_on_expiration_where_a_policy_expires_softly() -> None:
    with World() as world:
        for manifest in a_cluster():
            world.apply(manifest)
        window = freeze(0 * MINUTE, 60 * MINUTE)
        world.apply({**window, "spec": {**window["spec"], "actions": ["Expiration"]}})
        remarks, _ = remarks_on_cluster(seen(world).evaluated.snapshot, world.now)
        assert Code.NO_LEVER not in {one.finding.code for one in remarks}
        aged = {"spec": {"template": {"spec": {"expireAfter": "720h"}}}}
        world.store.patch(NODE_POOLS, "", "general", aged)
        remarks, _ = remarks_on_cluster(seen(world).evaluated.snapshot, world.now)
        found = {one.finding.code: one.finding.message for one in remarks}
        assert "Karpenter expires by force: general (720h)" in found[Code.NO_LEVER]
        assert "Karpenter expires its nodes by force" in found[Code.INLINE_WINS]


def test_plan_shows_the_replacement_and_forecast_when_it_starts() -> None:
    known = "NodeRepair=false"
    with closing(Accompanied(*a_cluster())) as story:
        story.play(20 * MINUTE)
        foreseen = forecast_of(seen(story, known).evaluated, timedelta(hours=1), None)
        (start,) = foreseen.starts[:1]
        assert start.reason == "Expired"
        story.crash(stay_down=True)
        story.run(20 * MINUTE)
        verdicts = seen(story, known).evaluated.evaluator.in_force()
        reasons = {one.reason for one in verdicts}
        assert Reason.EXPIRED in reasons
        claim = story.the(NODE_CLAIMS)
        marked = {"metadata": {"annotations": {EXPIRED_AT: "2026-01-05T08:28:20Z"}}}
        story.store.patch(NODE_CLAIMS, "", claim["metadata"]["name"], marked)
        verdicts = seen(story, known).evaluated.evaluator.in_force()
        assert Reason.NEEDED_AS_REPLACEMENT in {one.reason for one in verdicts}
