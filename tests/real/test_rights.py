"""Rights: Tenure is refused nothing that it asks for, and is allowed nothing that it does not use.

Told by the API server's audit log at the end of all stories, which run under the account that is
shipped. What depends on chance is listed here, each with its reason.
"""

from __future__ import annotations

from typing import Final

import pytest

from testbed.controlplane import ControlPlane
from tests.real.account import shipped
from tests.real.rights import Right, asked, granted

#: Granted, and used when something is late or lost, which a story cannot order.
SELDOM: Final = {
    Right("get", "pods"): "an eviction that the watch does not show in time is looked up",
    Right("get", "nodeclaims.karpenter.sh"): "so is a deletion, and a claim whose answer was lost",
}


def test_nothing_that_was_asked_for_was_refused(running_cluster: ControlPlane) -> None:
    """A server that has just started refuses every client until it has read its roles."""
    asks = set(asked(running_cluster))
    refused = {ask for ask in asks if not ask.allowed and ask._replace(allowed=True) not in asks}
    rights = {str(Right(ask.verb, ask.resource, ask.namespace, ask.name)) for ask in refused}
    assert sorted(rights) == [], "roles lack this"


def test_every_right_is_used_by_a_story_or_its_reason_is_named(
    running_cluster: ControlPlane, whole_suite: None
) -> None:
    asks = {ask for ask in asked(running_cluster) if ask.allowed}
    unused = {right for right in granted(shipped()) if not any(a.uses(right) for a in asks)}
    assert sorted(map(str, unused - SELDOM.keys())) == [], "granted, and nothing used it"


def test_what_is_listed_as_seldom_is_granted() -> None:
    assert SELDOM.keys() <= set(granted(shipped()))


@pytest.mark.parametrize("role", ["ClusterRole", "Role"])
def test_nothing_is_granted_by_a_wildcard(role: str) -> None:
    rules = [rule for m in shipped() if m["kind"] == role for rule in m["rules"]]
    assert rules
    assert not [rule for rule in rules if "*" in str(rule)]
