"""Prints what a command has to say: as wide as the terminal is, in colour there, and as it is elsewhere."""

from __future__ import annotations

import sys
from typing import Final

import click

from tenure.cli.view import labels as words
from tenure.cli.view.colour import reason_in_colour, text_in_colour, wanted
from tenure.cli.view.columns import hanging, terminal_width, wrapped_text
from tenure.cli.view.tail import Line
from tenure.model.values.printable import clean, clean_lines

#: Of one answer: what explain says of a pool with thousands of nodes is less.
LONGEST: Final = 10_000_000


def say(text: str, *, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    shown = text_in_colour(wrapped_text(clean_lines(text, LONGEST), stream), stream)
    click.echo(shown, err=err, color=wanted(stream))


def say_line(line: Line) -> None:
    """``08:00:01  general-x7k2p NeededForPods: needed for 4 pods; …``."""
    at = words.clock(line.at)
    if line.source == "tenure":
        text = f"{line.who} {line.reason}: {line.message}"
    else:
        text = f"*** {line.message}"
    text = clean(text, LONGEST)
    shown = "\n".join(hanging(f"{at}  ", text, terminal_width()))
    if wanted() and line.source == "tenure":
        shown = shown.replace(line.reason, reason_in_colour(line.reason), 1)
    click.echo(shown, color=wanted())
