"""What the gates of repair are told of a claim, also of one that is healthy."""

from __future__ import annotations

from tenure.core.disrupt.methods.unhealthy import UnhealthyMethod
from tenure.core.health.facts import CircuitBreakerOpen
from tenure.core.marks.command import command_of
from tenure.model.api.meta import Condition
from tenure.model.snapshot.observations import Observations
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import NOW, SETTINGS, a_claim, a_class, a_node, a_pool, ago, condition
from tests.snapshots import snapshot_with

BROKEN = Condition(type="KWOKUnhealthy", status="True", reason="Test", last_transition_time=ago(60))


def test_a_claim_that_is_healthy_still_has_the_breaker_of_its_pool() -> None:
    healthy = a_claim("a")
    snapshot = snapshot_with(
        a_class(),
        a_pool(repair={"maxUnhealthy": 0}),
        healthy,
        a_node("node-a", claim="a"),
        a_claim("b"),
        a_node("node-b", claim="b", status={"conditions": (condition("Ready"), BROKEN)}),
        observations=Observations(repair_statements=kwok_statements()),
    )
    method = UnhealthyMethod()
    known = method.pool_facts("general", snapshot)
    facts = method.gates(command_of(healthy, snapshot), known, SETTINGS, NOW)
    assert facts.breaker == CircuitBreakerOpen("general", 1, 2, 0, "0")
    assert facts.outage == ()
    assert facts.pool is snapshot.pools["general"]
