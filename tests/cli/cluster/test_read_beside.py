"""A look at a cluster that Tenure runs beside Karpenter in: the same levers as the replica decides on."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta

from tenure.cli.cluster.question import Question
from tenure.cli.cluster.read import ClusterReading, read
from tenure.cli.explain.asjson import to_json
from tenure.cli.explain.explanation import explanation
from tenure.cli.explain.repairtext import repair_json, repair_outlook
from tenure.cli.explain.text import as_text as explained_text
from tenure.cli.forecast.forecasting import forecast_of
from tenure.cli.lint.cluster import remarks_on_cluster
from tenure.cli.plan.planning import plan_of
from tenure.cli.plan.text import Setting, as_text
from tenure.core.reasons import Reason
from tenure.kube.lease.record import micro_time
from tenure.model.api.names import (
    DO_NOT_DISRUPT,
    DO_NOT_DISRUPT_BECAUSE,
    DO_NOT_DISRUPT_BY,
    EXPIRED_AT,
)
from tenure.model.api.resource import (
    DEPLOYMENTS,
    LEASES,
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOL_POLICIES,
    NODE_POOLS,
    NODES,
    Resource,
)
from tenure.model.settings import BESIDE_LEASE, IN_CHARGE_LEASE, Settings
from tenure.providers.absent import NO_PROVIDER
from tenure.runtime.readonly import LookOnlyTransport
from tenure.schema.findings import Code
from tenure.sim.world import World
from tests.builders import a_pool
from tests.cli.readclusters import a_transport
from tests.scenarios.karpenterinstalled import KARPENTER, install_karpenter
from tests.scenarios.karpenterplayed import Accompanied
from tests.scenarios.test_beside_karpenter import MINUTE, freeze
from tests.scenarios.test_beside_repair import FORCEFUL, karpenter, put_node
from tests.scenarios.test_beside_replacement import a_cluster
from tests.scenarios.test_beside_scale import put_nodes
from tests.scenarios.test_pool_policies import a_policy

BESIDE = Settings(beside_karpenter=True)
BESIDE_LEASED = Settings(beside_karpenter=True, lease_name=BESIDE_LEASE)


def seen(world: World, gates: str = "") -> ClusterReading:
    settings = BESIDE
    if gates:
        settings = Settings(
            beside_karpenter=True, karpenter_version="1.15", karpenter_feature_gates=gates
        )

    return look(world, settings)


def look(world: World, settings: Settings) -> ClusterReading:
    found: list[ClusterReading] = []

    async def story() -> None:
        door = LookOnlyTransport(a_transport(world))
        found.append(await read(door, settings, NO_PROVIDER, world.environment.clock))

    world.loop.run_until_complete(story())
    return found[0]


def test_plan_and_explain_show_the_lever_that_would_be_set_and_ask_no_cloud() -> None:
    with World() as world:
        put_nodes(world, 2)
        install_karpenter(world)
        world.apply(freeze(0 * MINUTE, 60 * MINUTE))
        reading = seen(world)
        verdicts = reading.evaluated.evaluator.about("Node", "node-0001")
        assert [one.reason for one in verdicts] == [Reason.LEVER_SET, Reason.LEVER_OFF]
        assert reading.notes == ()
        told = as_text(plan_of(reading.evaluated), Setting(where="here"))
        assert "once set it blocks voluntary disruption of Node node-0000" in told


def test_explain_without_a_replica_says_that_none_acts_and_what_would_be_set() -> None:
    with World() as world:
        put_nodes(world, 1)
        install_karpenter(world)
        world.apply(freeze(0 * MINUTE, 60 * MINUTE))
        told = explained(world, NODES, "node-0000")
        assert "\n  acts      none: no replica holds the Lease\n" in told
        assert (
            'karpenter.sh/do-not-disrupt: "true" is not set yet on Node node-0000; once set it blocks '
            "voluntary disruption of Node node-0000 by Karpenter until"
        ) in told
        assert "  meaning   The lever is to be set by the replica that acts: " in told
        world.run(MINUTE)
        put_lever(world, "node-0000")
        assert "is not set yet" not in explained(world, NODES, "node-0000"), "its marks are stale"


def test_explain_of_a_node_says_that_its_claim_has_drifted() -> None:
    """Karpenter writes that on the NodeClaim alone, and it is why the Node goes."""
    drifted = (
        "\n  drifted   NodeClaim claim-0000 has drifted since 2026-01-05T08:00:00Z; Karpenter replaces Node "
        "node-0000 when nothing blocks that\n"
    )
    with World() as world:
        put_nodes(world, 2)
        world.apply(KARPENTER)
        assert drifted in explained(world, NODES, "node-0000")
        assert drifted in explained(world, NODE_CLAIMS, "claim-0000")
        assert "has drifted" not in explained(world, NODES, "node-0001")


def test_a_lever_is_said_once_and_an_end_that_is_not_known_in_one_way() -> None:
    with World() as world:
        put_nodes(world, 1)
        install_karpenter(world)
        world.apply(freeze(0 * MINUTE, 60 * MINUTE))
        told = explained(world, NODES, "node-0000").partition("\nalso")[0]
        assert told.count(": MaintenanceWindow freeze") == 1
        assert "or change MaintenanceWindow freeze: actions, selector or schedules." in told
        window = freeze(0 * MINUTE, 60 * MINUTE)
        del window["spec"]["dates"]
        world.store.delete(MAINTENANCE_WINDOWS, "", "freeze")
        world.apply(window)
        told = explained(world, NODES, "node-0000").partition("\nalso")[0]
        assert told.count(": MaintenanceWindow freeze") == 1
        assert "by Karpenter until an unknown end: MaintenanceWindow freeze" in told
        assert "for ever" not in told
        assert "Delete MaintenanceWindow freeze, or give it schedules or dates." in told


def test_windows_that_end_at_different_times_are_each_said() -> None:
    with World() as world:
        put_nodes(world, 1)
        world.apply(KARPENTER)
        drift = freeze(0 * MINUTE, 60 * MINUTE, "drift")
        drift["spec"]["actions"] = ["Drift"]
        world.apply(drift)
        merge = freeze(0 * MINUTE, 90 * MINUTE, "merge")
        merge["spec"]["actions"] = ["Consolidation"]
        world.apply(merge)
        told = explained(world, NODES, "node-0000").partition("\nalso")[0]
        assert "until 2026-01-05T09:30:00Z, in 1h30m: MaintenanceWindow drift, " in told
        assert (
            "MaintenanceWindow drift blocks Drift of Node node-0000 until 2026-01-05T09:00:00Z"
            in told
        )
        assert "MaintenanceWindow merge blocks" not in told, "that is the end of the lever"


def test_the_drain_table_says_that_karpenter_drains_and_concerns_are_words() -> None:
    with World() as world:
        put_nodes(world, 1)
        install_karpenter(world)
        told = explained(world, NODES, "node-0000")
        drains = "Karpenter, not Tenure: the times below are an estimate by Tenure's rules"
        assert f"\n  drains    {drains}\n" in told.partition("\nDrain of ")[2]
        assert "\nalso (repair lever)\n" in told
        answer = explanation(Question(NODES, "node-0000"), look(world, BESIDE_LEASED).evaluated)
        assert answer is not None
        shown = json.loads(to_json(answer))
        assert shown["timetables"][0]["drainedBy"] == "Karpenter"
        assert shown["also"][0]["concern"] == "repairlever", "programs read what it was"


def put_lever(world: World, node: str) -> None:
    marked = {DO_NOT_DISRUPT: "true", DO_NOT_DISRUPT_BY: "tenure", DO_NOT_DISRUPT_BECAUSE: "old"}
    world.store.patch(NODES, "", node, {"metadata": {"annotations": marked}})


def explained(world: World, resource: Resource, name: str) -> str:
    answer = explanation(Question(resource, name), look(world, BESIDE_LEASED).evaluated)
    assert answer is not None
    return explained_text(answer)


def test_plan_counts_each_node_once_and_says_nothing_of_consolidation_which_is_karpenters() -> None:
    """Without a Karpenter both levers of a Node wait, for the same reason."""
    with World() as world:
        put_nodes(world, 5)
        told = as_text(plan_of(seen(world).evaluated), Setting(where="here"))
        assert "    5 Nodes (node-0000, node-0001, node-0002 and 2 more)" in told
        assert "Consolidation" not in told


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
        install_karpenter(world)
        put_node(world)
        world.crash(stay_down=True)
        world.run(6 * MINUTE)
        reading = seen(world)
        verdicts = reading.evaluated.evaluator.about("NodeClaim", "stuck")
        assert verdicts[0].reason is Reason.READINESS_TIMEOUT
        row, remarks = outlook(reading)
        assert row == ("Ready", "replaced forcefully", None)
        assert remarks["new"].startswith("until its first Ready, readinessTTL 5m overrides")
        install_karpenter(world, karpenter("NodeRepair=true"))
        row, remarks = outlook(seen(world))
        assert row == ("Ready", "replaced forcefully", "switched off")
        assert remarks["off"].startswith("Karpenter 1.15 repairs nodes")
        world.store.delete(NODE_POOL_POLICIES, "", "usual")
        install_karpenter(world, karpenter())
        _, remarks = outlook(seen(world))
        assert remarks["new"].startswith("no readinessTTL is written for it")
        assert remarks["off"].startswith("NodePool general has no repair block")


def test_the_repair_table_says_which_program_repairs_and_that_none_reboots() -> None:
    entry = {"conditionType": "DiskBroken", "status": "True", "toleration": "5m"}
    with World() as world:
        world.apply(a_pool())
        world.apply(a_policy(repair={"policies": [{**entry, "action": "Reboot"}]}))
        install_karpenter(world)
        put_node(world)
        row = row_of(explained(world, NODES, "node-stuck"), "DiskBroken")
        assert "5m nothing: Tenure reboots no Node beside Karpenter" in row
        assert "otherwise" not in row
        install_karpenter(world, karpenter("NodeRepair=true"))
        row = row_of(explained(world, NODES, "node-stuck"), "DiskBroken")
        assert "5m left to Karpenter, which repairs Nodes" in row
        world.store.delete(NODE_POOL_POLICIES, "", "usual")
        install_karpenter(world, karpenter())
        row = row_of(explained(world, NODES, "node-stuck"), "Ready")
        assert "blocked: no repair block that can be used applies to it; otherwise" in row
        world.store.delete(DEPLOYMENTS, "kube-system", "karpenter")
        row = row_of(explained(world, NODES, "node-stuck"), "Ready")
        assert "nothing: Tenure only looks while the Karpenter in charge is not known" in row


def row_of(text: str, condition: str) -> str:
    (row,) = (line for line in text.splitlines() if line.startswith(f"  {condition} "))
    return " ".join(row.split())


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


def renewed_by_tenure(world: World, name: str, holder: str) -> None:
    mine = {"tenure.dev/identity": holder, "tenure.dev/transitions": "0"}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 0}
    world.store.create(
        LEASES,
        {
            "metadata": {"name": name, "namespace": "kube-system", "annotations": mine},
            "spec": {**spec, "renewTime": micro_time(world.now)},
        },
    )


def test_a_tenure_in_charge_is_said_and_so_is_a_second_one() -> None:
    with World() as world:
        put_nodes(world, 1)
        install_karpenter(world)
        beside = Settings(beside_karpenter=True, lease_name=BESIDE_LEASE)
        assert look(world, beside).notes == ()
        renewed_by_tenure(world, IN_CHARGE_LEASE, "full")
        (note,) = look(world, beside).notes
        assert note.startswith(
            "full (Lease kube-system/karpenter-leader-election), a Tenure, is in"
        )
        assert "beside Karpenter would not act here" in note
        assert look(world, Settings()).notes == ()
        renewed_by_tenure(world, BESIDE_LEASE, "accompanies")
        for settings in (beside, Settings()):
            (note,) = look(world, settings).notes
            assert note.startswith("two Tenures run on this cluster: full (Lease ")
            assert note.endswith("beside Karpenter does not act; stop one of them")
        world.run(MINUTE)
        assert look(world, beside).notes == (), "neither is renewed"
