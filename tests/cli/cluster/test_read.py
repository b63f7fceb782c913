"""A look at a cluster: it concludes what the replica at work there concluded, and only reads."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenure.cli.cluster.listing import CannotRead
from tenure.cli.cluster.question import Question
from tenure.cli.cluster.read import read
from tenure.cli.explain.explanation import explanation
from tenure.cli.explain.text import as_text as explained
from tenure.cli.main import run
from tenure.cli.plan.planning import plan_of
from tenure.core.decision import Verdict, takes_away
from tenure.core.reasons import Reason
from tenure.core.terminate.facts.pods import SeveralPdbs
from tenure.core.terminate.pods import REFUSED
from tenure.errors import NotLeader, Unavailable
from tenure.kube.lease.record import micro_time
from tenure.model.api.resource import LEASES, NODE_CLAIMS
from tenure.model.settings import Settings
from tenure.ports.transport import Request, Response
from tenure.runtime.readonly import LookOnlyCloud, LookOnlyTransport
from tenure.sim.world import World
from tests.builders import HOUR, MINUTE, SECOND, a_cluster, a_deployment, a_pdb, a_pod
from tests.cli.readclusters import TheCloudOf, a_transport, seen
from tests.kube.leasereplicas import Skewed
from tests.kube.transports import Scripted, Silent, answered, in_time, refused
from tests.sim.nodeworld import a_request


@pytest.fixture
def world() -> Iterator[World]:
    """An empty cluster in which no replica acts yet."""
    with World() as made:
        yield made


def after(span: timedelta, world: World, *, leaving: bool = False) -> World:
    """Pods that run and one that fits nowhere; a claim that leaves and is held, if asked for."""
    for manifest in a_cluster(
        a_deployment(replicas=4), a_pdb(maxUnavailable=0), a_pod("huge", cpu="900")
    ):
        world.apply(manifest)
    world.run(span)
    if leaving:
        (claim, *_) = world.store.list(NODE_CLAIMS)
        world.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])
        world.run(20 * SECOND)
    return world


def words(verdicts: Any) -> set[tuple[str, str, str, str]]:
    """What a person reads of them; the wording of a refusal is the API's, and the replica's alone."""
    return {(v.concern, str(v.subject), v.reason, _said(v)) for v in verdicts}


def _said(verdict: Verdict) -> str:
    return "" if verdict.reason in REFUSED else verdict.message


@pytest.mark.parametrize("seconds", [4, 6, 20, 40, 90, 200])
@pytest.mark.parametrize("leaving", [False, True], ids=["settled", "leaving"])
def test_a_look_concludes_what_the_replica_at_work_concluded(
    seconds: int, leaving: bool, world: World
) -> None:
    after(seconds * SECOND, world, leaving=leaving and seconds > 60)
    reading, api = seen(world)
    assert words(reading.evaluated.evaluator.in_force()) == words(
        world.controller.evaluator.in_force()
    )
    assert reading.notes == ()
    assert api.methods == {"GET"}


def test_a_look_asks_the_provider_for_drift_before_any_replica_does(world: World) -> None:
    """The first day: a plan is made before Tenure runs."""
    after(2 * MINUTE, world)
    world.crash(stay_down=True)
    world.cloud.release_image()
    reading, _ = seen(world)
    drifted = [v for v in reading.evaluated.in_force() if v.reason is Reason.DRIFTED]
    assert len(drifted) == len(world.store.list(NODE_CLAIMS)) > 0
    assert not any("drifted" in note for note in reading.notes)


def test_what_the_provider_does_not_say_is_a_note_and_the_condition_counts(world: World) -> None:
    after(2 * MINUTE, world)
    world.cloud.release_image()
    world.run(2 * MINUTE)
    world.infrastructure.faults.set(cloud_throttle_rate=1.0)
    reading, _ = seen(world)
    claims = world.store.list(NODE_CLAIMS)
    said = f"the provider said of 0 of {len(claims)} instances whether they have drifted"
    assert any(note.startswith(said) for note in reading.notes)
    assert any(
        note.endswith("the condition Drifted of their NodeClaims counts") for note in reading.notes
    )
    assert any(v.reason is Reason.DRIFTED for v in reading.evaluated.in_force())


def test_a_look_changes_nothing_although_there_is_much_to_do(world: World) -> None:
    for manifest in a_cluster(a_deployment(replicas=4)):
        world.apply(manifest)
    world.start()
    world.crash(stay_down=True)
    world.run(30 * SECOND)
    before = world.store.version
    reading, api = seen(world)
    assert {v.reason for v in reading.evaluated.evaluator.actionable()} >= {Reason.NEEDED_FOR_PODS}
    assert api.methods == {"GET"}
    assert world.store.version == before
    assert world.cloud.instances() == ()


def test_a_provider_is_opened_read_only_for_plan(world: World) -> None:
    after(MINUTE, world)
    provider = TheCloudOf(world)

    async def story() -> None:
        api = LookOnlyTransport(a_transport(world))
        await read(api, Settings(), provider, world.environment.clock)

    world.loop.run_until_complete(story())
    (surroundings,) = provider.surroundings
    assert surroundings.read_only


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_what_would_change_something_is_refused_before_a_connection_is_made(method: str) -> None:
    api = Scripted(answered({}))

    async def story() -> None:
        request = Request(method=method, path="/api/v1/nodes/a", body=b"{}")
        with pytest.raises(NotLeader, match="only looks, and changes nothing"):
            await LookOnlyTransport(api).request(request)

    in_time(story)
    assert api.requests == []


def test_a_cloud_that_is_looked_at_launches_and_ends_nothing(world: World) -> None:
    after(2 * MINUTE, world)
    running = world.cloud.instances()
    cloud = LookOnlyCloud(world.cloud)

    async def story() -> None:
        with pytest.raises(NotLeader, match="changes nothing"):
            await cloud.terminate(running[0].provider_id)
        with pytest.raises(NotLeader, match="launch for NodeClaim a: this only looks"):
            await cloud.launch(a_request("a"))

    world.loop.run_until_complete(story())
    assert world.cloud.instances() == running


# What the API would answer.


def test_of_several_pods_only_as_many_are_to_be_evicted_as_their_budget_allows(
    world: World,
) -> None:
    budget = a_pdb(maxUnavailable=2)
    for manifest in a_cluster(a_deployment(replicas=5, cpu="100m"), budget):
        world.apply(manifest)
    world.run(2 * MINUTE)
    world.crash(stay_down=True)
    (claim,) = world.store.list(NODE_CLAIMS)
    world.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])
    world.start()
    world.run_while(
        lambda: (
            not world.controller.evaluator.about("Node", claim["status"]["nodeName"])
            or not any(v.reason is Reason.EVICTING for v in world.controller.evaluator.in_force())
        ),
        at_most=MINUTE,
        step=SECOND / 100,
    )
    reasons = Counter(v.reason for v in seen(world)[0].evaluated.evaluator.in_force())
    assert reasons[Reason.EVICTING] + reasons[Reason.POD_TERMINATING] == 2
    assert reasons[Reason.EVICTION_WAITS] == 3


def test_several_budgets_on_a_pod_are_a_no_with_both_named(world: World) -> None:
    second = a_pdb(maxUnavailable=4)
    second["metadata"]["name"] = "second"
    for manifest in (*a_cluster(a_deployment(replicas=2)), a_pdb(maxUnavailable=2), second):
        world.apply(manifest)
    world.run(2 * MINUTE)
    claim = world.store.list(NODE_CLAIMS)[0]
    world.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])
    world.run(20 * SECOND)
    held = [
        verdict
        for verdict in seen(world)[0].evaluated.evaluator.in_force()
        if verdict.reason is Reason.EVICTION_REFUSED and verdict.subject.kind == "Pod"
    ]
    assert held
    for verdict in held:
        assert verdict.facts[0] == SeveralPdbs(("default/second", "default/web"))
        assert [b.subject.name for b in verdict.blockers] == ["second", "web"]


# What is missing.

NO_KIND = Response(status=404, body=b"404 page not found")


def test_every_kind_that_cannot_be_listed_is_named_with_what_to_do(world: World) -> None:
    forbidden = refused(403, "Forbidden")
    answers = {"/nodepools": NO_KIND, "/nodeclaims": NO_KIND, "/daemonsets": forbidden}
    with pytest.raises(CannotRead) as caught:
        seen(after(MINUTE, world), answers)
    unknown = "the API server does not have this kind; install the CRDs: tenure crds | kubectl"
    pools, claims, daemons = caught.value.problems
    assert pools.startswith(f"nodepools.karpenter.sh cannot be listed: {unknown}")
    assert claims.startswith(f"nodeclaims.karpenter.sh cannot be listed: {unknown}")
    assert daemons == (
        "daemonsets.apps cannot be listed: 403 Forbidden: said Forbidden; "
        "grant it: the role that comes with Tenure has it"
    )


def test_without_windows_the_cluster_is_read_and_the_pools_say_so(world: World) -> None:
    for manifest in a_cluster(a_deployment(replicas=1)):
        world.apply(manifest)
    world.run(2 * MINUTE)
    reading, _ = seen(world, {"/maintenancewindows": NO_KIND})
    (note,) = reading.notes
    assert note.startswith("maintenancewindows.karpenter.sh cannot be listed: the API server does")
    # Never the CRDs of kinds that are there: they may be Karpenter's.
    assert note.endswith("tenure crds --beside-karpenter | kubectl apply --server-side -f -")
    reasons = {verdict.reason for verdict in reading.evaluated.evaluator.in_force()}
    assert Reason.WINDOWS_UNLISTED in reasons


def test_of_an_object_that_has_gone_the_last_event_is_told(world: World) -> None:
    for manifest in a_cluster(a_deployment(replicas=1)):
        world.apply(manifest)
    world.run(2 * MINUTE)
    (claim,) = world.store.list(NODE_CLAIMS)
    name = claim["metadata"]["name"]
    world.store.delete(NODE_CLAIMS, "", name)
    world.run(2 * MINUTE)
    gone = Question(NODE_CLAIMS, name)
    reading, _ = seen(world, about=gone)
    said = gone.not_found(reading.evaluated, reading.last_word)
    assert said.startswith(
        f"NodeClaim/{name} is not there at 2026-01-05T08:04:00Z; its termination "
    )
    assert "its termination began with ClaimDeleted at 2026-01-05T08:02:" in said
    assert "; last event: Releasing at 2026-01-05T08:0" in said
    never, _ = seen(world, about=Question(NODE_CLAIMS, "never"))
    assert never.last_word == ""


def test_of_the_cluster_of_tenure_up_no_instance_is_taken_for_lost(world: World) -> None:
    for manifest in a_cluster(a_deployment(replicas=1)):
        world.apply(manifest)
    world.run(20 * MINUTE)
    hello = Response(status=200, body=b'{"gitVersion": "v1.36.3+tenure"}')
    reading, _ = seen(world, {"/version": hello})
    assert reading.leader == "tenure up, which serves this cluster"
    (note,) = reading.notes
    assert note == (
        "the cloud's instances could not be found out: only tenure up, which serves this cluster, "
        "knows them"
    )
    said = {verdict.reason for verdict in reading.evaluated.evaluator.in_force()}
    assert said == {"InService", "NotExpired", "PoolCurrent", "Unconsolidatable"}


def test_leases_that_may_not_be_read_are_a_note_and_stop_nothing(world: World) -> None:
    reading, _ = seen(after(MINUTE, world), {"/leases": refused(403, "Forbidden")})
    (note,) = reading.notes
    assert note == "which replica acts could not be found out: 403 Forbidden: said Forbidden"
    assert list(reading.evaluated.evaluator.in_force())


def test_the_replica_that_acts_is_named_and_so_is_one_that_has_stopped(world: World) -> None:
    after(MINUTE, world)
    renewed = world.now.isoformat(timespec="microseconds").replace("+00:00", "Z")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "karpenter-leader-election", "namespace": "kube-system"},
        "spec": {"holderIdentity": "a", "renewTime": renewed, "leaseDurationSeconds": 15},
    }
    assert seen(world)[0].leader == "none: no replica holds the Lease"
    assert not seen(world)[0].notes
    world.store.create(LEASES, lease)
    (note,) = seen(world)[0].notes
    assert note.startswith(
        "a, which is not Tenure, is in charge of nodes: this is what Tenure would"
    )
    assert "--beside-karpenter says what" in note
    said = "a, which is not Tenure (Lease kube-system/karpenter-leader-election, renewed at "
    assert seen(world)[0].leader.startswith(said)
    world.run(MINUTE)
    assert "that is too long ago to count" in seen(world)[0].leader
    assert not seen(world)[0].notes


def a_lease(world: World, skew: timedelta) -> dict[str, Any]:
    """Renewed a moment ago by a replica whose clock is ahead by so much."""
    mine = {"tenure.dev/identity": "a", "tenure.dev/transitions": "0"}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "karpenter-leader-election",
            "namespace": "kube-system",
            "annotations": {**mine, "tenure.dev/clock-skew": f"{skew // SECOND:+d}s"},
        },
        "spec": {
            "holderIdentity": "a",
            "renewTime": micro_time(world.now + skew),
            "leaseDurationSeconds": 15,
            "leaseTransitions": 0,
        },
    }


@pytest.mark.parametrize("skew", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_a_replica_whose_clock_is_wrong_blocks_what_takes_away(
    world: World, skew: timedelta
) -> None:
    for manifest in a_cluster(a_deployment(replicas=1)):
        world.apply(manifest)
    world.run(5 * MINUTE)
    world.infrastructure.faults.set(clock_offset=skew)
    world.run(10 * SECOND)
    (claim,) = world.store.list(NODE_CLAIMS)
    world.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])
    world.run(MINUTE)
    world.store.create(LEASES, a_lease(world, skew))
    reading, _ = seen(world)
    plan = plan_of(reading.evaluated)
    side = "ahead of" if skew > timedelta() else "behind"
    held = (
        f"the clock of replica a is 1h0m0s {side} the API server's: no disruption begins, nothing is "
        "taken away, and no deadline is set, until they agree"
    )
    assert plan.held == held
    assert not [v for v in plan.to_do if takes_away(v.action)]  # type: ignore[arg-type]
    assert "too long ago" not in reading.leader
    answer = explanation(Question(NODE_CLAIMS, claim["metadata"]["name"]), reading.evaluated)
    assert answer is not None
    text = explained(answer)
    assert f"  blocked   {held}\n" in text
    assert f"  blocked   by Lease/kube-system/karpenter-leader-election: {held}" in text
    assert f"  blocked   {held}; no time below is kept before that" in text.partition("Drain of")[2]
    assert "  action    Delete" not in text

    world.run(MINUTE)  # It is not renewed any more: what it said of its clock is of no account.
    plan = plan_of(seen(world)[0].evaluated)
    assert plan.held == ""
    assert [v.action for v in plan.to_do if takes_away(v.action)]  # type: ignore[arg-type]


@pytest.mark.parametrize("by", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_on_a_host_whose_clock_is_wrong_the_api_servers_time_counts(
    world: World, by: timedelta
) -> None:
    after(MINUTE, world)
    right = words(seen(world)[0].evaluated.in_force())
    date = format_datetime(world.now + SECOND / 2, usegmt=True)  # The nearest second.
    hello = Response(status=200, body=b'{"gitVersion": "v1.36.3"}', headers={"Date": date})
    api = a_transport(world, {"/version": hello})

    async def story() -> None:
        clock = Skewed(world.environment, by)
        reading = await read(LookOnlyTransport(api), Settings(), TheCloudOf(world), clock)
        side = "behind" if by > timedelta() else "ahead of"
        assert reading.evaluated.clock == f"the API server's, which is 1h {side} this host's"
        assert abs(reading.evaluated.at - world.now) <= SECOND
        assert words(reading.evaluated.in_force()) == right

    world.loop.run_until_complete(story())


def test_a_server_that_never_answers_is_given_up(world: World) -> None:
    async def story() -> None:
        with pytest.raises(Unavailable, match="no answer"):
            await read(Silent(), Settings(), TheCloudOf(world), world.environment.clock)

    world.loop.run_until_complete(story())
    assert world.elapsed == 5 * SECOND


def test_something_that_is_no_api_server_is_recognised(world: World) -> None:
    async def story() -> None:
        api = Scripted(answered(b"<html>welcome</html>"))
        with pytest.raises(Unavailable, match="no Kubernetes API server"):
            await read(api, Settings(), TheCloudOf(world), world.environment.clock)

    world.loop.run_until_complete(story())


# At the prompt.


@pytest.fixture
def gone_server(tmp_path: Path) -> Path:
    """A kubeconfig of a server that has gone."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    return a_kubeconfig(tmp_path, f"http://127.0.0.1:{port}")


def a_kubeconfig(folder: Path, server: str) -> Path:
    path = folder / "kubeconfig"
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here"}}],
        "clusters": [{"name": "here", "cluster": {"server": server}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.mark.parametrize("words", [["plan"], ["explain", "pool/general"]], ids=["plan", "explain"])
def test_a_server_that_is_not_there_is_one_line_and_exit_code_one(
    words: list[str], gone_server: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--kubeconfig", str(gone_server)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("the API server at http://127.0.0.1:")
    assert err.endswith("Is it up, and is this the right context?\n")
    assert str(gone_server) in err


WRONG = {
    "a context that is not there": (
        ["--context", "there"],
        "contexts: got 'there', expected one of the contexts in the file. There is: here.",
    ),
    "a provider that is not there": (
        ["--provider", "moon"],
        "--provider: got 'moon', expected one of the providers that are installed: kwok",
    ),
    "a time, although the cluster is real": (
        ["--at", "5m"],
        "--at goes with --in; a cluster is evaluated as it is now",
    ),
    "a cluster beside a scenario": (
        ["--in", "a.yaml", "--at", "5m"],
        "expected a scenario or a cluster, not both",
    ),
}


@pytest.mark.parametrize(("more", "sentence"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("words", [["plan"], ["explain", "pool/general"]], ids=["plan", "explain"])
def test_input_that_cannot_be_used_is_one_line_and_exit_code_two(
    words: list[str],
    more: list[str],
    sentence: str,
    gone_server: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([*words, "--kubeconfig", str(gone_server), *more]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert err.count("\n") == 1


def test_a_scenario_needs_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--in", "a.yaml"]) == 2
    assert "--in needs --at, as in --at 5m" in capsys.readouterr().err
