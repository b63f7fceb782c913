"""``tenure snapshot``: what is refused or missing is named, the rest is written; and it can be played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from tenure.cli.cluster.listing import CannotRead
from tenure.cli.commands.simulate import simulate
from tenure.cli.commands.up import up
from tenure.cli.copying.listing import objects_of
from tenure.cli.main import run
from tenure.ports.transport import Response
from tenure.sim.copied.copy import copied, read_copy
from tenure.sim.copied.load import load, options_for
from tenure.sim.scenario.read.fields import BadInput
from tenure.sim.world import World
from tests.cli.readclusters import a_transport
from tests.sim.copied.clusters import KARPENTER, Obj, a_claimed_node, a_node, a_pool

FORBIDDEN = Response(
    status=403,
    body=b'{"kind":"Status","status":"Failure","reason":"Forbidden","message":"no","code":403}',
)
MISSING = Response(status=404, body=b"404 page not found\n")


def snapshot_of(answers: dict[str, Response]) -> list[dict[str, Any]]:
    """Of an embedded cluster that is itself a copy, read as a real one is."""
    copy = read_copy(KARPENTER)
    with World(options_for(copy)) as world:
        load(copy, world)

        async def read() -> list[dict[str, Any]]:
            return [one async for one in objects_of(a_transport(world, answers))]

        return world.loop.run_until_complete(read())


def test_a_copy_of_a_copy_has_the_same_objects() -> None:
    once = read_copy(KARPENTER)
    again = copied([("api", one) for one in snapshot_of({})])
    for resource, objects in once.objects.items():
        had = {one["metadata"]["name"] for one in objects}
        assert had <= {one["metadata"]["name"] for one in again.of(resource)}, resource
    assert again.notes == ()


def test_what_is_forbidden_or_missing_is_named_and_the_rest_is_written() -> None:
    answers = {"/poddisruptionbudgets": FORBIDDEN, "/nodepoolpolicies": MISSING}
    written = snapshot_of(answers)
    said = written[-1]["missing"]
    assert [one.partition(" cannot")[0] for one in said] == [
        "poddisruptionbudgets.policy",
        "nodepoolpolicies.tenure.dev",
    ]
    assert "the API server does not have this kind" in said[1]
    assert sum(one["kind"] == "Pod" for one in written) == 43
    assert said == list(copied([("api", one) for one in written]).notes)


def test_without_nodes_there_is_nothing_to_copy() -> None:
    with pytest.raises(CannotRead, match=r"^nodes cannot be listed"):
        snapshot_of({"/api/v1/nodes": FORBIDDEN})


@pytest.mark.parametrize("command", [["snapshot"], ["simulate", "--from-cluster"]])
def test_a_server_that_does_not_answer_is_told_as_plan_does(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was said to be tried again, when the command had ended."""
    file = tmp_path / "config"
    server = "https://127.0.0.1:1"
    file.write_text(
        "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], "
        f"clusters: [{{name: a, cluster: {{server: '{server}'}}}}], users: [{{name: a, user: {{token: x}}}}]}}"
    )
    said = []
    for words in ([*command, "--kubeconfig", str(file)], ["plan", "--kubeconfig", str(file)]):
        assert run(words) == 1
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert f"the API server at {server} ({file}) cannot be reached: " in said[0]


def test_every_line_of_a_snapshot_is_an_object_and_the_last_is_about_the_others() -> None:
    *objects, last = snapshot_of({})
    assert all(one["metadata"]["name"] for one in objects)
    assert (last["kind"], last["missing"]) == ("ClusterSnapshot", [])


CHANGE = """\
name: another release
events:
- at: 1m
  patch: {pool: general, merge: {spec: {template: {metadata: {labels: {release: two}}}}}}
"""


def played(*arguments: str, file: str = str(KARPENTER)) -> tuple[int, str]:
    result = CliRunner().invoke(simulate, ["--from", file, *arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return int(result.return_value), result.output


def test_a_cluster_that_is_left_to_itself_says_what_becomes_of_it() -> None:
    code, said = played("--for", "30m")
    assert code == 0
    assert "What became of the cluster in 30m" in said
    assert "  nodes        6 → 4" in said
    assert "  price        $1.8724/h → $1.2403/h" in said
    assert "  disruptions  2 Underutilized" in said


def test_a_scenario_is_played_in_the_copy(tmp_path: Path) -> None:
    file = tmp_path / "change.yaml"
    file.write_text(CHANGE)
    code, said = played(str(file), "--for", "1h", "--json")
    last = msgspec.json.decode(said.splitlines()[-1])
    assert code == 0
    assert last["type"] == "difference"
    assert "Drifted" in last["disruptions"]
    assert last["price"]["before"] == {"dollarsPerHour": 1.872416, "nodesOfUnknownPrice": 0}


def test_an_outage_and_a_shortage_are_of_zones_of_the_copied_cluster(tmp_path: Path) -> None:
    file = tmp_path / "outage.yaml"
    file.write_text(
        """
        name: what if a zone fails
        until: 20m
        events:
        - at: 1m
          zone-outage: {zone: test-zone-b, for: 10m}
        - at: 2m
          faults: {cloud-dry: [{zone: test-zone-d}]}
        """
    )
    code, said = played(str(file))
    assert code == 0
    assert "Zone/test-zone-b" in said
    assert "NotReady" in said


def test_a_zone_that_the_copied_cluster_has_not_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "outage.yaml"
    file.write_text("events: [{at: 1m, zone-outage: {zone: test-zone-q}}]")
    with pytest.raises(BadInput, match="got 'test-zone-q', expected a zone of the scenario"):
        played(str(file))


def test_a_manifest_is_applied_as_the_copy_begins(tmp_path: Path) -> None:
    """A whole NodePool, as it would be given to kubectl apply."""
    (pool,) = (
        one for one in read_copy(KARPENTER).changeable() if one[1]["metadata"]["name"] == "general"
    )
    spec = pool[1]["spec"]
    spec = {**spec, "disruption": {**spec["disruption"], "consolidateAfter": "Never"}}
    file = tmp_path / "pool.json"
    change = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"}}
    file.write_bytes(msgspec.json.encode({**change, "spec": spec}))
    code, said = played(str(file), "--for", "1h")
    assert code == 0
    assert "  nodes        6, as before" in said
    assert "  disruptions  none" in said


GKE = {
    "node.kubernetes.io/instance-type": "n2-standard-4",
    "topology.kubernetes.io/zone": "europe-west4-a",
    "kubernetes.io/arch": "amd64",
}
PRICED = {**GKE, "node.kubernetes.io/instance-type": "n2-standard-8"}
PRICE = {"eks-node-viewer/instance-price": "0.4"}


def a_file(folder: Path, *nodes: tuple[Obj, ...]) -> str:
    """A cluster of these nodes that nothing disrupts."""
    file = folder / "cluster.jsonl"
    objects = [a_pool(kind="GCENodeClass"), *(one for node in nodes for one in node)]
    file.write_bytes(b"\n".join(msgspec.json.encode(one) for one in objects))
    return str(file)


def unpriced(name: str) -> tuple[Obj, ...]:
    return a_claimed_node(name, kind="GCENodeClass", **GKE)


def priced(name: str) -> tuple[Obj, ...]:
    return a_claimed_node(name, kind="GCENodeClass", **PRICED, **PRICE)


#: What the node groups of a cluster have: Nodes that no claim owns.
UNCLAIMED = ((a_node("n1", **GKE),), (a_node("n2", **PRICED, **PRICE),))


def test_an_unknown_price_is_no_part_of_a_sum_and_is_told(tmp_path: Path) -> None:
    file = a_file(tmp_path, unpriced("c1"), unpriced("c2"), priced("c3"))
    code, said = played("--for", "1h", file=file)
    assert code == 0
    assert (
        "at least $0.4000 spent, at least $0.4000/h now; the price of 2 instances is unknown\n"
    ) in said


def test_of_a_cluster_without_prices_no_sum_is_shown(tmp_path: Path) -> None:
    code, said = played("--for", "1h", file=a_file(tmp_path, unpriced("c1")))
    assert code == 0
    assert "0 pending; the price of 1 instance is unknown\n" in said
    assert "$0" not in said


def test_nodes_that_no_claim_owns_have_a_price_too(tmp_path: Path) -> None:
    """Else a cluster of node groups would cost nothing."""
    _, said = played("--for", "1h", file=a_file(tmp_path, *UNCLAIMED))
    assert "at least $0.4000/h now; the price of 1 instance is unknown\n" in said
    assert "price        $0.4000/h + unknown (1 n2-standard-4)" in said


@pytest.mark.parametrize(
    ("nodes", "cost", "unknown"),
    [
        ((unpriced("c1"),), None, 1),
        ((unpriced("c1"), priced("c2")), 0.4, 1),
        ((priced("c2"),), 0.4, 0),
    ],
    ids=["none known", "one known", "all known"],
)
def test_as_json_an_unknown_price_is_null_and_counted(
    tmp_path: Path, nodes: tuple[tuple[Obj, ...], ...], cost: float | None, unknown: int
) -> None:
    _, said = played("--for", "1h", "--json", file=a_file(tmp_path, *nodes))
    summary = msgspec.json.decode(said.splitlines()[-2])["summary"]
    assert (summary["cost"], summary["hourly"]) == (cost, cost)
    assert summary["instancesOfUnknownPrice"] == {"now": unknown, "ever": unknown}


def test_a_limit_on_what_is_spent_is_not_met_where_a_price_is_unknown(tmp_path: Path) -> None:
    change = tmp_path / "change.yaml"
    change.write_text("name: cheap\nexpect:\n- {at: 1h, cost: {hourly: {max: 2}}}\n")
    code, said = played(str(change), file=a_file(tmp_path, unpriced("c1"), priced("c2")))
    assert code == 1
    assert "hourly at least 0.4000; the price of 1 instance is unknown" in said


def test_two_clusters_at_once_are_refused() -> None:
    for command in (simulate, up):
        both = CliRunner().invoke(command, ["--from", "a.jsonl", "--from-cluster"])
        assert both.exit_code == 2
        assert "--from and --from-cluster name two clusters" in both.output
