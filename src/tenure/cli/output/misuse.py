"""What is wrong with the words of a command line, in one line of ours: where, what was found, what was expected.

Click finds it, and says it in several forms. Loaded only when something is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

import click
from click.exceptions import NoSuchCommand, NoSuchOption

#: What Click puts behind the value that it found.
_FOUND: Final = re.compile(r"(.*?) is not (?:one of|in the range|a valid)\b", re.DOTALL)
_NUMBERS: Final = {"integer": "a whole number", "float": "a number"}


def misuse(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    command = ctx.command_path if ctx is not None else "tenure"
    said = " ".join(_said(error).split()).rstrip(".")
    said += "" if said.endswith("?") else "."
    return f"{command}: {said} See {command} --help."


def _said(error: click.ClickException) -> str:
    if isinstance(error, NoSuchCommand) and error.ctx is not None:
        group = error.ctx.command
        known = group.list_commands(error.ctx) if isinstance(group, click.Group) else []
        return f"got {error.command_name!r}, expected {either(known)}.{_meant(error.possibilities)}"
    if isinstance(error, NoSuchOption):
        return f"{error.message.rstrip('.')}.{_meant(error.possibilities)}"
    if isinstance(error, click.MissingParameter):
        return f"{error.format_message().rstrip('.')}.{_example(error.ctx)}"
    if isinstance(error, click.BadParameter):
        return _bad_value(error)
    return error.format_message()


def _bad_value(error: click.BadParameter) -> str:
    """``--format: got 'jsn', expected text, json, github or sarif. Did you mean json?``"""
    found = _FOUND.match(error.message)
    expected = "" if error.param is None else _expected(error.param.type)
    name = _name(error)
    if found is None or not expected:
        return f"{name}: {error.message}"
    got = found[1].strip("'")
    close: Sequence[str] = ()
    if isinstance(error.param and error.param.type, click.Choice):
        close = get_close_matches(got, expected.replace(" or ", ", ").split(", "), n=1)
    return f"{name}: got {got!r}, expected {expected}.{_meant(close)}"


def _name(error: click.BadParameter) -> str:
    hint = error.param_hint or (error.param and error.param.get_error_hint(error.ctx or _none()))
    parts = [hint] if isinstance(hint, str) else list(hint or ())
    return " / ".join(parts).replace("'", "")


def _none() -> click.Context:
    return click.Context(click.Command("tenure"))


def _expected(kind: click.ParamType[Any]) -> str:
    """Empty where Click's own words have to do."""
    if isinstance(kind, click.Choice):
        return either([str(choice) for choice in kind.choices])
    number = _NUMBERS.get(kind.name.partition(" ")[0], "")
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    if least is None or most is None:
        return number
    return f"{number} from {least:g} to {most:g}"


def _example(ctx: click.Context | None) -> str:
    """The first example of the command's help."""
    lines = (ctx.command.epilog or "" if ctx is not None else "").splitlines()
    examples = [line.strip() for line in lines if line.strip().startswith("tenure ")]
    return f" For example: {examples[0].partition('    ')[0]}." if examples else ""


def _meant(names: Sequence[str] | None) -> str:
    return f" Did you mean {either(list(names))}?" if names else ""


def either(names: Sequence[str]) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    *others, last = names or ("",)
    return f"{', '.join(others)} or {last}" if others else last
