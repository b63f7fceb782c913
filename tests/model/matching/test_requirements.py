"""Sets of requirements: compatibility means that some node can satisfy both sides."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tenure.errors import SpecError
from tenure.model.api.names import WELL_KNOWN_LABELS, ZONE
from tenure.model.api.pod import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    PreferredSchedulingTerm,
)
from tenure.model.matching.requirements import (
    NODE_NAME,
    Clash,
    Requirement,
    Requirements,
    pod_alternatives,
    pod_preferences,
    pod_requirements,
)
from tests.folders import DATA

#: What Karpenter 1.15 answers for 400 pairs of requirements drawn from a seed.
GOLDEN = [
    json.loads(line)
    for line in (DATA / "karpenter-requirements.jsonl").read_text(encoding="utf-8").splitlines()
]
KEYS = [ZONE, "example.com/team"]
VALUES = ["a", "b", "3", "4"]
#: Absent, the values above, and an example for every set that they can exclude.
STATES = [None, *VALUES, "z", "0", "99", "03"]


def read(written: list[dict[str, Any]]) -> Requirements:
    return Requirements.from_wire(msgspec.convert(written, list[NodeSelectorRequirement]))


def wire(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


@st.composite
def requirements(draw: st.DrawFn) -> Requirements:
    chosen = []
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=3)):
        operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lte"]))
        values = draw(st.sets(st.sampled_from(VALUES), min_size=1, max_size=3))
        if operator in ("Gt", "Lte"):
            values = {draw(st.sampled_from(["2", "3"]))}
        chosen.append(Requirement.of(key, operator, sorted(values)))
    return Requirements.of(chosen)


def lets_through(given: Requirements, labels: dict[str, str | None]) -> bool:
    """Enumeration's view of a node: every key is a value or absent."""
    for key, requirement in given.items():
        value = labels[key]
        if not (requirement.allows_absent if value is None else requirement.has(value)):
            return False
    return True


def test_compatibility_is_karpenters_for_single_requirements() -> None:
    assert len(GOLDEN) == 400
    for vector in GOLDEN:
        node, pod = read(vector["node"]), read(vector["pod"])
        assert node.is_compatible(pod) == vector["compatible"], vector
        undefined = node.is_compatible(pod, WELL_KNOWN_LABELS)
        assert undefined == vector["compatibleUndefined"], vector


def test_intersections_let_the_same_values_through_as_karpenters() -> None:
    values = ["a", "b", "c", "3", "4", "5", "04"]
    for vector in GOLDEN:
        both = read(vector["node"]).intersect(read(vector["pod"]))
        for key, expected in vector["intersection"].items():
            assert [value for value in values if both[key].has(value)] == expected, vector


@given(requirements(), requirements())
def test_compatible_means_that_some_labelling_satisfies_both(
    node: Requirements, pod: Requirements
) -> None:
    assume(not any(requirement.impossible for requirement in node.values()))
    # A node that says nothing about a key will not have the label.
    states = [STATES if key in node else [None] for key in KEYS]
    nodes = [dict(zip(KEYS, chosen, strict=True)) for chosen in product(*states)]
    some = any(lets_through(node, labels) and lets_through(pod, labels) for labels in nodes)
    assert node.is_compatible(pod) == some


@given(requirements(), requirements(), st.sampled_from([frozenset(), WELL_KNOWN_LABELS]))
def test_there_is_a_clash_exactly_when_it_is_incompatible(
    node: Requirements, pod: Requirements, undefined: frozenset[str]
) -> None:
    because = node.why_incompatible(pod, undefined)
    assert (because is None) == node.is_compatible(pod, undefined)


@given(requirements(), requirements(), requirements())
def test_intersecting_sets_is_commutative_associative_and_idempotent(
    a: Requirements, b: Requirements, c: Requirements
) -> None:
    assert a.intersect(b) == b.intersect(a)
    assert a.intersect(b).intersect(c) == a.intersect(b.intersect(c))
    assert a.intersect(a) == a
    both = a.intersect(b)
    assert hash(both) == hash(b.intersect(a)) == hash(both)


@given(requirements())
def test_the_wire_form_reads_back_as_the_same_set(given: Requirements) -> None:
    assert read(given.to_wire()) == given


def test_several_requirements_on_one_key_are_intersected() -> None:
    both = Requirements.from_wire([wire(ZONE, "In", "a", "b"), wire(ZONE, "NotIn", "b")])
    assert both == Requirements.from_labels({ZONE: "a"})
    assert both.add(Requirement.of(ZONE, "Exists")) == both


def test_the_error_names_the_entry_of_the_list() -> None:
    with pytest.raises(SpecError) as caught:
        Requirements.from_wire([wire(ZONE, "Exists"), wire(ZONE, "Near")], "spec.requirements")
    assert caught.value.at == "spec.requirements[1].operator"


def test_labels_are_the_certain_ones_only() -> None:
    given = read(
        [
            {"key": "b", "operator": "In", "values": ["1"]},
            {"key": "a", "operator": "In", "values": ["2"]},
            {"key": "c", "operator": "In", "values": ["1", "2"]},
            {"key": "d", "operator": "Exists"},
            {"key": "e", "operator": "NotIn", "values": ["1"]},
        ]
    )
    assert list(given.labels().items()) == [("a", "2"), ("b", "1")]


@pytest.mark.parametrize(
    ("node", "pod", "because"),
    [
        (
            {ZONE: "a"},
            {ZONE: "b"},
            Clash(Requirement.label(ZONE, "b"), Requirement.label(ZONE, "a")),
        ),
        ({}, {"example.com/team": "red"}, Clash(Requirement.label("example.com/team", "red"))),
        ({}, {f"{ZONE}s": "a"}, Clash(Requirement.label(f"{ZONE}s", "a"), similar=ZONE)),
        ({}, {"zone": "a"}, Clash(Requirement.label("zone", "a"), similar=ZONE)),
        ({}, {ZONE: "a"}, None),
    ],
    ids=["other value", "unknown label", "near miss", "forgotten prefix", "well-known label"],
)
def test_a_clash_has_what_is_asked_for_and_what_there_is(
    node: dict[str, str], pod: dict[str, str], because: Clash | None
) -> None:
    asked = Requirements.from_labels(pod)
    offered = Requirements.from_labels(node)
    assert offered.why_incompatible(asked, WELL_KNOWN_LABELS) == because


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({ZONE: "a", "size": "4"}, True),
        ({ZONE: "a"}, False),
        ({ZONE: "b", "size": "4"}, False),
        ({"size": "4"}, True),
    ],
    ids=["all met", "a label is missing", "an excluded value", "an exclusion allows absence"],
)
def test_the_labels_of_a_real_node_match_or_not(labels: dict[str, str], expected: bool) -> None:
    asked = Requirements.from_wire([wire(ZONE, "NotIn", "b"), wire("size", "Gt", "3")])
    assert asked.matches(labels) is expected


def test_a_mapping_like_any_other() -> None:
    given = Requirements.from_labels({ZONE: "a", "x": "1"})
    assert (len(given), list(given), ZONE in given, "y" in given) == (2, [ZONE, "x"], True, False)
    assert given[ZONE].values == ("a",)
    assert given.allowed(ZONE) is given[ZONE]
    assert given.allowed("y") == Requirement.of("y", "Exists")
    assert repr(given) == "Requirements(topology.kubernetes.io/zone In [a], x In [1])"
    assert given != {ZONE: given[ZONE], "x": given["x"]}


def affine_pod(
    *terms: NodeSelectorTerm, preferred: tuple[PreferredSchedulingTerm, ...] = ()
) -> Pod:
    affinity = NodeAffinity(
        required_during_scheduling_ignored_during_execution=(
            NodeSelector(node_selector_terms=terms) if terms else None
        ),
        preferred_during_scheduling_ignored_during_execution=preferred,
    )
    spec = PodSpec(node_selector={"disk": "ssd"}, affinity=Affinity(node_affinity=affinity))
    return Pod(spec=spec)


def term(*expressions: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions)


def test_a_pod_without_affinity_asks_for_its_node_selector() -> None:
    pod = Pod(spec=PodSpec(node_selector={"disk": "ssd"}))
    assert pod_alternatives(pod) == [Requirements.from_labels({"disk": "ssd"})]
    assert list(pod_preferences(pod)) == []


def test_each_affinity_term_is_an_alternative_on_top_of_the_node_selector() -> None:
    pod = affine_pod(term(wire(ZONE, "In", "a")), term(wire(ZONE, "In", "b")))
    first = Requirements.from_labels({"disk": "ssd", ZONE: "a"})
    assert pod_requirements(pod) == first
    assert pod_alternatives(pod) == [first, Requirements.from_labels({"disk": "ssd", ZONE: "b"})]


def test_an_empty_term_matches_no_node() -> None:
    assert pod_requirements(affine_pod(term(), term(wire(ZONE, "Exists")))) == pod_requirements(
        affine_pod(term(wire(ZONE, "Exists")))
    )
    assert pod_requirements(affine_pod(term()))[NODE_NAME].impossible


def test_a_pod_pinned_to_a_node_by_name_fits_that_node_and_no_new_one() -> None:
    pinned = NodeSelectorTerm(match_fields=(wire(NODE_NAME, "In", "node-1"),))
    asked = pod_requirements(affine_pod(pinned))
    assert Requirements.from_labels({"disk": "ssd", NODE_NAME: "node-1"}).is_compatible(asked)
    assert not Requirements.from_labels({"disk": "ssd", NODE_NAME: "node-2"}).is_compatible(asked)
    assert not Requirements.from_labels({"disk": "ssd"}).is_compatible(asked)


def test_preferences_come_heaviest_first_and_are_not_required() -> None:
    pod = affine_pod(
        preferred=(
            PreferredSchedulingTerm(weight=1, preference=term(wire(ZONE, "In", "a"))),
            PreferredSchedulingTerm(weight=9, preference=term(wire(ZONE, "In", "b"))),
            PreferredSchedulingTerm(weight=1, preference=term(wire(ZONE, "In", "c"))),
        )
    )
    expected = [(9, "b"), (1, "a"), (1, "c")]
    wanted = [(w, Requirements.from_labels({ZONE: z})) for w, z in expected]
    assert list(pod_preferences(pod)) == wanted
    assert pod_requirements(pod) == Requirements.from_labels({"disk": "ssd"})


def test_a_bad_affinity_is_named_with_its_whole_path() -> None:
    with pytest.raises(SpecError) as caught:
        pod_requirements(affine_pod(term(wire(ZONE, "Exists"), wire("size", "Gt", "big"))))
    assert caught.value.at == (
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".nodeSelectorTerms[0].matchExpressions[1].values"
    )
