"""YAML from outside: plain values and their lines, and a limit for everything that can grow."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.errors import SpecError
from tenure.parse.limits import BODY, FILE, Limits
from tenure.parse.yamltext import documents_in, load, read_documents

TIGHT = Limits(size=2000, depth=5, values=50, documents=3)

#: 488 bytes that stand for a gigabyte of text.
BOMB = 'a0: &a0 "lollollollollollol"\n' + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


def refusal(text: str, limits: Limits = TIGHT) -> str:
    with pytest.raises(SpecError) as caught:
        load(text, "pool.yaml", limits=limits)
    return str(caught.value)


def value(text: str) -> Any:
    return load(text, "pool.yaml", limits=FILE)


LIMITS = {
    "lists in lists": ("[" * 6, "pool.yaml:1: got '6 levels of nesting', expected at most 5"),
    "maps in maps": ("{a: " * 6, "got '6 levels of nesting'"),
    "block lists": ("- " * 6 + "x", "got '6 levels of nesting'"),
    "levels by alias": (
        "a: &a [[x]]\nb: &b [*a]\nc: [[*b]]\n",
        "pool.yaml:3: got '6 levels of nesting', expected at most 5",
    ),
    "values": ("[" + "0," * 60, "got '51 values', expected at most 50 values"),
    "values by alias": ("a: &a [1,2,3,4,5,6,7,8,9]\nb: [*a,*a,*a,*a]\n", "got '5"),
    "text by alias": (
        f"a: &a {'x' * 900}\nb: [*a, *a]\n",
        "pool.yaml:2: got '2702 characters', expected at most 2000 characters",
    ),
    "keys by alias": (f"&a {'x' * 900}: 1\nb: {{*a : 1}}\nc: {{*a : 1}}\n", "characters"),
    "bytes": (f"a: {'x' * 2000}", "got '2003 bytes', expected at most 2000 bytes"),
    "documents": ("---\n" * 5, "pool.yaml:4: got '4 documents', expected at most 3 documents"),
    "digits": ("a: " + "9" * 101, "pool.yaml:1: got 'a number of 101 characters'"),
    "hexadecimal digits": ("a: 0x" + "f" * 101, "got 'a number of 103 characters'"),
    "an alias inside its anchor": ("a: &a [*a]", "pool.yaml:1: got '*a inside itself'"),
    "a merge inside its anchor": ("a: &a {<<: *a}", "pool.yaml:1: got '*a inside itself'"),
    "an infinite number": ("a: .inf", "pool.yaml:1: a: got 'inf', expected a finite number"),
    "a number beyond all": ("a: 1.0e+999", "got 'inf', expected a finite number"),
    "a key twice": ("a: 1\nb: 2\na: 3\n", "pool.yaml:3: a: got 'a', expected each key once"),
    "a key twice, deep": ("x: [{a: 1, a: 2}]", "pool.yaml:1: x[0].a: got 'a', expected each key"),
    "two merges": ("a: &a {b: 1}\nc: {<<: *a, <<: *a}", "expected each key once"),
    "a merge of text": ("a: {<<: b}", "pool.yaml:1: a.<<: got 'something else'"),
    "a tag that runs code": (
        "a: !!python/object/apply:os.system [echo]",
        "pool.yaml:1: a: got 'tag:yaml.org,2002:python/object/apply:os.system', expected a plain",
    ),
    "a tag of a set": ("a: !!set {b}", "expected a plain value"),
    "bytes in base64": ("a: !!binary aGk=", "expected a plain value"),
    "no number in spite of its tag": ("a: !!int b", "expected a plain value"),
    "a map as a key": ("{{a: 1}: 2}", "expected text as a key"),
    "two where one is asked for": ("a: 1\n---\nb: 2\n", "got '2 documents', expected one document"),
}


@pytest.mark.parametrize(("text", "sentence"), LIMITS.values(), ids=LIMITS.keys())
def test_what_goes_over_a_limit_is_named_with_line_and_limit(text: str, sentence: str) -> None:
    assert sentence in refusal(text)


def test_aliases_of_aliases_cost_what_they_stand_for_and_no_memory() -> None:
    assert len(BOMB) < 500
    tracemalloc.start()
    try:
        assert "got '" in refusal(BOMB, BODY)
        assert "values', expected at most 100000 values" in refusal(BOMB, BODY)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * 2**20


@pytest.mark.parametrize("text", ["[" * 500_000, "{a: " * 500_000, "- " * 500_000, "? " * 500_000])
def test_no_depth_ends_the_process(text: str) -> None:
    with pytest.raises(SpecError):
        load(text, "deep.yaml", limits=FILE)


def test_a_long_key_is_not_repeated_for_each_value_below_it() -> None:
    text = f"? {'k' * 100_000}\n: {{{', '.join(f'a{n}: [{n}]' for n in range(1000))}}}"
    tracemalloc.start()
    try:
        documents_in(text, "pool.yaml")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * 2**20


def test_values_are_those_of_kubernetes() -> None:
    text = "{t: 2026-01-05T08:00:00Z, d: 2026-01-05, n: 012, y: yes, 1: x, e: , q: '5', f: 1.5}"
    assert value(text) == {
        "t": "2026-01-05T08:00:00Z",
        "d": "2026-01-05",
        "n": 10,
        "y": True,
        "1": "x",
        "e": None,
        "q": "5",
        "f": 1.5,
    }
    assert value("") is None
    assert value('{"a": [true, null, "\\u00e9"]}') == {"a": [True, None, "é"]}


def test_merged_fields_come_first_and_give_way() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\nd: {<<: *a}\n"
    assert value(text)["c"] == {"x": 3, "y": 1, "z": 2}
    assert value(text)["d"] == {"x": 1, "y": 1}


def test_places_of_an_alias_share_nothing() -> None:
    found = value("a: &a {x: [1]}\nb: *a\n")
    found["a"]["x"].append(2)
    assert found["b"] == {"x": [1]}


def test_an_anchor_may_be_given_anew() -> None:
    assert value("a: &a 1\nb: &a 2\nc: *a\n") == {"a": 1, "b": 2, "c": 2}


def test_each_value_knows_its_line() -> None:
    text = "a:\n  b.c/d:\n    - x\n    - y:\n        - z\ne: 1\n"
    (document,) = documents_in(text, "f")
    assert document.place("a.b.c/d[1].y[0]") == "f:5: a.b.c/d[1].y[0]"
    assert document.place("a.b.c/d[0]") == "f:3: a.b.c/d[0]"
    assert document.place("a.b.c/d[7].q") == "f:2: a.b.c/d[7].q"
    assert document.place("e.not.there") == "f:6: e.not.there"
    assert document.place("") == "f:1"


def test_merged_fields_know_the_line_where_they_are_written() -> None:
    (document,) = documents_in("a: &a\n  x: 1\nb:\n  <<: *a\n  y: 2\n", "f")
    assert document.place("b.x") == "f:2: b.x"
    assert document.place("b.y") == "f:5: b.y"


def test_a_secret_is_not_repeated() -> None:
    for text in ("token: [s3cret", "token: !!int s3cret", "a: *s3cret", "token: '\x00s3cret'"):
        with pytest.raises(SpecError) as caught:
            load(text, "kubeconfig", limits=FILE, quoted=False)
        assert "s3cret" not in str(caught.value), text


def test_what_is_loaded_can_be_written_again() -> None:
    assert msgspec.json.encode(value("a: 123456789012345678901234567890")).startswith(b'{"a":1234')


def test_keys_with_dots_do_not_make_places_hard_to_find() -> None:
    deep = "{a: 1}"
    for _ in range(60):
        deep = f"{{a: {{a: 1}}, a.a: {deep}}}"
    (document,) = documents_in(f"top: {deep}", "f")
    assert document.place("top" + ".a" * 200).startswith("f:1: top.a")


def test_a_manifest_in_utf_16_is_read_as_powershell_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "pool.yaml"
    file.write_bytes("kind: NodePool\r\nname: für-alle\r\n".encode("utf-16"))
    (document,) = read_documents(file)
    assert document.value == {"kind": "NodePool", "name": "für-alle"}
