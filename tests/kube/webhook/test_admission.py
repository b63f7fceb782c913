"""Which changes the webhook refuses, in which words, and all that it lets pass."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.kube.reviews import Json, a_review, admission
from tests.schema.objects import an_object

MAY_DAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
BUDGETS = "spec.disruption.budgets"
HOURS = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}
BAD_CRON = {**HOURS, "schedule": "61 * * * *"}
BAD_ZONE = {**HOURS, "timeZone": "Mars/Base"}


def answer_to(body: bytes) -> Json:
    answer, reviewed = admission().answer(body, MAY_DAY)
    review = msgspec.json.decode(answer)
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: Json = review["response"]
    assert response["allowed"] == reviewed.allowed
    return response


def a_pool(*budgets: Json, **changes: Any) -> Json:
    return an_object("NodePool", {BUDGETS: list(budgets), **changes})


def a_window(cron: str = "@daily", **changes: Any) -> Json:
    schedules = [{"cron": cron, "duration": "8h"}]
    return an_object("MaintenanceWindow", {"spec.schedules": schedules, **changes})


# What is refused.


def test_a_bad_cron_is_refused_with_field_value_expectation_and_example() -> None:
    response = answer_to(a_review(a_window("61 * * * *")))
    status = response["status"]
    assert (response["uid"], response["allowed"]) == ("review-1", False)
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["details"]["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "field": "spec.schedules[0].cron",
            "message": "got '61 * * * *', expected a cron expression such as 0 6 * * 1-5. "
            "The minute 61 is out of 0–59.",
        }
    ]
    assert status["message"].startswith(
        'MaintenanceWindow.karpenter.sh "sample" is invalid: spec.schedules[0].cron: got'
    )


def test_every_problem_is_a_cause_of_its_own() -> None:
    response = answer_to(a_review(a_pool(BAD_CRON, BAD_ZONE)))
    causes = response["status"]["details"]["causes"]
    assert [cause["field"] for cause in causes] == [
        "spec.disruption.budgets[0].schedule",
        "spec.disruption.budgets[1].timeZone",
    ]


BAD_OF_EACH_KIND = [
    ("NodePool", {"spec.limits": {"cpu": "1e1.5"}}, "spec.limits[cpu]"),
    ("NodeClaim", {"spec.resources": {"requests": {"cpu": "1e1.5"}}}, "requests[cpu]"),
    ("MaintenanceWindow", {"spec.dates": [{"from": "x", "until": "y"}]}, "spec.dates[0].from"),
    ("KWOKNodeClass", {"spec.nodeRegistrationDelay": "9999999999h"}, "nodeRegistrationDelay"),
]


@pytest.mark.parametrize(
    ("kind", "changes", "field"), [pytest.param(*case, id=case[0]) for case in BAD_OF_EACH_KIND]
)
def test_each_of_our_kinds_is_reviewed(kind: str, changes: Json, field: str) -> None:
    response = answer_to(a_review(an_object(kind, changes)))
    assert field in response["status"]["details"]["causes"][0]["field"]


def test_a_change_that_makes_something_wrong_is_refused() -> None:
    response = answer_to(a_review(a_window("61 * * * *"), old=a_window()))
    assert not response["allowed"]


def test_a_mistake_of_old_does_not_excuse_a_new_one() -> None:
    response = answer_to(a_review(a_pool(BAD_CRON, BAD_ZONE), old=a_pool(BAD_CRON)))
    (cause,) = response["status"]["details"]["causes"]
    assert cause["field"] == "spec.disruption.budgets[1].timeZone"


def test_one_mistake_of_old_excuses_one_and_not_two() -> None:
    response = answer_to(a_review(a_pool(BAD_CRON, BAD_CRON), old=a_pool(BAD_CRON)))
    (cause,) = response["status"]["details"]["causes"]
    assert cause["field"] == "spec.disruption.budgets[1].schedule"


def test_another_mistake_in_the_same_field_is_refused() -> None:
    worse = {**BAD_CRON, "schedule": "62 * * * *"}
    response = answer_to(a_review(a_pool(worse), old=a_pool(BAD_CRON)))
    assert "62" in response["status"]["message"]


# What passes.


@pytest.mark.parametrize("kind", ["NodePool", "NodeClaim", "MaintenanceWindow", "KWOKNodeClass"])
def test_what_is_fine_passes(kind: str) -> None:
    assert answer_to(a_review(an_object(kind)))["allowed"]


def test_an_unchanged_mistake_passes_and_is_said_again() -> None:
    response = answer_to(a_review(a_pool(BAD_CRON, **{"spec.weight": 5}), old=a_pool(BAD_CRON)))
    assert response["allowed"]
    (warning,) = response["warnings"]
    assert warning.startswith("wrong as before: spec.disruption.budgets[0].schedule: got '61")


def test_a_budget_put_in_front_does_not_make_the_others_new() -> None:
    before, after = a_pool(BAD_CRON, BAD_ZONE), a_pool({"nodes": "1"}, BAD_CRON, BAD_ZONE)
    assert answer_to(a_review(after, old=before))["allowed"]


def test_a_mistake_that_is_mended_passes_while_another_stays() -> None:
    before = a_pool(BAD_CRON, **{"spec.limits": {"cpu": "1e1.5"}})
    assert answer_to(a_review(a_pool(BAD_CRON), old=before))["allowed"]


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"metadata.finalizers": []}, id="a finalizer that goes"),
        pytest.param({"metadata.labels": {"a": "b"}}, id="a label that comes"),
        pytest.param({"status": {"nodes": 3}}, id="a status"),
    ],
)
def test_a_change_beside_the_spec_passes_silently(metadata: Json) -> None:
    old = a_pool(BAD_CRON, **{"metadata.finalizers": ["karpenter.sh/termination"]})
    response = answer_to(a_review(a_pool(BAD_CRON, **metadata), old=old))
    assert response == {"uid": "review-1", "allowed": True}


def test_an_object_on_its_way_out_is_never_held() -> None:
    leaving = {"metadata.deletionTimestamp": "2026-05-01T11:00:00Z"}
    old = a_pool(**leaving)
    response = answer_to(a_review(a_pool(BAD_CRON, **leaving), old=old))
    assert response == {"uid": "review-1", "allowed": True}


THEIRS = {"spec.template.spec.nodeClassRef": {"group": "aws", "kind": "X", "name": "a"}}


def test_a_pool_of_another_provider_is_not_reviewed_and_its_author_is_told() -> None:
    response = answer_to(a_review(a_pool(BAD_CRON, **THEIRS)))
    assert response["allowed"]
    (warning,) = response["warnings"]
    assert warning == (
        "spec.template.spec.nodeClassRef: X of aws is left to another provider, "
        "and Tenure launches nothing for it; it serves KWOKNodeClass of karpenter.kwok.sh"
    )


def test_the_author_is_not_told_again_at_every_change() -> None:
    old, new = a_pool(**THEIRS), a_pool(**THEIRS, **{"spec.weight": 5})
    assert answer_to(a_review(new, old=old)) == {"uid": "review-1", "allowed": True}


def test_a_claim_of_another_provider_passes_silently() -> None:
    ref = {"spec.nodeClassRef": {"group": "aws", "kind": "X", "name": "a"}}
    bad = an_object("NodeClaim", {**ref, "spec.expireAfter": "x"})
    assert answer_to(a_review(bad)) == {"uid": "review-1", "allowed": True}


def test_a_subresource_is_not_reviewed() -> None:
    response = answer_to(a_review(a_pool(BAD_CRON), old=a_pool(), subResource="status"))
    assert response == {"uid": "review-1", "allowed": True}


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
LATER = {**an_object("NodePool"), "apiVersion": "karpenter.sh/v2"}
STRANGE = [
    ("another kind", a_review(POD), "Pod in v1/: not reviewed"),
    ("another version", a_review(LATER), "NodePool in karpenter.sh/v2: not reviewed"),
    ("a deletion", a_review(None, a_pool(BAD_CRON), operation="DELETE"), "operation DELETE"),
    ("an unknown verb", a_review(a_pool(BAD_CRON), operation="CONNECT"), "operation CONNECT"),
    ("no verb", a_review(a_pool(BAD_CRON), operation=""), "operation without a name"),
    ("an object that is none", a_review(a_pool(), object={"spec": 5}), "Expected `object`"),
    ("no object at all", a_review(a_pool(), object=None), "cannot be read"),
]


@pytest.mark.parametrize(
    ("body", "why"), [pytest.param(body, why, id=says) for says, body, why in STRANGE]
)
def test_what_we_cannot_review_passes_and_we_say_so(body: bytes, why: str) -> None:
    response = answer_to(body)
    (warning,) = response["warnings"]
    assert response["allowed"]
    assert response["uid"] == "review-1"
    assert warning.startswith("tenure lets it pass: ")
    assert why.replace("v1/", "/v1") in warning or why in warning


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"request": 5}',
        b'{"apiVersion": "admission.k8s.io/v1"}',
        b'{"request": {"object": ' + b"[" * 100_000,
    ],
    ids=["nothing", "half of it", "a list", "no text", "a wrong shape", "no request", "a well"],
)
def test_a_review_that_cannot_be_read_passes(body: bytes) -> None:
    response = answer_to(body)
    assert response["allowed"]
    assert "the review cannot be read" in response["warnings"][0]


def test_a_review_of_another_version_is_answered_in_its_own_and_passes() -> None:
    body = a_review(a_pool(BAD_CRON)).replace(b"k8s.io/v1", b"k8s.io/v1beta1")
    answer, reviewed = admission().answer(body, MAY_DAY)
    assert msgspec.json.decode(answer)["apiVersion"] == "admission.k8s.io/v1beta1"
    assert reviewed.allowed


def test_an_old_object_that_cannot_be_read_excuses_everything() -> None:
    response = answer_to(a_review(a_pool(BAD_CRON), old={**a_pool(), "spec": 5}))
    assert response["allowed"]
    assert "wrong as before" in response["warnings"][0]


def test_an_object_that_is_nested_without_end_passes() -> None:
    spec = b'{"spec":' * 10_000 + b"1" + b"}" * 10_000
    body = a_review(a_pool(), object="HERE").replace(b'"HERE"', spec)
    assert answer_to(body)["allowed"]


# How much is said.


def test_a_thousand_mistakes_are_named_in_part_and_counted() -> None:
    many = [{**BAD_CRON, "schedule": f"{'6' * 1000}{n} * * * *"} for n in range(1000)]
    status = answer_to(a_review(a_pool(*many)))["status"]
    assert len(status["details"]["causes"]) == 20
    assert all(len(cause["message"]) <= 500 for cause in status["details"]["causes"])
    assert status["message"].endswith(", and 980 more")


# Warnings.


def test_what_does_nothing_yet_is_said_on_create_and_not_on_a_change_of_labels() -> None:
    idle = {"spec.replicas": 2}
    pool = a_pool(**idle)
    (warning,) = answer_to(a_review(pool))["warnings"]
    assert warning.startswith("spec.replicas: does nothing yet")
    labelled = a_pool(**idle, **{"metadata.labels": {"a": "b"}})
    assert "warnings" not in answer_to(a_review(labelled, old=pool))


def test_warnings_are_few_and_short() -> None:
    many = [{**BAD_CRON, "schedule": f"{'6' * 100}{n} * * * *"} for n in range(20)]
    pool = a_pool(*many)
    response = answer_to(a_review(a_pool(*many, **{"spec.weight": 5}), old=pool))
    assert len(response["warnings"]) == 8
    assert all(len(warning) <= 250 for warning in response["warnings"])
