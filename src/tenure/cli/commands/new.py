"""``tenure new``: writes files to begin with."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Final, TextIO

import click

from tenure.errors import SpecError

EPILOG = """\b
Examples:
  tenure new scenario
  tenure new scenario spot-outage
  tenure simulate spot-outage.yaml
"""

#: What a YAML file may have as a plain text, and a shell as a plain word.
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

_PACKAGE: Final = Path(__file__).parents[2]
#: Beside the program as it is installed; in a checkout at its root, and only there.
_EXAMPLES: Final = (_PACKAGE / "examples", _PACKAGE.parents[1] / "examples")


@click.group()
def new() -> None:
    """Write files to begin with."""


@new.command(
    epilog="""\b
Examples:
  tenure new examples
  tenure simulate examples/scenarios/fifty-pods.yaml
  tenure lint examples/getting-started.yaml
"""
)
@click.argument("folder", default="examples", type=click.Path(path_type=Path))
def examples(folder: Path) -> None:
    """Write the examples that --help and the pages name.

    Into the folder examples, or into FOLDER. One that is there already is left as it is.
    """
    shipped = next(path for path in _EXAMPLES if path.is_dir())
    try:
        shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns("__pycache__"))
    except FileExistsError:
        hint = "For example tenure new examples newer-examples; or remove the folder first."
        raise SpecError("FOLDER", str(folder), "a folder that does not exist yet", hint) from None
    except OSError as error:
        hint = f"{_why(error)}: look at its path; what was written until then is there."
        raise SpecError("FOLDER", str(folder), "a folder that can be written", hint) from None
    count = sum(path.is_file() for path in folder.rglob("*"))
    first = shlex.quote(str(folder / "scenarios" / "fifty-pods.yaml"))
    click.echo(f"wrote {count} files into {folder}; play one: tenure simulate {first}")


def _why(error: OSError) -> str:
    """Of many files that could not be copied the first says it; its last part is a text."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        return str(error.args[0][0][-1]).partition(": '")[0]
    return error.strerror or str(error)


@new.command(epilog=EPILOG)
@click.argument("name", default="scenario")
def scenario(name: str) -> None:
    """Write NAME.yaml: a scenario with comments that runs as it is.

    A file that is there already is left as it is. NAME is a name or a path; without it the file
    is scenario.yaml.
    """
    from tenure.sim.scenario.words.start import start_of  # loaded only when called

    path = Path(name if name.endswith((".yaml", ".yml")) else f"{name}.yaml")
    if not _NAME.fullmatch(path.stem):
        expected = "letters, digits, - and _, a letter first"
        raise SpecError("NAME", path.stem, expected, "For example spot-outage.")
    file = shlex.quote(str(path))
    try:
        with path.open("x", encoding="utf-8") as written:
            _fill(path, written, start_of(path.stem, file))
    except FileExistsError:
        hint = f"For example tenure new scenario {path.stem}-2; or remove the file first."
        raise SpecError("NAME", str(path), "a file that does not exist yet", hint) from None
    except OSError as error:
        hint = f"{error.strerror}: look at its folder."
        raise SpecError("NAME", str(path), "a file that can be written", hint) from None
    click.echo(f"wrote {path}; play it: tenure simulate {file}")


def _fill(path: Path, file: TextIO, text: str) -> None:
    """An empty file would be taken for one that is there already."""
    try:
        file.write(text)
        file.flush()
    except OSError:
        path.unlink(missing_ok=True)
        raise
