"""How the value of a setting is written: read from text, shown as text, said in words.

Flag, environment and file are all read here as text, so that one spelling means one thing
wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from ipaddress import ip_address
from typing import Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.model.values.duration import Duration, parse_duration
from tenure.ports.provider import Option

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_GATE: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*([A-Za-z0-9]+)\s*")
_RELEASE: Final = re.compile(r"v?[0-9]{1,4}\.[0-9]{1,4}(\.[0-9A-Za-z.+_-]{1,64})?")
_TRUTH: Final = {"true": True, "false": False}
#: Kubernetes reads a gate by Go's ``strconv.ParseBool``.
_GATE_TRUTH: Final = {**_TRUTH, "1": True, "t": True, "0": False, "f": False}
#: A count that is larger was meant as something else.
COUNT_MAX: Final = 1_000_000


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """One way to write a value."""

    #: What stands for the value in the help.
    metavar: str
    #: Completes "expected …".
    expected: str
    example: str
    #: Raises ``ValueError`` for what it is not.
    read: Callable[[str], Any]
    show: Callable[[Any], str] = str
    #: A switch may be named without a value.
    is_switch: bool = False

    def value(self, text: str, at: str) -> Any:
        """Raises ``SpecError``."""
        try:
            return self.read(text.strip())
        except SpecError as error:
            hint = error.hint or f"For example {self.example}."
            raise SpecError(at, text, self.expected, hint) from None
        except ValueError:
            raise SpecError(at, text, self.expected, f"For example {self.example}.") from None


def duration(example: str, *, at_least: timedelta, whole_seconds: bool = False) -> Form:
    shortest = shown_duration(at_least)

    def read(text: str) -> timedelta:
        value = parse_duration(text).timedelta
        if value < at_least or (whole_seconds and value % timedelta(seconds=1)):
            raise ValueError
        return value

    kind = "a duration in whole seconds" if whole_seconds else "a duration"
    return Form(
        metavar="DURATION",
        expected=f"{kind} of at least {shortest}",
        example=example,
        read=read,
        show=shown_duration,
    )


def shown_duration(value: timedelta) -> str:
    """``2m`` rather than Go's ``2m0s``."""
    text = str(Duration.of(value))
    text = text.removesuffix("0s") if re.search("[mh]0s$", text) else text
    return text.removesuffix("0m") if text.endswith("h0m") else text


def count(example: str, *, at_least: int = 1, at_most: int = COUNT_MAX) -> Form:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or not at_least <= int(text) <= at_most:
            raise ValueError
        return int(text)

    expected = f"a whole number from {at_least} to {at_most}"
    return Form(metavar="NUMBER", expected=expected, example=example, read=read)


def rate(example: str) -> Form:
    def read(text: str) -> float:
        value = float(text)
        if not 0.1 <= value <= COUNT_MAX:  # Also refuses what is not a number.
            raise ValueError
        return value

    return Form(
        metavar="NUMBER",
        expected=f"a number from 0.1 to {COUNT_MAX}",
        example=example,
        read=read,
        show=lambda value: f"{value:g}",
    )


def choice(*words: str, **also: str) -> Form:
    """One of the words, in whichever case; ``also`` are other spellings."""

    known = {word.lower(): word for word in words} | also

    def read(text: str) -> str:
        if text.lower() not in known:
            raise ValueError
        return known[text.lower()]

    listed = ", ".join(words[:-1]) + f" or {words[-1]}"
    return Form(metavar="|".join(words), expected=listed, example=words[0], read=read)


def text(metavar: str, expected: str, example: str) -> Form:
    def read(value: str) -> str:
        if not value or not value.isprintable():
            raise ValueError
        return value

    return Form(metavar=metavar, expected=expected, example=example, read=read)


def address(example: str) -> Form:
    """Of an interface, as a number: a name may become another address."""

    def read(value: str) -> str:
        return str(ip_address(value))

    return Form(metavar="ADDRESS", expected="an IP address", example=example, read=read)


def option(declared: Option) -> Form:
    """As a provider declares it; the value stays text."""

    def read(value: str) -> str:
        if not value or not value.isprintable():
            raise ValueError
        if declared.check is not None:
            declared.check(value)
        return value

    return Form(
        metavar=declared.metavar, expected=declared.expected, example=declared.example, read=read
    )


def object_name(example: str, *, label: bool = False) -> Form:
    """A name as Kubernetes takes it; a namespace's is a single label."""
    pattern, longest = (_LABEL, 63) if label else (_SUBDOMAIN, 253)

    def read(value: str) -> str:
        if len(value) > longest or pattern.fullmatch(value) is None:
            raise ValueError
        return value

    kinds = "letters, digits and -" if label else "letters, digits, - and ."
    expected = f"a name of lower-case {kinds}, at most {longest} characters"
    return Form(metavar="NAME", expected=expected, example=example, read=read)


def switch(*, inverted: bool = False) -> Form:
    """``inverted``: the flag says *disable*, the setting says whether it is on."""

    def read(value: str) -> bool:
        if value.lower() not in _TRUTH:
            raise ValueError
        return _TRUTH[value.lower()] != inverted

    def show(value: bool) -> str:
        return "true" if value != inverted else "false"

    return Form(
        metavar="[true|false]",
        expected="true or false",
        example="true",
        read=read,
        show=show,
        is_switch=True,
    )


def gates() -> Form:
    """Pairs as Karpenter and Kubernetes write them."""
    example = "NodeRepair=true,SpotToSpotConsolidation=false"

    def read(value: str) -> dict[str, bool]:
        found: dict[str, bool] = {}
        for pair in filter(None, (part.strip() for part in value.split(","))):
            match = _GATE.fullmatch(pair)
            if match is None or match[2].lower() not in _GATE_TRUTH:
                raise SpecError("", pair, "", f"{pair!r} is none. For example {example}.")
            found[match[1]] = _GATE_TRUTH[match[2].lower()]
        return found

    return Form(
        metavar="NAME=BOOL,…",
        expected="pairs of a name and true or false, with commas between them",
        example=example,
        read=read,
        show=lambda value: ",".join(f"{k}={str(v).lower()}" for k, v in value.items()),
    )


def gates_text() -> Form:
    """The same, kept as it is written: empty is not known."""
    pairs = gates()

    def read(value: str) -> str:
        return pairs.show(pairs.read(value))

    return msgspec.structs.replace(pairs, read=read, show=str)


def release(example: str) -> Form:
    """Of Karpenter: major and minor, and more where it is written."""

    def read(value: str) -> str:
        if _RELEASE.fullmatch(value) is None:
            raise ValueError
        return value

    return Form(metavar="VERSION", expected="a release of Karpenter", example=example, read=read)
