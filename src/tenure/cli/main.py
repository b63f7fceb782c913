"""The program ``tenure``: finds the command, and turns what goes wrong into one line.

Exit codes: 0 fine, 1 what was asked for did not hold, 2 bad input. Commands are imported
only when they are called, so that ``tenure --help`` answers at once.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Final, NamedTuple, NoReturn

import click

from tenure.errors import TenureError

BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
#: Set by a shell that asks for completions, or for the script that does (docs/upgrading.md).
COMPLETION: Final = "_TENURE_COMPLETE"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _Entry(NamedTuple):
    module: str
    help: str


COMMANDS: Final = {
    "demo": _Entry(
        "tenure.cli.commands.demo", "Watch Tenure manage an embedded cluster, for twenty seconds."
    ),
    "run": _Entry("tenure.cli.commands.run", "Manage the nodes of a real cluster."),
    "board": _Entry("tenure.cli.commands.board", "Watch the nodes of a cluster in the terminal."),
    "up": _Entry("tenure.cli.commands.up", "Serve the embedded cluster to kubectl."),
    "simulate": _Entry(
        "tenure.cli.commands.simulate", "Play a scenario and check what it expects."
    ),
    "new": _Entry(
        "tenure.cli.commands.new", "Write files to begin with: the examples, or a scenario."
    ),
    "snapshot": _Entry(
        "tenure.cli.commands.snapshot", "Copy a cluster into a file, without its secrets."
    ),
    "explain": _Entry(
        "tenure.cli.commands.explain", "Why is this node, claim or pod in this state?"
    ),
    "plan": _Entry(
        "tenure.cli.commands.plan", "What would be done now, and why not the rest? A dry run."
    ),
    "forecast": _Entry(
        "tenure.cli.commands.forecast", "What do the next days bring, and what is not in time?"
    ),
    "lint": _Entry(
        "tenure.cli.commands.lint", "What in these manifests, or this cluster, will surprise you?"
    ),
    "release": _Entry("tenure.cli.commands.release", "Take back what was set beside Karpenter."),
    "convert": _Entry(
        "tenure.cli.commands.convert", "Turn Provisioners of older releases into NodePools."
    ),
    "crds": _Entry("tenure.cli.commands.crds", "Print the CustomResourceDefinitions."),
}


#: Of other programs these are commands.
_AS_OPTIONS: Final = {"help": "tenure --help", "version": "tenure --version"}


class LazyCommands(click.Group):
    """Knows its commands by name; imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None and ctx.resilient_parsing:
            return None  # A shell asks for completions: it has no use for a complaint.
        if entry is None:
            close = get_close_matches(cmd_name, (*COMMANDS, *_AS_OPTIONS), n=1)
            named = _AS_OPTIONS.get(close[0], close[0]) if close else ""
            meant = f". Did you mean {named}?" if named else ""
            ctx.fail(f"got {cmd_name!r}, expected one of {', '.join(COMMANDS)}{meant}")
        command: click.Command = getattr(import_module(entry.module), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


EPILOG: Final = """\b
Begin with one of these:
  tenure demo
  tenure new examples
  tenure simulate examples/scenarios/fifty-pods.yaml
  tenure explain pool/general --in examples/scenarios/fifty-pods.yaml --at 2m
  tenure crds | kubectl apply --server-side -f -
  tenure run --kubeconfig ~/.kube/config

\b
Exit codes: 0 fine, 1 what was asked for did not hold, 2 bad input.
"""


def _show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # slow, and rarely asked for

        click.echo(f"tenure {version('tenure')}")
        ctx.exit()


@click.group(
    cls=LazyCommands,
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Print the version.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Manages the life of Kubernetes nodes, and can say why and until when.

    run manages a real cluster; explain and plan look at one, or at an embedded one.
    For everything else no cloud, no cluster and no credentials are needed.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(args: Sequence[str], group: click.Group = cli, program: str = "tenure") -> int:
    """Run the program; the exit code."""
    try:
        code = group.main(list(args), prog_name=program, standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as asked:
        click.echo(asked.format_message())
        return 0
    except click.ClickException as error:
        from tenure.cli.output.misuse import misuse  # loaded only when something is wrong

        return _complain(misuse(error))
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit as end:
        # Click ends so after it has answered a shell, and when the reader of the output has closed it.
        return int(end.code or 0) if COMPLETION in os.environ else BROKEN_PIPE
    except TenureError as error:
        return _complain(*_sentences(error), code=getattr(error, "exit_code", BAD_INPUT))
    except Exception as error:
        if _is_full(error):
            return _no_room(error)
        if os.environ.get("TENURE_TRACEBACK"):
            raise
        click.echo(
            f"tenure: a fault of ours: {type(error).__name__}: {error}. "
            "Please report it with the output of TENURE_TRACEBACK=1.",
            err=True,
        )
        return 1
    return code if isinstance(code, int) else 0


def _is_full(error: Exception) -> bool:
    """Whether what we write to takes no more: not our fault, and nothing to report."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _FULL


def _no_room(error: Exception) -> int:
    click.echo(
        f"tenure: the output could not be written: {getattr(error, 'strerror', error)}. "
        "Make room, or write it somewhere else.",
        err=True,
    )
    _close_stdout()
    return 1


def _close_stdout() -> None:
    """Leave nothing to be flushed at exit, or the interpreter complains."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(*sentences: str, code: int = BAD_INPUT) -> int:
    from tenure.cli.view.columns import wrapped_text  # loaded only when something is wrong

    for sentence in sentences:
        click.echo(wrapped_text(sentence, sys.stderr), err=True)
    return code


def _sentences(error: TenureError) -> list[str]:
    problems = getattr(error, "problems", None)
    return [str(problem) for problem in problems] if problems else [str(error)]


def main() -> NoReturn:
    end_with(run(sys.argv[1:]))


def end_with(code: int) -> NoReturn:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _close_stdout()
        code = BROKEN_PIPE
    except OSError as error:
        code = _no_room(error)
    sys.exit(code)
