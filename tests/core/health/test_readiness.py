"""How long a new node may take, from when on that counts, and when it is spent."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tenure.core.health.readiness import Stage, boot_of
from tenure.model.api import names
from tenure.model.api.nodeclaim import NodeClaim
from tests.core.build import (
    LAUNCHED,
    REGISTERED,
    a_claim,
    a_node,
    ago,
    ahead,
    condition,
)

HALF_HOUR = {"readiness_ttl": "30m"}


def new_claim(stage: int, **fields: Any) -> NodeClaim:
    usual: dict[str, Any] = {"creation_timestamp": ago(120), "spec": HALF_HOUR}
    return a_claim(stage=stage, **usual | fields)


@pytest.mark.parametrize(
    ("claim", "node", "stage", "due_at"),
    [
        pytest.param(new_claim(0), None, Stage.LAUNCH, ahead(1680), id="from the claim"),
        pytest.param(
            new_claim(0, conditions=[condition("Launched", at=ago(90))]),
            None,
            Stage.REGISTRATION,
            ahead(1710),
            id="from the launch",
        ),
        pytest.param(
            new_claim(REGISTERED),
            a_node(ready=False, creation_timestamp=ago(60)),
            Stage.READINESS,
            ahead(1740),
            id="from the Node",
        ),
    ],
)
def test_the_clock_starts_with_the_latest_of_its_births(
    claim: NodeClaim, node: Any, stage: Stage, due_at: datetime
) -> None:
    boot = boot_of(claim, node)
    assert boot is not None
    assert (boot.stage, boot.due_at) == (stage, due_at)


def test_a_node_that_cannot_be_registered_times_out_from_its_launch() -> None:
    boot = boot_of(new_claim(LAUNCHED), a_node(creation_timestamp=ago(1)))
    assert boot is not None
    assert boot.stage is Stage.REGISTRATION


@pytest.mark.parametrize("status", [("False", ago(1)), ("Unknown", ago(30)), ("False", ahead(600))])
def test_flapping_does_not_restart_it(status: tuple[str, datetime]) -> None:
    said = condition("Ready", status[0], at=status[1])
    node = a_node(status={"conditions": (said,)}, creation_timestamp=ago(60))
    boot = boot_of(new_claim(REGISTERED), node)
    assert boot is not None
    assert boot.due_at == ahead(1740)


@pytest.mark.parametrize(
    ("claim", "node"),
    [
        pytest.param(
            new_claim(REGISTERED, conditions=[condition("ReadyOnce")]),
            a_node(ready=False),
            id="remembered",
        ),
        pytest.param(a_claim(), a_node(ready=False), id="initialized"),
        pytest.param(
            new_claim(REGISTERED),
            a_node(ready=False, labels={names.INITIALIZED: "true"}),
            id="labelled by what managed it before",
        ),
        pytest.param(new_claim(REGISTERED), a_node(), id="Ready now"),
    ],
)
def test_it_is_spent_for_ever_by_any_evidence_that_the_node_was_ready(
    claim: NodeClaim, node: Any
) -> None:
    assert boot_of(claim, node) is None


@pytest.mark.parametrize("ttl", [None, "nonsense"])
def test_a_claim_without_a_readable_one_has_a_quarter_of_an_hour(ttl: str | None) -> None:
    boot = boot_of(new_claim(0, spec={"readiness_ttl": ttl}), None)
    assert boot is not None
    assert boot.due_at == ahead(780)


def test_initialization_is_bounded_only_where_asked_for_and_from_the_first_ready() -> None:
    once = condition("ReadyOnce", at=ago(60))
    ready = a_node()
    assert boot_of(new_claim(REGISTERED, conditions=[once]), ready) is None
    bounded = new_claim(REGISTERED, conditions=[once], spec={"initialization_ttl": "10m"})
    boot = boot_of(bounded, ready)
    assert boot is not None
    assert (boot.stage, boot.due_at) == (Stage.INITIALIZATION, ahead(540))
    never = new_claim(REGISTERED, conditions=[once], spec={"initialization_ttl": "Never"})
    assert boot_of(never, ready) is None


# -- reboots -----------------------------------------------------------------------------


def rebooted(status: str, reason: str = "RebootSucceeded") -> Any:
    return condition("Rebooting", status, reason, at=ago(60))


@pytest.mark.parametrize("once", [[], [condition("ReadyOnce", at=ago(7200))]])
def test_the_clocks_stand_still_while_the_node_is_rebooted(once: list[Any]) -> None:
    under_way = rebooted("True", "RebootIssued")
    spec = {"readiness_ttl": "1s", "initialization_ttl": "1s"}
    claim = new_claim(REGISTERED, conditions=[*once, under_way], spec=spec)
    assert boot_of(claim, a_node(ready=False, creation_timestamp=ago(7200))) is None


def test_they_start_again_after_the_reboot() -> None:
    node = a_node(ready=False, creation_timestamp=ago(7200))
    never = boot_of(new_claim(REGISTERED, conditions=[rebooted("False")]), node)
    assert never is not None
    assert (never.stage, never.due_at) == (Stage.READINESS, ahead(1740))
    once = [condition("ReadyOnce", at=ago(7200)), rebooted("False")]
    bounded = new_claim(REGISTERED, conditions=once, spec={"initialization_ttl": "10m"})
    then = boot_of(bounded, node)
    assert then is not None
    assert (then.stage, then.due_at) == (Stage.INITIALIZATION, ahead(540))


def test_a_node_that_was_initialized_once_has_nothing_to_prove_after_a_reboot() -> None:
    once = [condition("ReadyOnce", "True", "Initialized", at=ago(7200)), rebooted("False")]
    claim = new_claim(REGISTERED, conditions=once, spec={"initialization_ttl": "1s"})
    assert boot_of(claim, a_node(ready=False)) is None
