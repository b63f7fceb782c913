"""What a claim says of the labels that its pods ask for: what matters, and the API accepts."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.names import HOSTNAME, INITIALIZED, NODEPOOL, REGISTERED, ZONE
from tenure.model.api.pod import Pod
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.packing.demand.problem import Problem
from tenure.packing.facts import ClaimInvalid, LabelUndefined, RequirementsConflict
from tenure.packing.pack import pack
from tests.packing.build import a_daemon, a_pod, a_pool, a_type

SIZE = "cloud.example.com/size"
TYPES = (a_type("small", more={SIZE: "4"}), a_type("large", 8, more={SIZE: "8"}))


def wanting(*asked: tuple[str, str, list[str]], uid: str = "p") -> Pod:
    expressions = [{"key": key, "operator": op, "values": values} for key, op, values in asked]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return a_pod(uid, affinity={"nodeAffinity": required})


def said(*asked: tuple[str, str, list[str]], **pool: Any) -> Requirements:
    """What the claim says beside what it would say for a pod that asks for nothing."""
    plans = [
        pack(Problem(pods=(pod,), templates=(a_pool(types=TYPES, **pool),)))
        for pod in (wanting(*asked), a_pod())
    ]
    (claim,), (plain,) = (plan.claims for plan in plans)
    usual = plain.requirements
    changed = [one for key, one in claim.requirements.items() if usual.get(key) != one]
    return Requirements.of(changed)


@pytest.mark.parametrize(
    "asked",
    [
        (HOSTNAME, "NotIn", ["n1"]),
        (HOSTNAME, "Exists", []),
        (REGISTERED, "In", ["true"]),
        (INITIALIZED, "Exists", []),
        ("karpenter.sh/provisioner-name", "DoesNotExist", []),
        ("karpenter.sh/nodepool-hash", "NotIn", ["x"]),
        ("example.com/unknown", "NotIn", ["x"]),
        ("example.com/unknown", "DoesNotExist", []),
        (ZONE, "NotIn", ["elsewhere", "a b/c!", "v" * 64]),
        (NODEPOOL, "NotIn", ["other"]),
    ],
)
def test_what_every_node_of_the_pool_satisfies_is_not_said(
    asked: tuple[str, str, list[str]],
) -> None:
    assert said(asked) == Requirements()


@pytest.mark.parametrize(
    "asked",
    [
        (HOSTNAME, "DoesNotExist", []),
        (HOSTNAME, "In", ["n1"]),
        (REGISTERED, "DoesNotExist", []),
        (INITIALIZED, "NotIn", ["true"]),
        ("karpenter.sh/nodepool-hash", "In", ["x"]),
        ("example.com/unknown", "Exists", []),
    ],
)
def test_what_no_new_node_satisfies_makes_no_claim(asked: tuple[str, str, list[str]]) -> None:
    packing = pack(Problem(pods=(wanting(asked),), templates=(a_pool(types=TYPES),)))
    assert packing.claims == ()
    (refusal,) = packing.unplaced["p"].refusals
    assert isinstance(refusal.cause, RequirementsConflict | LabelUndefined)
    assert refusal.cause.wanted.startswith(f"{asked[0]} {asked[1]}")


def test_values_to_keep_off_are_said_where_a_node_may_have_them() -> None:
    assert said((ZONE, "NotIn", ["a", "elsewhere"])) == Requirements.of(
        [Requirement.of(ZONE, "NotIn", ["a"])]
    )
    written = Requirement.of(SIZE, "NotIn", ["99"])
    (sizes, _) = said((SIZE, "NotIn", ["4", "77"]), requirements=[written]).values()
    assert sizes == Requirement.of(SIZE, "NotIn", ["4", "99"])


def test_bounds_that_bound_nothing_are_not_said() -> None:
    exists = Requirements.of([Requirement.of(SIZE, "Exists")])
    assert said((SIZE, "Gt", ["-5"])) == exists
    assert said((SIZE, "Lt", [str(10**18 + 1)])) == exists
    assert said((SIZE, "Gt", ["2"])) == Requirements.of([Requirement.of(SIZE, "Gt", ["2"])])


def test_a_daemon_that_asks_for_a_label_of_every_node_of_ours_is_counted() -> None:
    asks = a_daemon(cpu="3", nodeSelector={REGISTERED: "true"})
    problem = Problem(pods=(a_pod(),), templates=(a_pool(types=TYPES),), daemons=(asks,))
    (claim,) = pack(problem).claims
    assert claim.requests["cpu"] == 4 * 10**9


def test_a_value_that_no_claim_can_say_is_told_and_another_pool_may_take_the_pod() -> None:
    team = Requirement.of("example.com/team", "Exists")
    odd = wanting(("example.com/team", "In", ["a b/c!"]))
    packing = pack(
        Problem(pods=(odd, a_pod("web")), templates=(a_pool(types=TYPES, requirements=[team]),))
    )
    assert [claim.pods for claim in packing.claims] == [("web",)]
    (refusal,) = packing.unplaced["p"].refusals
    assert isinstance(refusal.cause, ClaimInvalid)
    assert refusal.cause.problem.startswith("example.com/team.values[0]: got 'a b/c!'")


def test_pods_that_no_claim_can_hold_together_get_one_each() -> None:
    """A label with a value to keep off takes two of the 100 requirements that a claim may have."""
    keys = [f"example.com/k{number}" for number in range(50)]
    pool = a_pool(types=TYPES, requirements=[Requirement.of(key, "Exists") for key in keys])
    odd = [
        wanting(*((key, "NotIn", [uid]) for key in keys[start : start + 25]), uid=uid)
        for uid, start in (("p", 0), ("q", 25))
    ]
    packing = pack(Problem(pods=tuple(odd), templates=(pool,)))
    assert sorted(claim.pods for claim in packing.claims) == [("p",), ("q",)]
