"""Selectors select what Kubernetes selects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tenure.errors import SpecError
from tenure.model.api.pod import LabelSelector, LabelSelectorRequirement
from tenure.model.matching.selectors import matches, parse_field_selector, parse_label_selector
from tests.folders import DATA

#: What k8s.io/apimachinery v0.36.3 answers for the labels and objects below.
GOLDEN = [
    json.loads(line) for line in (DATA / "selectors.jsonl").read_text(encoding="utf-8").splitlines()
]
LABELS: list[dict[str, str]] = [
    {},
    {"a": "b"},
    {"a": "c", "e": "x"},
    {"a": "", "f": "1"},
    {"e": "y", "example.com/k": "v", "in": "notin"},
    {"a": "5", "e": "", "f": "007"},
    {"app.kubernetes.io/name": "web", "c": "d"},
]
OBJECTS: list[dict[str, Any]] = [
    {},
    {"metadata": {"name": "x"}},
    {"metadata": {"name": "y"}, "status": {"phase": "Running"}},
    {"metadata": {"name": "a=b"}, "status": {"phase": "x,y"}},
    {"metadata": {"name": "a\\b"}},
]
FIELDS = ("metadata.name", "status.phase")


def selected(kind: str, text: str) -> list[bool] | None:
    """Which of the samples are selected; None when the text is refused."""
    try:
        if kind == "label":
            labelled = parse_label_selector(text)
            return [labelled(labels) for labels in LABELS]
        predicate = parse_field_selector(text, FIELDS)
        return [predicate(obj) for obj in OBJECTS]
    except SpecError:
        return None


@pytest.mark.parametrize("kind", ["label", "field"])
def test_query_selectors_select_what_kubernetes_selects(kind: str) -> None:
    vectors = [vector for vector in GOLDEN if vector["kind"] == kind]
    assert len(vectors) >= 25
    for vector in vectors:
        assert selected(kind, vector["text"]) == vector.get("matches"), vector["text"]


def test_an_unclear_label_selector_is_refused_with_an_example() -> None:
    with pytest.raises(SpecError) as caught:
        parse_label_selector("a=b,c in x")
    assert str(caught.value) == (
        "labelSelector: got 'a=b,c in x', expected conditions such as "
        "app=web,tier!=db,zone in (a,b),!legacy. Unclear from 'c in x' on."
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b,-c", "label keys, and '-c' is none"),
        ("a=b-", "label values, and 'b-' is none"),
        ("a>many", "exactly one integer for Gt"),
    ],
)
def test_what_is_no_label_is_named(text: str, expected: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_label_selector(text)
    assert caught.value.expected == expected


def test_legacy_keys_are_asked_for_literally() -> None:
    predicate = parse_label_selector("beta.kubernetes.io/arch=arm64")
    assert predicate({"beta.kubernetes.io/arch": "arm64"})
    assert not predicate({"kubernetes.io/arch": "arm64"})


def test_a_field_that_is_not_supported_is_refused_with_those_that_are() -> None:
    with pytest.raises(SpecError) as caught:
        parse_field_selector("spec.color=red", FIELDS)
    assert str(caught.value) == (
        "fieldSelector: got 'spec.color', expected a field out of metadata.name, status.phase. "
        "Use metadata.name=x."
    )


def test_an_unclear_field_selector_names_the_condition() -> None:
    with pytest.raises(SpecError, match=r"Unclear: 'status\.phase'"):
        parse_field_selector("metadata.name=x,status.phase", FIELDS)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({"spec": {"unschedulable": True}}, [True, False]),
        ({"spec": {"unschedulable": False}}, [False, True]),
        ({}, [False, True]),
    ],
    ids=["true", "false", "left out"],
)
def test_booleans_are_asked_for_as_words(obj: dict[str, Any], expected: list[bool]) -> None:
    texts = ["spec.unschedulable=true", "spec.unschedulable=false"]
    answers = [parse_field_selector(text, ["spec.unschedulable"])(obj) for text in texts]
    assert answers == expected


def test_numbers_are_asked_for_as_their_digits() -> None:
    predicate = parse_field_selector("status.successful=3", ["status.successful"])
    assert predicate({"status": {"successful": 3}})
    assert not predicate({"status": {"successful": 4}})
    assert not predicate({"status": 3})


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not matches(None, {"a": "b"})
    assert matches(LabelSelector(), {"a": "b"})
    assert matches(LabelSelector(), {})


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ("b", "c"), [False, True, True, False]),
        ("NotIn", ("b",), [True, False, True, True]),
        ("Exists", (), [False, True, True, True]),
        ("DoesNotExist", (), [True, False, False, False]),
    ],
)
def test_each_operator_of_an_expression(
    operator: str, values: tuple[str, ...], expected: list[bool]
) -> None:
    expression = LabelSelectorRequirement(key="a", operator=operator, values=values)
    selector = LabelSelector(match_expressions=(expression,))
    assert [matches(selector, labels) for labels in LABELS[:4]] == expected


def test_labels_and_expressions_must_all_hold() -> None:
    expression = LabelSelectorRequirement(key="e", operator="Exists")
    selector = LabelSelector(match_labels={"a": "c"}, match_expressions=(expression,))
    assert [matches(selector, labels) for labels in LABELS[:3]] == [False, False, True]
    assert not matches(selector, {"a": "c"})


def test_an_unknown_operator_is_an_error_rather_than_a_guess() -> None:
    expression = LabelSelectorRequirement(key="a", operator="Near")
    with pytest.raises(SpecError, match=r"matchExpressions\[a\]\.operator: got 'Near'"):
        matches(LabelSelector(match_expressions=(expression,)), {})
