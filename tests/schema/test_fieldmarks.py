"""The table of fields: complete, true to the code, and said to users."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import pytest

from docs.api_page import api_page, fields
from docs.generate import KINDS
from tenure.model.api import names
from tenure.model.api.fields import described
from tenure.model.api.nodepool import NodePool, NodePoolSpec
from tenure.model.api.resource import NODE_POOLS
from tenure.providers.kwok.nodeclass import KWOKNodeClassSpec
from tenure.schema.fieldmarks import ACTS, ANNOTATIONS, MARKS, FieldMark, Mark
from tenure.schema.fields import marks_of, used_by, used_fields
from tenure.schema.structure.crd import CUSTOM_KINDS, CustomKind, schema_of
from tests.core.build import a_pool
from tests.folders import ROOT

POOLS = next(kind for kind in CUSTOM_KINDS if kind.resource == NODE_POOLS)
#: Where decisions are made, and nodes.
DECIDING = ("core", "packing", "providers")
#: The hash of the template has every field, because Karpenter's has.
HASH = "templatehash.py"


def kind_id(kind: CustomKind) -> str:
    return kind.resource.kind


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
def test_every_field_of_a_kind_has_a_mark(kind: CustomKind) -> None:
    assert {path for path, _, _ in fields(schema_of(kind))} == set(marks_of(kind))


class LongerSpec(NodePoolSpec, frozen=True, kw_only=True):
    new_one: Annotated[str, described("A field that was added in a hurry.")] = ""


class LongerPool(NodePool, frozen=True, kw_only=True):
    """A pool with one more field."""

    spec: Annotated[LongerSpec, described("What is wanted.", required=True)] = LongerSpec()


def test_a_field_that_is_added_without_a_mark_is_found() -> None:
    longer = CustomKind(NODE_POOLS, LongerPool, ())
    assert "spec.newOne" in {path for path, _, _ in fields(schema_of(longer))}
    assert "spec.newOne" not in marks_of(longer)
    marks = {LongerSpec: MARKS[NodePoolSpec]}
    with pytest.raises(LookupError, match=r"LongerSpec.newOne has no mark"):
        marks_of(CustomKind(NODE_POOLS, LongerPool, (), marks=marks))


def test_no_mark_is_left_over() -> None:
    for type_, marks in MARKS.items():
        assert set(marks) == {field.encode_name for field in msgspec.structs.fields(type_)}


def all_marks() -> Iterator[tuple[str, str, FieldMark]]:
    """Type and attribute of every field."""
    table: dict[Any, Any] = {**MARKS, KWOKNodeClassSpec: KINDS[-1].marks[KWOKNodeClassSpec]}
    for type_, marks in table.items():
        for field in msgspec.structs.fields(type_):
            yield type_.__name__, field.name, marks[field.encode_name]


def test_what_does_not_simply_act_says_how() -> None:
    for type_, field, mark in all_marks():
        assert bool(mark.how) is (mark.mark is not Mark.ACTS), f"{type_}.{field}"
        assert not mark.how or mark.how.endswith("."), f"{type_}.{field}"


def reads() -> Iterator[str]:
    """Each attribute that decides something, with the name before it where there is one: ``spec.replicas``."""
    for package in DECIDING:
        for file in (ROOT / "src" / "tenure" / package).rglob("*.py"):
            if file.name == HASH:
                continue
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    before = node.value
                    owner = getattr(before, "attr", getattr(before, "id", ""))
                    whose = getattr(getattr(before, "value", None), "id", "")
                    # A Deployment has a spec, too: Karpenter's is read beside it.
                    yield f"{'deployment.' if whose == 'deployment' else ''}{owner}.{node.attr}"


READS = frozenset(reads())
READ_NAMES = frozenset(read.rpartition(".")[2] for read in READS)
#: Types whose attributes are read under these names; of an ignored field these must not occur.
OWNERS = {"NodePoolSpec": ("spec",), "Taint": ("taint", "one", "each")}


@pytest.mark.parametrize(
    ("type_", "field", "mark"), [pytest.param(*one, id=f"{one[0]}.{one[1]}") for one in all_marks()]
)
def test_the_table_says_what_the_code_does(type_: str, field: str, mark: FieldMark) -> None:
    if mark.mark is not Mark.IGNORED:
        assert field in READ_NAMES, "it is said to act, and nothing reads it"
    elif type_ in OWNERS:
        read = READS & {f"{owner}.{field}" for owner in OWNERS[type_]}
        assert not read, "it is said to be ignored, and is read"
    else:
        assert "refuses" in mark.how, "what is not refused needs its owners above"


def test_every_annotation_that_users_write_has_a_mark() -> None:
    """A name that is not among the marks of Tenure and Karpenter is a user's."""
    written = {one.name for one in ANNOTATIONS}
    told = {
        value
        for key, value in vars(names).items()
        if isinstance(value, str) and key.startswith(("DO_NOT_", "POD_")) and "SYNC" not in key
    }
    assert told - names.BESIDE_MARKS == written


def test_the_api_reference_shows_the_mark_of_each_field() -> None:
    page = api_page(KINDS)
    for kind in KINDS:
        _, _, section = page.partition(f"\n## {kind.resource.kind}\n")
        lines = section.partition("\n## ")[0].splitlines()
        for path, mark in marks_of(kind).items():
            (row,) = [line for line in lines if line.startswith(f"| `{path}`")]
            shown = "| acts |" if mark.mark is Mark.ACTS else f"| **{mark.mark}**: {mark.how} |"
            assert shown in row
    for one in ANNOTATIONS:
        assert f"| `{one.name}` | {one.on} | " in page
    assert page.count("**ignored**") > 2


def used(**spec: Any) -> list[tuple[str, Mark]]:
    return [(one.at, one.mark.mark) for one in used_fields(spec, POOLS)]


def test_what_is_written_is_used() -> None:
    taints = [{"key": "a"}, {"key": "b", "timeAdded": "2026-03-02T12:00:00Z"}]
    template = {"spec": {"expireAfter": "720h", "taints": taints}}
    assert used(replicas=1, template=template, disruption={"consolidationPolicy": "WhenEmpty"}) == [
        ("spec.replicas", Mark.IGNORED),
        ("spec.template.spec.expireAfter", Mark.DIFFERS),
        ("spec.template.spec.taints[1].timeAdded", Mark.IGNORED),
    ]


@pytest.mark.parametrize(
    ("age", "block"),
    [
        ("Never", {}),
        ("0s", {}),
        ("720h", {"expirationPolicy": "Always"}),
        ("720h", {"expirationPolicy": "WhenAllowed"}),
    ],
)
def test_an_expiry_that_is_chosen_or_never_comes_is_not_told(age: str, block: Any) -> None:
    assert used(template={"spec": {"expireAfter": age}}, disruption=block) == []


def test_a_default_of_a_living_object_is_not_told() -> None:
    assert used_by(a_pool()) == ()
    (told,) = used_by(a_pool(template={"expireAfter": "168h"}))
    assert told.at == "spec.template.spec.expireAfter"


@pytest.mark.parametrize(
    "junk", [None, 3, "x", [], [1], {"template": 3}, {"template": {"spec": []}}]
)
def test_junk_uses_nothing(junk: Any) -> None:
    assert list(used_fields(junk, POOLS)) == []


def test_a_type_that_a_provider_says_nothing_of_has_no_marks() -> None:
    silent = CustomKind(KINDS[-1].resource, KINDS[-1].model, ())
    assert marks_of(silent) == {"spec": ACTS}
