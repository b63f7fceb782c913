"""Recommendations of the cloud: a condition of the claim, written once, and never taken back."""

from __future__ import annotations

from typing import Any

from tenure.core.decision import Verdict
from tenure.core.facts import Quoted
from tenure.core.notice.facts import RebalanceAnnounced
from tenure.core.notice.recommendation import RecommendationDecider
from tenure.core.reasons import Reason
from tenure.model.snapshot.observations import Announcement
from tests.core.build import a_claim, a_leaving_claim, ago, condition, evaluated, fact_of, said
from tests.properties.drawn.basics import FOREIGN

SAID = Announcement(by="acme", at=ago(5))
RECOMMENDED = condition("RebalanceRecommended", message="leave it")


def verdicts(claim: Any, announced: Announcement | None = SAID) -> list[Verdict]:
    known = {claim.uid: announced} if announced is not None else {}
    return evaluated(RecommendationDecider(), claim, recommendations=known)


def test_the_claim_says_it() -> None:
    (verdict,) = verdicts(a_claim())
    assert verdict.reason is Reason.REBALANCE_RECOMMENDED
    assert fact_of(verdict, RebalanceAnnounced) == RebalanceAnnounced("acme", ago(5), "cloud://a")
    assert said(verdict)["RebalanceRecommended"] == ("True", "ProviderRecommendation")


def test_it_is_written_once() -> None:
    (verdict,) = verdicts(a_claim(conditions=[RECOMMENDED]))
    assert verdict.action is None


def test_another_leader_forgets_nothing() -> None:
    (verdict,) = verdicts(a_claim(conditions=[RECOMMENDED]), None)
    assert (verdict.action, verdict.facts) == (None, (Quoted("leave it"),))


def test_nothing_is_said_of_others() -> None:
    assert verdicts(a_claim(), None) == []
    assert verdicts(a_leaving_claim()) == []
    assert verdicts(a_claim(ref=FOREIGN)) == []
