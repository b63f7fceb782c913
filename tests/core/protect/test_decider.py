"""What do-not-disrupt protects, until when, and how a Node's duration gets its beginning."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from tenure.core.decision import Patch, Verdict
from tenure.core.protect.decider import SINCE, ProtectionDecider
from tenure.core.reasons import Reason
from tenure.model.api.names import DO_NOT_DISRUPT, DO_NOT_REPAIR
from tenure.model.settings import Settings
from tenure.runtime.executor.handlers import dated
from tests.core.build import (
    FOREIGN,
    LAUNCHED,
    NOW,
    REGISTERED,
    a_claim,
    a_node,
    a_pod,
    a_pool,
    about,
    ahead,
    body_of,
    evaluated,
)

DECIDER = ProtectionDecider()


def of_pod(value: str, *more: Any, **known: Any) -> Verdict:
    """The pod is an hour old."""
    pod = a_pod(protected=value)
    return about(evaluated(DECIDER, a_claim(), a_node(), pod, *more, **known), "Pod/default/web")


def capped(cap: str) -> Any:
    pool = a_pool()
    disruption = msgspec.structs.replace(pool.spec.disruption, max_pod_protection=cap)
    return msgspec.structs.replace(
        pool, spec=msgspec.structs.replace(pool.spec, disruption=disruption)
    )


@pytest.mark.parametrize(
    ("value", "reason", "message", "recheck_at"),
    [
        pytest.param(
            "true", "DoNotDisruptIndefinitely", "protects from disruption for ever", None, id="true"
        ),
        pytest.param(
            "4h",
            "DoNotDisruptUntil",
            "protects from disruption until 2026-03-02T15:00:00Z",
            ahead(10800),
            id="4h",
        ),
        pytest.param(
            "1h",
            "DoNotDisruptGracePeriodElapsed",
            "protected from disruption until 2026-03-02T12:00:00Z",
            None,
            id="over to the second",
        ),
        *(
            pytest.param(
                value,
                "InvalidDoNotDisruptAnnotation",
                'is neither "true", "false" nor a duration such as 4h, and protects from disruption for ever',
                None,
                id=repr(value),
            )
            for value in ("4 hours", "0", "-1h", "", "TRUE", "Never")
        ),
    ],
)
def test_each_value_is_reported(
    value: str, reason: str, message: str, recheck_at: datetime | None
) -> None:
    verdict = of_pod(value)
    assert verdict.reason == reason
    assert verdict.message == f'karpenter.sh/do-not-disrupt: "{value}" {message}'
    assert (verdict.recheck_at, verdict.action) == (recheck_at, None)


@pytest.mark.parametrize(
    ("value", "cap", "reason", "message"),
    [
        ("true", "2h", Reason.PROTECTED_UNTIL, "until 2026-03-02T13:00:00Z (maxPodProtection 2h)"),
        ("4h", "30m", Reason.PROTECTION_ENDED, "until 2026-03-02T11:30:00Z (maxPodProtection 30m)"),
        ("90m", "2h", Reason.PROTECTED_UNTIL, "until 2026-03-02T12:30:00Z"),
        ("4h", "nonsense", Reason.PROTECTED_UNTIL, "until 2026-03-02T15:00:00Z"),
        (
            "Never",
            "30m",
            Reason.PROTECTION_ENDED,
            "until 2026-03-02T11:30:00Z (maxPodProtection 30m)",
        ),
    ],
)
def test_the_pool_caps_every_protection(value: str, cap: str, reason: Reason, message: str) -> None:
    verdict = of_pod(value, capped(cap))
    assert verdict.reason is reason
    assert verdict.message.endswith(message)


def test_the_clock_may_be_the_pods_start_and_one_that_has_not_started_is_protected() -> None:
    settings = Settings(protection_clock="start")
    pod = a_pod(protected="2h")
    started = msgspec.structs.replace(pod.status, start_time=ahead(-60))
    pod = msgspec.structs.replace(pod, status=started)
    (verdict,) = evaluated(DECIDER, a_claim(), a_node(), pod, settings=settings)
    assert verdict.message.endswith("until 2026-03-02T13:59:00Z")
    (waiting,) = evaluated(DECIDER, a_claim(), a_node(), a_pod(protected="2h"), settings=settings)
    assert waiting.reason is Reason.PROTECTED_FOR_EVER


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"protected": "false"}, id="false"),
        pytest.param({"protected": "4h", "phase": "Succeeded"}, id="finished"),
        pytest.param({"protected": "4h", "deletion_timestamp": ahead(30)}, id="terminating"),
        pytest.param({"protected": "4h", "node": "elsewhere"}, id="on no node of ours"),
    ],
)
def test_without_protection_nothing_is_reported(fields: dict[str, Any]) -> None:
    assert evaluated(DECIDER, a_claim(), a_node(), a_pod(**fields)) == []


# -- Nodes and claims --------------------------------------------------------------------


def test_a_duration_on_a_node_counts_from_when_it_was_first_seen() -> None:
    """A node that is ten days old and annotated now is protected for two hours from now."""
    fresh = a_node(creation_timestamp=ahead(-864000), annotations={DO_NOT_DISRUPT: "2h"})
    (verdict,) = evaluated(DECIDER, a_claim(), fresh)
    assert verdict.reason is Reason.PROTECTION_NOTED
    assert isinstance(verdict.action, Patch)
    written = dated(body_of(verdict), verdict.action.dated, NOW)["metadata"]["annotations"]
    assert written == {SINCE: "2h 2026-03-02T12:00:00Z"}
    noted = a_node(annotations={DO_NOT_DISRUPT: "2h", **written})
    (then,) = evaluated(DECIDER, a_claim(), noted)
    assert (then.reason, then.recheck_at) == (Reason.PROTECTED_UNTIL, ahead(7200))
    (over,) = evaluated(DECIDER, a_claim(), noted, now=ahead(7200))
    assert over.reason is Reason.PROTECTION_ENDED


@pytest.mark.parametrize(
    "beside", ["4h 2026-03-02T11:00:00Z", "2h", "2h yesterday", "2h 2026-03-02T11:00:00"]
)
def test_a_changed_or_invalid_beginning_is_written_again(beside: str) -> None:
    node = a_node(annotations={DO_NOT_DISRUPT: "2h", SINCE: beside})
    (verdict,) = evaluated(DECIDER, a_claim(), node)
    assert body_of(verdict)["metadata"]["annotations"] == {SINCE: "2h"}


@pytest.mark.parametrize("value", [None, "true", "false"])
def test_a_beginning_without_its_duration_is_removed(value: str | None) -> None:
    annotations = {SINCE: "2h 2026-03-02T11:00:00Z"}
    annotations |= {DO_NOT_DISRUPT: value} if value is not None else {}
    (verdict,) = evaluated(DECIDER, a_claim(annotations=annotations))
    assert body_of(verdict)["metadata"]["annotations"] == {SINCE: None}


def test_a_node_protected_for_ever_needs_no_beginning() -> None:
    (verdict,) = evaluated(DECIDER, a_claim(annotations={DO_NOT_DISRUPT: "true"}))
    assert (verdict.reason, verdict.action) == (Reason.PROTECTED_FOR_EVER, None)


def test_what_is_another_providers_is_not_written_to() -> None:
    claim = a_claim(annotations={DO_NOT_DISRUPT: "2h"}, ref=FOREIGN)
    node = a_node(annotations={DO_NOT_DISRUPT: "2h"})
    assert evaluated(DECIDER, claim, node) == []


def test_a_veto_of_repair_gets_its_beginning_in_the_same_way() -> None:
    (verdict,) = evaluated(DECIDER, a_claim(), a_node(annotations={DO_NOT_REPAIR: "2h"}))
    assert verdict.reason is Reason.PROTECTION_NOTED
    assert body_of(verdict)["metadata"]["annotations"] == {f"{DO_NOT_REPAIR}-since": "2h"}


@pytest.mark.parametrize("value", ["2 hours", "0", "", "TRUE"])
def test_an_invalid_veto_is_reported_as_one_for_ever(value: str) -> None:
    written = {DO_NOT_REPAIR: value}
    found = evaluated(DECIDER, a_claim(annotations=written), a_node(annotations=written))
    for subject in ("NodeClaim/a", "Node/node-a"):
        verdict = about(found, subject)
        assert verdict.reason is Reason.VETO_UNREADABLE
        assert verdict.message == (
            f'karpenter.sh/do-not-repair: "{value}" is neither "true", "false" nor a duration such '
            "as 4h, and vetoes repair for ever"
        )
        assert (verdict.action, verdict.recheck_at) == (None, None)


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_valid_veto_is_not_reported_here(value: str) -> None:
    assert evaluated(DECIDER, a_claim(), a_node(annotations={DO_NOT_REPAIR: value})) == []


def test_beside_an_invalid_veto_the_protection_is_reported_as_well() -> None:
    noted = {DO_NOT_REPAIR: "soon", DO_NOT_DISRUPT: "2h", SINCE: "2h 2026-03-02T11:00:00Z"}
    (verdict,) = evaluated(DECIDER, a_claim(), a_node(annotations=noted))
    assert verdict.reason is Reason.VETO_UNREADABLE
    assert verdict.message.endswith(
        'do-not-disrupt: "2h" protects from disruption until 2026-03-02T13:00:00Z'
    )
    assert verdict.recheck_at == ahead(3600)


def test_beside_karpenter_nothing_is_noted_before_the_node_is_registered() -> None:
    """Karpenter copies the annotations of a claim to the Node that registers."""
    beside, written = ProtectionDecider(claims_only=True), {DO_NOT_DISRUPT: "2h"}
    assert evaluated(beside, a_claim(stage=LAUNCHED, annotations=written)) == []
    (verdict,) = evaluated(beside, a_claim(stage=REGISTERED, annotations=written), a_node())
    assert body_of(verdict)["metadata"]["annotations"] == {SINCE: "2h"}
