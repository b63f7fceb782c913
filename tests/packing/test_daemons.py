"""DaemonSets that leave no room: which of them count, and how that is said."""

from __future__ import annotations

from tenure.packing.demand.problem import Daemon, Problem
from tenure.packing.facts import DaemonsTake, TooLarge
from tenure.packing.pack import pack
from tenure.packing.result import Packing
from tests.packing.build import a_daemon, a_pod, a_pool, a_type

TYPES = (a_type("small", 4), a_type("large", 16))


def packed(*daemons: Daemon, cpu: str = "1") -> Packing:
    pool = a_pool(types=TYPES)
    return pack(Problem(pods=(a_pod(cpu=cpu),), templates=(pool,), daemons=daemons))


def test_daemons_that_fit_a_type_together_all_count() -> None:
    packing = packed(a_daemon("a", "2"), a_daemon("b", "8"))
    (claim,) = packing.claims
    assert claim.instance_types == ("large",)
    assert packing.left_out == {}


def test_of_daemons_that_fit_no_type_together_the_largest_is_left_out() -> None:
    packing = packed(a_daemon("a", "9"), a_daemon("b", "10"), a_daemon("c", "500m"))
    (claim,) = packing.claims
    assert claim.requests["cpu"] == 10_500_000_000
    assert packing.left_out == {"general": ("b",)}


def test_what_leaves_no_room_for_the_smallest_pod_is_left_out_too() -> None:
    """Room for one of them would be kept, and nothing ever launched."""
    packing = packed(a_daemon("a", "15500m"), a_daemon("b", "1"))
    assert len(packing.claims) == 1
    assert packing.left_out == {"general": ("a",)}


def test_lower_priority_is_left_out_first() -> None:
    vital = a_daemon("a", "15", priorityClassName="system-node-critical")
    packing = packed(vital, a_daemon("b", "9"), a_daemon("c", "8", priority=1000))
    assert packing.left_out == {"general": ("b", "c")}


def test_daemons_that_never_meet_on_a_node_do_not_add_up() -> None:
    types = (a_type("arm", 16, arch="arm64"), a_type("amd", 16))
    daemons = [a_daemon(a, "9", nodeSelector={"kubernetes.io/arch": a}) for a in ("amd64", "arm64")]
    packing = pack(
        Problem(pods=(a_pod(),), templates=(a_pool(types=types),), daemons=tuple(daemons))
    )
    assert (len(packing.claims), packing.left_out) == (1, {})


def test_a_pod_for_which_daemons_leave_no_room_is_told_which() -> None:
    daemons = (a_daemon("infra/agent", "9"), a_daemon("infra/log", "6"))
    waiting = (a_pod(cpu="8"), a_pod("tiny", cpu="100m"))
    packing = pack(Problem(pods=waiting, templates=(a_pool(types=TYPES),), daemons=daemons))
    assert [claim.pods for claim in packing.claims] == [("tiny",)]
    (refusal,) = packing.unplaced["p"].refusals
    taken = DaemonsTake(("infra/agent", "infra/log"), 0, "15", "cpu", "large")
    assert refusal.cause == TooLarge("cpu", "8", "1", daemons=taken)
    (refusal,) = packed(*daemons, cpu="17").unplaced["p"].refusals
    assert refusal.cause == TooLarge("cpu", "17", "1")
