"""Whatever happens to nodes and pods: no node is overbooked, and no pod waits in vain."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.model.api.resource import NODES, PODS
from tests.sim.workworld import World, a_node, a_pod, a_world

NODE_NAMES = ("a", "b", "c")
HOSTNAME = "kubernetes.io/hostname"

node_names = st.sampled_from(NODE_NAMES)
happenings = st.one_of(
    st.tuples(st.just("join"), node_names, st.integers(1, 4)),
    st.tuples(st.just("leave"), node_names),
    st.tuples(st.just("cordon"), node_names, st.booleans()),
    st.tuples(st.just("create"), st.integers(1, 3), st.sampled_from(("", *NODE_NAMES))),
    st.tuples(st.just("delete"), st.integers(0, 20)),
    st.tuples(st.just("wait"), st.sampled_from((0.001, 0.02, 3.0))),
)


def happen(world: World, number: int, what: str, *how: Any) -> None:
    """Let it happen, if it can."""
    nodes = {node["metadata"]["name"] for node in world.store.list(NODES)}
    pods = [pod["metadata"]["name"] for pod in world.pods()]
    match what:
        case "join" if how[0] not in nodes:
            world.add(NODES, a_node(how[0], cpu=str(how[1])))
        case "leave" if how[0] in nodes:
            world.store.delete(NODES, "", how[0])
            for pod in world.pods():
                if pod["spec"].get("nodeName") == how[0]:
                    world.store.delete(PODS, "default", pod["metadata"]["name"], 0)
        case "cordon" if how[0] in nodes:
            world.cordon(how[0], unschedulable=how[1])
        case "create":
            selector = {HOSTNAME: how[1]} if how[1] else {}
            pod = a_pod(f"p{number}", str(how[0]), labels={"app": "x"}, nodeSelector=selector)
            world.add(PODS, pod)
        case "delete" if how[0] < len(pods):
            world.store.delete(PODS, "default", pods[how[0]])
        case "wait":
            world.run(how[0])


def cpu_of(pod: Any) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


@settings(max_examples=60, deadline=None)
@given(story=st.lists(happenings, max_size=40))
def test_no_node_is_overbooked_and_no_pod_waits_beside_a_node_that_would_take_it(
    story: list[tuple[Any, ...]],
) -> None:
    with a_world() as world:
        world.with_scheduler()
        for number, (what, *how) in enumerate(story):
            happen(world, number, what, *how)
        world.run(30)
        waiting = [pod for pod in world.pods() if not pod["spec"].get("nodeName")]
        for node in world.store.list(NODES):
            name = node["metadata"]["name"]
            there = [pod for pod in world.pods() if pod["spec"].get("nodeName") == name]
            free = int(node["status"]["allocatable"]["cpu"]) - sum(map(cpu_of, there))
            assert free >= 0
            for pod in waiting:
                allowed = pod["spec"].get("nodeSelector", {}).get(HOSTNAME, name) == name
                fits = allowed and cpu_of(pod) <= free and not node["spec"].get("unschedulable")
                assert not fits, (pod["metadata"]["name"], name)
        for pod in waiting:
            reason, message = world.why_pending(pod["metadata"]["name"])
            assert reason == "Unschedulable"
            assert message
