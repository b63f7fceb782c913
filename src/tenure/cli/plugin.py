"""``kubectl tenure``: the commands that look at a cluster, under the names that kubectl's users expect.

kubectl runs a program ``kubectl-tenure`` with the words behind ``kubectl tenure``, and asks ``kubectl_complete-tenure`` how
a word goes on. Flags of kubectl may stand before the command: ``kubectl tenure --context staging why node/n1``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Final, NoReturn

import click

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
#: Flags of kubectl that every command has, and those that only a question about one object has.
_EVERYWHERE: Final = ("--kubeconfig", "--context")
_NAMESPACE: Final = ("-n", "--namespace")
#: What kubectl's completion expects behind the words: no files, and no space behind ``node/``.
_NO_FILES, _NO_SPACE = 4, 2


class _Commands(LazyCommands):
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


def in_order(words: Sequence[str]) -> list[str]:
    """Flags of kubectl that stand before the command, put behind it."""
    first, rest = [], list(words)
    while rest and rest[0].partition("=")[0] in (*_EVERYWHERE, *_NAMESPACE):
        taken = 1 if "=" in rest[0] else 2
        first += rest[:taken]
        rest = rest[taken:]
    if not rest or not first:
        return [*first, *rest]
    return [rest[0], *_known_to(rest[0], first), *rest[1:]]


def _known_to(command: str, flags: Sequence[str]) -> Iterator[str]:
    """Without a namespace for a command that looks at all of them."""
    words = iter(flags)
    for word in words:
        value = () if "=" in word else (next(words, ""),)
        if NAMES.get(command) == "explain" or word.partition("=")[0] not in _NAMESPACE:
            yield word
            yield from value


def completions(words: Sequence[str]) -> list[str]:
    """As ``kubectl`` reads them: a line for each, and one that says what to do with them."""
    from click.shell_completion import ShellComplete

    *before, incomplete = in_order(words) or [""]
    shell = ShellComplete(plugin, {}, PROGRAM, "")
    try:
        found = [one.value for one in shell.get_completions(before, incomplete)]
    except Exception:  # noqa: BLE001  # a shell that completes has no place for what is wrong
        found = []
    goes_on = any(one.endswith("/") for one in found)
    return [*found, f":{_NO_FILES | _NO_SPACE if goes_on else _NO_FILES}"]


def main() -> NoReturn:
    end_with(run(in_order(sys.argv[1:]), plugin, PROGRAM))


def complete() -> NoReturn:
    click.echo("\n".join(completions(sys.argv[1:])))
    sys.exit(0)
