"""What users of kubectl type behind ``kubectl tenure``: flags of kubectl, before the command or behind it.

In this order: a flag that the command has itself is its own; ``-o json`` is ``--json``; a namespace for a command that looks
at the whole cluster is left out with a note; what says how to reach the cluster otherwise than by ``--kubeconfig`` and
``--context`` is refused in one line that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

import msgspec

from tenure.errors import SpecError

_NAMESPACE: Final = ("-n", "--namespace")
_EVERYWHERE: Final = ("-A", "--all-namespaces")
_OUTPUT: Final = ("-o", "--output")
_WATCH: Final = ("-w", "--watch")
_SELECTOR: Final = ("-l", "--selector")
_REACHED: Final = (
    "a context of the kubeconfig (--kubeconfig, --context), which says how the cluster is reached"
)
#: Of kubectl, with a value, and why they are refused.
_REFUSED: Final[dict[str, str]] = {
    **dict.fromkeys(("--cluster", "--user", "-s", "--server", "--token", "--as"), _REACHED),
    **dict.fromkeys(("--as-group", "--as-uid", "--certificate-authority", "--client-key"), _REACHED),
    **dict.fromkeys(("--client-certificate", "--tls-server-name", "--username"), _REACHED),
    **dict.fromkeys(("--password", "--proxy-url"), _REACHED),
    **dict.fromkeys(_SELECTOR, "the name of one object, or no selector: all nodes are looked at"),
    "--request-timeout": "no time-out: Tenure has one of its own",
    "--cache-dir": "no folder: nothing is cached",
}  # fmt: skip
_INSECURE: Final = "--insecure-skip-tls-verify"
_WITH_VALUE: Final = frozenset(
    {"--kubeconfig", "--context", *_NAMESPACE, *_OUTPUT, *_REFUSED} - {""}
)
_SHORT: Final = ("-n", "-o", "-s", "-l")


class Typed(msgspec.Struct, frozen=True):
    command: str
    words: tuple[str, ...]
    #: On what was left out, a sentence each.
    notes: tuple[str, ...] = ()


def typed(words: Sequence[str], options_of: Callable[[str], Collection[str]]) -> Typed:
    """``options_of``: the flags that a command has itself. Raises ``SpecError``."""
    before, command, behind = _parted(words)
    own = options_of(command) if command else ()
    found, notes = list[str](), list[str]()
    for flag, value in _flags((*before, *behind)):
        found += _ours(flag, value, command, own, notes)
    return Typed(command, tuple(found), tuple(notes))


def _parted(words: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """The flags before the command, the command, and what stands behind it."""
    rest = iter(words)
    before: list[str] = []
    for word in rest:
        if not word.startswith("-") or word == "--":
            return before, word, list(rest)
        before.append(word)
        if word in _WITH_VALUE:
            before += [value for value in (next(rest, None),) if value is not None]
    return before, "", []


def _flags(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Flags of kubectl with their values; any other word with none."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if word == "--":
            yield word, None
            yield from ((other, None) for other in rest)
        elif equals and (name in _WITH_VALUE or name in (*_EVERYWHERE, *_WATCH, _INSECURE)):
            yield name, value
        elif word in _WITH_VALUE:
            yield word, next(rest, "")
        elif word[:2] in _SHORT and len(word) > 2 and word[1] != "-":
            yield word[:2], word[2:]
        else:
            yield word, None


def _ours(
    flag: str, value: str | None, command: str, own: Collection[str], notes: list[str]
) -> list[str]:
    known = [flag] if value is None else [flag, value]
    if flag in own or not flag.startswith("-"):
        return known
    if flag in _NAMESPACE:
        notes.append(f"{flag} {value} is left out: {command} looks at the whole cluster")
        return []
    if flag in _EVERYWHERE:
        if "--namespace" in own:
            notes.append(
                f"{flag} is left out: {command} is about one object; -n names its namespace"
            )
        return []
    if flag in _OUTPUT:
        return _output(flag, value or "", own)
    if flag in _WATCH:
        raise SpecError(
            flag, command, "one look", "kubectl tenure board shows changes as they come."
        )
    if flag == _INSECURE:
        raise SpecError(flag, value or "true", "a certificate that is verified")
    if flag in _REFUSED:
        raise SpecError(flag, value or "", _REFUSED[flag])
    return known


def _output(flag: str, value: str, own: Collection[str]) -> list[str]:
    if value == "json" and "--json" in own:
        return ["--json"]
    raise SpecError(flag, value, "json", "Without it the answer is text.")
