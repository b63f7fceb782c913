"""Refusals, retold: what would have been right, and an example.

An API server says what is wrong with a value ("must be greater than zero"); the lines about
a scenario say what was expected. Each row is tried in turn; a sentence that no row knows is
given as it was said, after an expectation that is true of everything.
"""

from __future__ import annotations

import re
from typing import Final

from tenure.errors import Cause

_SENTENCES: Final = tuple(
    (re.compile(pattern), expected, hint)
    for pattern, expected, hint in (
        (r"must be greater than or equal to 0", "an amount that is not negative", "For example 1."),
        (
            r"must be less than or equal to (.+) limit of (.+)",
            r"at most the \1 limit of \2",
            r"For example \1: \2; or raise the limit.",
        ),
        (r"must be greater than zero", "a whole number of at least 1", "For example 1."),
        (r"must be greater than 0", "a number above 0", "For example 1."),
        (
            r"must be a number from 0 or a percentage like 10%",
            "a number from 0 or a percentage",
            "For example 1 or 10%.",
        ),
        (r"must not be greater than 100%", "a percentage up to 100%", "For example 50%."),
        (
            r".* is not a lowercase RFC 1123 .*",
            "lowercase letters, digits, dashes and dots, with a letter or digit at both ends",
            "For example web-1.",
        ),
        (
            r"Unsupported value: .*: supported values: ((\w+).*)",
            r"one of \1",
            r"For example \2.",
        ),
        (
            r"`selector` does not match template `labels`",
            "labels that the selector matches",
            "Repeat spec.selector.matchLabels here, for example app: web in both.",
        ),
        (
            r"minAvailable and maxUnavailable cannot be both set",
            "minAvailable or maxUnavailable, not both",
            "For example maxUnavailable: 1 alone.",
        ),
        (
            r"not a valid selector operator",
            "an operator of selectors",
            "For example In, NotIn, Exists or DoesNotExist.",
        ),
        (
            r"must be specified when `operator` is 'In' or 'NotIn'",
            "values to compare with",
            "For example values: [a, b].",
        ),
        (
            r"may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            "no values, as Exists and DoesNotExist compare with none",
            "Leave values out.",
        ),
        (r"operator must be Exists when `key` is empty", "Exists, as key is empty", "Set a key."),
        (r"Required value", "a value", "This field may not be left out."),
        # Rules of the custom kinds, whose sentences go after "expected" as they are.
        (r"((-?[0-9]+) or (?:more|less))", r"\1", r"For example \2."),
        (r"(it to have no (\w+) .*)", r"\1", r"Leave \2 out."),
    )
)


def expected_instead(sentence: str) -> tuple[str, str]:
    """What was expected, and a hint; of an unknown sentence, the sentence itself."""
    for pattern, expected, hint in _SENTENCES:
        if (match := pattern.fullmatch(sentence)) is not None:
            return match.expand(expected), match.expand(hint)
    return "what an API server takes", f"It says: {sentence}."


def cause_words(cause: Cause) -> tuple[str, str]:
    return expected_instead(cause.message or cause.reason)


def with_example(expected: str, hint: str) -> tuple[str, str]:
    """An expectation that is well said already, with an example where we know one."""
    if hint:
        return expected, hint
    said, example = expected_instead(expected)
    return (said, example) if said == expected else (expected, hint)
