"""Builds the documentation as a site that can be read without a network, and draws pictures of it.

    python -m docs.site              build site/
    python -m docs.site --pictures   build it, and draw docs/pictures/ with Chromium (make browser)

The pages of ``docs/`` are copied first: a link to a file of the repository that is no page becomes a plain name,
because the site is also read where there is no repository; and a link that names a file names the page.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from docs.folding import folded

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
CONFIG: Final = ROOT / "zensical.toml"
#: What a page is made of. The programs that write pages are not part of the site.
_COPIED: Final = (".md", ".svg", ".png", ".js", ".css")
#: The generator names this address for pages that are opened as files. We ship the same file.
_SHIM: Final = "https://unpkg.com/iframe-worker/shim"
_OUR_SHIM: Final = "assets/iframe-worker.js"
_LINK: Final = re.compile(r"\[([^]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")

#: The section of the navigation whose pages may be long.
LOOKED_UP: Final = "Reference"

PICTURES: Final = DOCS / "pictures"
#: The start, a concept and a reference.
PICTURED: Final = ("index", "understand", "api-reference")
WIDTH, HEIGHT = 1280, 900


class SiteFailed(Exception):
    """The site has warnings, or a program that builds it is missing."""


def build(into: Path) -> None:
    """The whole site, in a folder that is made anew. Warnings of the generator are errors."""
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder)
        shutil.copy(CONFIG, staged)
        for page in _sources():
            copy = staged / page.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if page.suffix == ".md":
                copy.write_text(_without_foreign_links(page), encoding="utf-8")
            else:
                shutil.copy(page, copy)
        _generate(staged)
        for page in (staged / "site").rglob("*.html"):
            _read_offline(page, staged / "site")
        for name in to_be_read():
            page = (staged / "site" / name).with_suffix(".html")
            page.write_text(folded(page.read_text(encoding="utf-8")), encoding="utf-8")
        shutil.rmtree(into, ignore_errors=True)
        shutil.move(staged / "site", into)


def to_be_read() -> Iterator[str]:
    """The pages that are read from the beginning to the end; of the others one looks things up."""
    nav = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]["nav"]
    for section in nav:
        ((title, entry),) = section.items()
        if title != LOOKED_UP:
            yield from _named(entry)


def _named(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    for below in (
        entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ()
    ):
        yield from _named(below)


def _sources() -> Iterator[Path]:
    for path in sorted(DOCS.rglob("*")):
        if path.is_file() and path.suffix in _COPIED:
            yield path


def _without_foreign_links(page: Path) -> str:
    def replaced(link: re.Match[str]) -> str:
        text, target = link[1], link[2]
        path = (page.parent / target).resolve()
        if text == path.name and path.suffix == ".md" and path.is_relative_to(DOCS):
            return f"[{_title(path)}]({target}{link[3] or ''})"
        if "://" in target or path.is_relative_to(DOCS) or not path.is_relative_to(ROOT):
            return link[0]
        named = path.relative_to(ROOT)
        return f'<span title="{named} in the repository">{text}</span>'

    return _LINK.sub(replaced, page.read_text(encoding="utf-8"))


def _title(page: Path) -> str:
    """As the page calls itself: a reader of the site knows no files."""
    first = page.read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("# ").strip()


def _generate(folder: Path) -> None:
    program = Path(sys.executable).with_name("zensical")
    if not program.exists():
        raise SiteFailed(f"there is no {program.name} beside {sys.executable}: run make setup")
    ended = subprocess.run(  # noqa: S603  # a tool of ours, on our own pages
        [program, "build", "--strict", "--clean"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    said = ended.stdout + ended.stderr
    if ended.returncode != 0 or "No issues found" not in said:
        raise SiteFailed(said)


def _read_offline(page: Path, site: Path) -> None:
    """The script that search needs comes with the site."""
    up = "../" * (len(page.relative_to(site).parts) - 1)
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace(_SHIM, up + _OUR_SHIM), encoding="utf-8")


# -- pictures --------------------------------------------------------------------------


def browser() -> str | None:
    return shutil.which("chromium")


def picture(page: Path, into: Path, *flags: str) -> None:
    """The first screen of a page, as a browser shows it."""
    said = shown(page, f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={into}", *flags)
    if not into.exists():
        raise SiteFailed(f"no picture of {page}: {said}")


def shown(page: Path, *flags: str) -> str:
    """What a browser writes that is asked to show a page."""
    program = browser()
    if program is None:
        raise SiteFailed("there is no Chromium on this computer: run make browser")
    ended = subprocess.run(  # noqa: S603  # on pages of ours
        [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--virtual-time-budget=5000",
            *flags,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if ended.returncode != 0:
        raise SiteFailed(f"no picture of {page}: {ended.stderr}")
    return ended.stdout


def draw(site: Path, into: Path) -> None:
    into.mkdir(exist_ok=True)
    for name in PICTURED:
        picture(site / f"{name}.html", into / f"{name}.png")


def main(arguments: list[str]) -> int:
    site = ROOT / "site"
    try:
        build(site)
        if "--pictures" in arguments:
            draw(site, PICTURES)
    except SiteFailed as failed:
        print(failed, file=sys.stderr)
        return 1
    print(f"built {site.relative_to(ROOT)}/: open site/index.html in a browser")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
