"""A dump of kubectl's is one list in JSON: a long one is read item by item, whatever the limits of manifests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tenure.errors import SpecError
from tenure.parse.limits import FILE
from tenure.parse.manyobjects import read_objects

#: Twelve of them are more than a manifest may be.
WIDE = "x" * 2_900_000


def a_pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {"wide": WIDE}}}


def a_list(*items: Any, kind: str = "PodList") -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "v1", "items": list(items)}


def written(folder: Path, found: dict[str, Any]) -> Path:
    path = folder / "dump.json"
    path.write_text(json.dumps(found, indent=4))
    return path


def test_a_list_longer_than_any_manifest_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, a_list(*(a_pod(f"p{number}") for number in range(12))))
    assert path.stat().st_size > FILE.size
    found = [obj for _, obj in read_objects(path) if not isinstance(obj, SpecError)]
    assert [one["metadata"]["name"] for one in found] == [f"p{number}" for number in range(12)]
    assert {(one["apiVersion"], one["kind"]) for one in found} == {("v1", "Pod")}


def test_a_list_in_a_long_list_is_read_too(tmp_path: Path) -> None:
    inner = a_list(*(a_pod(f"p{number}") for number in range(4)))
    path = written(tmp_path, a_list(inner, kind="List"))
    assert len([obj for _, obj in read_objects(path) if not isinstance(obj, SpecError)]) == 4


def test_an_item_that_is_too_large_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    large = a_pod("large")
    large["metadata"]["annotations"]["wider"] = WIDE
    path = written(tmp_path, a_list(a_pod("p0"), large, a_pod("p2"), a_pod("p3")))
    found = list(read_objects(path))
    (place, wrong), *_ = [one for one in found if isinstance(one[1], SpecError)]
    assert place == "dump.json: items[1]"
    assert isinstance(wrong, SpecError)
    assert "at most" in wrong.expected
    assert len(found) == 4


def test_a_long_list_that_is_cut_short_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, a_list(*(a_pod(f"p{number}") for number in range(4))))
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(SpecError, match=r"dump\.json"):
        list(read_objects(path))
