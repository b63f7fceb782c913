"""The vocabulary of answers, its order, and the list of deciders."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.claim.decider import LifecycleDecider
from tenure.core.claim.launch import launch_request
from tenure.core.decision import (
    Concern,
    Create,
    Delete,
    Evict,
    Ground,
    Launch,
    Patch,
    Subject,
    Terminate,
    takes_away,
)
from tenure.core.policy.deciders import decide_all, deciders
from tenure.core.reasons import REASONS, Reason
from tenure.core.writes import delete_claim, release
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.settings import Settings
from tests.core.build import NOW, SETTINGS, a_claim, a_leaving_claim, a_pod
from tests.snapshots import snapshot_with

ACTIONS = [
    (release(a_claim()), False),
    (Create(resource=NODE_CLAIMS, name="a", body={}), False),
    (Launch(request=launch_request(a_claim(), "embedded")), False),
    (delete_claim(a_claim(), Ground.REPLACED), True),
    (Evict(name="web", namespace="default", uid="u"), True),
    (Terminate(provider_id="cloud://a", claim_uid="u"), True),
]


@pytest.mark.parametrize(
    ("action", "takes"), ACTIONS, ids=[type(action).__name__ for action, _ in ACTIONS]
)
def test_some_actions_take_away_what_a_workload_may_use(action: Any, takes: bool) -> None:
    assert takes_away(action) is takes


def test_all_six_verbs_are_in_that_table() -> None:
    assert {type(action) for action, _ in ACTIONS} == {
        *(Patch, Create, Delete, Evict, Launch, Terminate),
    }


def test_a_subject_reads_like_kubectl() -> None:
    assert str(Subject.of("Pod", a_pod())) == "Pod/default/web"
    assert str(Subject.of("NodeClaim", a_claim())) == "NodeClaim/a"


def test_deciders_speak_in_the_order_of_their_authority() -> None:
    alone = [decider.concern for decider in deciders()]
    beside = [decider.concern for decider in deciders(Settings(beside_karpenter=True))]
    assert {*alone, *beside} == set(Concern)
    for found in (alone, beside):
        assert found == [concern for concern in Concern if concern in found]


@pytest.mark.parametrize("reason", list(Reason), ids=str)
def test_every_reason_is_explained_and_a_warning_says_what_to_do(reason: Reason) -> None:
    info = REASONS[reason]
    assert info.meaning.endswith(".")
    assert info.advice.endswith((".", "?"))
    assert info.event in ("", "Normal", "Warning")


def test_a_reason_is_one_word_that_can_be_searched_for() -> None:
    assert all(reason.isalnum() and reason[0].isupper() for reason in Reason)


def test_evaluating_everything_skips_keys_without_a_view() -> None:
    snapshot = snapshot_with(a_claim("b"), a_leaving_claim("a"), a_claim("c"))
    found = decide_all(LifecycleDecider(), snapshot, SETTINGS, NOW)
    assert [verdict.subject.name for verdict in found] == ["b", "c"]
