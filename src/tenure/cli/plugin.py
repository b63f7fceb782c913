"""``kubectl tenure``: the commands that look at a cluster, under the names that kubectl's users expect.

kubectl runs a program ``kubectl-tenure`` with the words behind ``kubectl tenure``, and asks ``kubectl_complete-tenure`` how
a word goes on. Flags of kubectl may stand before the command: ``kubectl tenure --context staging why node/n1``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from typing import Final, NoReturn

import click

from tenure.cli.kubectlflags import Typed, typed
from tenure.cli.main import COMMANDS, LazyCommands, end_with, run

PROGRAM: Final = "kubectl tenure"
#: By the name here: the name of the command.
NAMES: Final = {
    "why": "explain",
    "board": "board",
    "forecast": "forecast",
    "plan": "plan",
    "explain": "explain",
    "lint": "lint",
}
#: What kubectl's completion expects behind the words: no files, and no space behind ``node/``.
_NO_FILES, _NO_SPACE = 4, 2


class _Commands(LazyCommands):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if ctx.resilient_parsing else given(args))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = NAMES.get(cmd_name)
        if name is None:
            if ctx.resilient_parsing:
                return None
            ctx.fail(f"got {cmd_name!r}, expected one of {', '.join(NAMES)}")
        command = super().get_command(ctx, name)
        if command is not None and command.epilog:
            command.epilog = as_typed(command.epilog)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[of].help) for name, of in NAMES.items()])


def as_typed(text: str) -> str:
    """Examples as a user of the plugin types them."""
    known = "|".join(NAMES)
    return re.sub(rf"(?m)^(\s+)tenure (?=(?:{known})\b)", rf"\1{PROGRAM} ", text)


@click.group(cls=_Commands, invoke_without_command=True)
@click.pass_context
def plugin(ctx: click.Context) -> None:
    """Why is a node in this state, what comes next, what would be done?

    Looks at the cluster of your kubeconfig; nothing is changed.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def in_order(words: Sequence[str]) -> Typed:
    """The command first, and flags of kubectl as the command knows them. Raises ``SpecError``."""
    return typed(words, _options_of)


def _options_of(name: str) -> Collection[str]:
    """None for a command that there is not: the group says so."""
    if name not in NAMES:
        return ()
    command = LazyCommands().get_command(click.Context(plugin), NAMES[name])
    params = command.params if command is not None else []
    return {option for one in params for option in (*one.opts, *one.secondary_opts)}


def given(words: Sequence[str]) -> list[str]:
    """As the group takes it, with a note on each flag that is left out."""
    found = in_order(words)
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    return [*([found.command] if found.command else []), *found.words]


def completions(words: Sequence[str]) -> list[str]:
    """As ``kubectl`` reads them: a line for each, and one that says what to do with them."""
    from click.shell_completion import ShellComplete

    *before, incomplete = list(words) or [""]
    shell = ShellComplete(plugin, {}, PROGRAM, "")
    try:
        known = in_order(before)
        placed = [*([known.command] if known.command else []), *known.words]
        found = [one.value for one in shell.get_completions(placed, incomplete)]
    except Exception:  # noqa: BLE001  # a shell that completes has no place for what is wrong
        found = []
    goes_on = any(one.endswith("/") for one in found)
    return [*found, f":{_NO_FILES | _NO_SPACE if goes_on else _NO_FILES}"]


def main() -> NoReturn:
    end_with(run(sys.argv[1:], plugin, PROGRAM))


def complete() -> NoReturn:
    click.echo("\n".join(completions(sys.argv[1:])))
    sys.exit(0)
