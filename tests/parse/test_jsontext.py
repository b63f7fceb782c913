"""JSON from outside: a limit for depth, size and numbers, before anything recurses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.errors import SpecError
from tenure.model.api.resource import PODS
from tenure.model.snapshot.kinds import Unreadable, decode
from tenure.parse import jsontext
from tenure.parse.files import read_text
from tenure.parse.limits import BODY, FILE, SMALL

DEEP = '{"a":' * 50 + "[" * 51 + "]" * 51 + "}" * 50
AT_MOST = '{"a":' * 50 + "[" * 50 + "]" * 50 + "}" * 50


@pytest.mark.parametrize("text", [DEEP, "[" * 1_000_000, '{"a":' * 500_000])
def test_depth_is_counted_before_anything_is_decoded(text: str) -> None:
    with pytest.raises(SpecError, match="got '101 levels of nesting', expected at most 100 levels"):
        jsontext.body(text.encode())
    with pytest.raises(SpecError, match=r"types\.json:1: got '101 levels of nesting'"):
        jsontext.load(text, "types.json")


def test_brackets_inside_text_are_no_depth() -> None:
    text = '["' + "[{" * 200 + '", "\\"' + "[" * 200 + '"]'
    assert len(jsontext.body(text.encode())) == 2
    assert jsontext.body(AT_MOST.encode()) == jsontext.load(AT_MOST, "f")


def test_the_line_of_what_is_too_deep_is_named() -> None:
    text = '{"a": 1,\n"b":\n' + "[" * 101
    with pytest.raises(SpecError, match="f:3: got '101 levels"):
        jsontext.load(text, "f")


def test_sizes_and_numbers_have_limits() -> None:
    with pytest.raises(SpecError, match=f"at most {BODY.size} bytes"):
        jsontext.body(b'"' + b"x" * BODY.size + b'"')
    with pytest.raises(SpecError, match="got 'a number of 101 characters', expected at most 100"):
        jsontext.load("9" * 101, "f")
    with pytest.raises(SpecError, match="got 'a number of 101 characters', expected at most 100"):
        jsontext.body(b"[" + b"9" * 101 + b"]")
    with pytest.raises(SpecError, match=r"body: got .* expected JSON"):
        jsontext.body(b"1e999")
    with pytest.raises(SpecError, match="got 'inf', expected a finite number"):
        jsontext.load("1e999", "f")


def test_a_key_twice_is_named_in_a_file() -> None:
    with pytest.raises(SpecError, match="got 'name', expected each key once"):
        jsontext.load('[{"name": 1, "cpu": 2, "name": 3}]', "types.json")


def test_a_deep_object_of_the_cluster_is_unreadable_and_no_crash() -> None:
    deep = b'{"metadata": {"name": "a"}, "spec": {"odd": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    assert isinstance(decode(PODS, deep), Unreadable)


def test_an_endless_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=f"got 'a file of more than {SMALL.size} bytes'"):
        read_text(Path("/dev/zero"), limits=SMALL)
    path = tmp_path / "marked"
    path.write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_text(path, limits=FILE) == "a: 1"
