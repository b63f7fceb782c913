"""Durations read and print exactly as in Go, and errors say what to write instead."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import SpecError
from tenure.model.values.duration import Duration, parse_duration, parse_duration_or_never
from tests.folders import DATA

#: What Go 1.26 answers for 700 texts, written by hand and drawn from a seed.
GOLDEN = [
    json.loads(line)
    for line in (DATA / "go-durations.jsonl").read_text(encoding="utf-8").splitlines()
]
GO_INT64 = st.integers(min_value=-(2**63), max_value=2**63 - 1)


def outcome(text: str) -> dict[str, Any]:
    try:
        duration = parse_duration(text)
    except SpecError:
        return {"text": text, "error": True}
    return {"text": text, "ns": duration.nanoseconds, "string": str(duration)}


def test_every_text_means_what_it_means_in_go() -> None:
    assert len(GOLDEN) == 700
    assert [outcome(vector["text"]) for vector in GOLDEN] == GOLDEN


@given(GO_INT64)
def test_what_is_printed_reads_back_as_the_same_duration(nanoseconds: int) -> None:
    duration = Duration(nanoseconds)
    assert parse_duration(str(duration)) == duration


@given(st.text(alphabet="0123456789.hmsnuµd+- ", max_size=12))
def test_any_text_is_either_read_or_refused_with_a_spec_error(text: str) -> None:
    if "error" not in outcome(text):
        assert parse_duration(str(parse_duration(text))) == parse_duration(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1d", "Use 24h."),
        ("2w", "Use 336h."),
        ("1d12h", "Use 36h."),
        ("1.5 days", "Use 36h."),
        ("4 hours", "Use 4h."),
        ("1h 30m", "Use 1h30m."),
        ("90 min", "Use 1h30m."),
        ("30", "Add a unit: 30s, 30m or 30h."),
        ("soon", "The units are h, m, s, ms, us and ns; for example 30s, 15m, 1h30m or 720h."),
        ("1y", "The units are h, m, s, ms, us and ns; for example 30s, 15m, 1h30m or 720h."),
        ("0 days", "The units are h, m, s, ms, us and ns; for example 30s, 15m, 1h30m or 720h."),
    ],
)
def test_the_hint_is_what_the_writer_meant(text: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_duration(text, "spec.expireAfter")
    assert caught.value.at == "spec.expireAfter"
    assert caught.value.got == text
    assert caught.value.hint == hint


def test_the_whole_message_names_field_value_expectation_and_example() -> None:
    with pytest.raises(SpecError) as caught:
        parse_duration("1d", "spec.template.spec.readinessTTL")
    assert str(caught.value) == (
        "spec.template.spec.readinessTTL: got '1d', expected a Go duration such as 1h30m. Use 24h."
    )


def test_a_duration_that_go_cannot_count_is_called_too_long() -> None:
    with pytest.raises(SpecError, match="at most 2562047h47m16s"):
        parse_duration("3000000h")


def test_the_cache_does_not_remember_the_field() -> None:
    for at in ("spec.a", "spec.b"):
        with pytest.raises(SpecError, match=f"^{at}: "):
            parse_duration("1d", at)


def test_never_is_no_duration_where_never_is_allowed() -> None:
    assert parse_duration_or_never("Never") is None
    assert parse_duration_or_never("720h") == Duration(720 * 3600 * 10**9)


def test_never_in_other_letters_is_refused_with_the_right_spelling() -> None:
    with pytest.raises(SpecError) as caught:
        parse_duration_or_never("never", "spec.expireAfter")
    assert caught.value.hint == "Use Never."
    assert caught.value.expected == "a Go duration such as 1h30m, or Never"


def test_a_wrong_duration_where_never_is_allowed_keeps_its_hint() -> None:
    with pytest.raises(SpecError, match=r"or Never\. Use 24h\."):
        parse_duration_or_never("1d")


def test_never_is_refused_where_a_duration_is_wanted() -> None:
    with pytest.raises(SpecError, match="got 'Never', expected a Go duration"):
        parse_duration("Never")


@given(GO_INT64)
def test_the_timedelta_is_never_shorter_and_at_most_a_microsecond_longer(nanoseconds: int) -> None:
    microseconds = Duration(nanoseconds).timedelta // timedelta(microseconds=1)
    assert 0 <= microseconds * 1000 - nanoseconds < 1000


@given(st.timedeltas())
def test_a_timedelta_survives_the_way_through_a_duration(span: timedelta) -> None:
    assert Duration.of(span).timedelta == span


def test_durations_are_ordered_and_only_zero_is_false() -> None:
    assert sorted([parse_duration("1h"), parse_duration("-1s"), parse_duration("90s")]) == [
        parse_duration("-1s"),
        parse_duration("1m30s"),
        parse_duration("60m"),
    ]
    assert not parse_duration("0")
    assert parse_duration("-1ns")
