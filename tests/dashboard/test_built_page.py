"""The built page belongs to its sources, and is what they give; the first needs no Node, the second runs where Node is."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from release.licences import allowed
from tests.folders import ROOT

WEB = ROOT / "web"
STATIC = ROOT / "src" / "tenure" / "dashboard" / "web" / "static"
#: What the page is built from: web/manifest.js has the same list.
SOURCES = (
    "index.html",
    "manifest.js",
    "package.json",
    "package-lock.json",
    "src",
    "tsconfig.json",
    "vite.config.js",
)
#: Without what a browser needs of charts alone, and in all.
SMALL, WHOLE = 250_000, 400_000

needs_node = pytest.mark.skipif(
    shutil.which("npm") is None or not (WEB / "node_modules").is_dir(),
    reason="no Node, or web/node_modules is not there: make web gets it",
)


def manifest() -> dict[str, object]:
    read: dict[str, object] = json.loads((STATIC / "manifest.json").read_text(encoding="utf-8"))
    return read


def sources() -> Iterator[Path]:
    for name in SOURCES:
        path = WEB / name
        yield from (one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_built_page_is_of_these_sources() -> None:
    lines = sorted(
        f"{path.relative_to(WEB).as_posix()} {sha256(path.read_bytes())}\n" for path in sources()
    )
    assert manifest()["sources"] == sha256("".join(lines).encode()), "stale: run `make web`"


def test_the_manifest_lists_each_file_as_it_is() -> None:
    listed = manifest()["files"]
    assert isinstance(listed, dict)
    there = {
        path.relative_to(STATIC).as_posix(): sha256(path.read_bytes())
        for path in STATIC.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert {name: one["sha256"] for name, one in listed.items()} == there
    assert all(one["type"].endswith("charset=utf-8") for one in listed.values())


@needs_node
def test_the_sources_give_the_same_bytes(tmp_path: Path) -> None:
    out = tmp_path / "static"
    subprocess.run(  # noqa: S603  # our own build
        [WEB / "node_modules" / ".bin" / "vite", "build", "--logLevel", "warn"],
        cwd=WEB,
        env={**os.environ, "TENURE_WEB_OUT": str(out)},
        check=True,
        capture_output=True,
    )
    made = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    kept = {one.relative_to(STATIC): one.read_bytes() for one in STATIC.rglob("*") if one.is_file()}
    assert made == kept


@needs_node
def test_the_types_of_the_page_are_right() -> None:
    ended = subprocess.run(  # noqa: S603  # our own build
        [WEB / "node_modules" / ".bin" / "tsc", "--noEmit"],
        cwd=WEB,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.stdout == ""


def test_the_lock_names_no_host() -> None:
    locked = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert not [name for name, one in locked.items() if "resolved" in one]
    assert all("integrity" in one for name, one in locked.items() if name)


def test_the_licences_of_what_is_in_the_page_are_fine_and_come_along() -> None:
    libraries = manifest()["libraries"]
    assert isinstance(libraries, list)
    texts = (STATIC / "assets" / "licences.txt").read_text(encoding="utf-8")
    for one in libraries:
        assert allowed(one["licence"]), one["name"]
        assert f"{one['name']} {one['version']}" in texts
    needed = json.loads((WEB / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert {one["name"]: one["version"] for one in libraries} == needed


def test_the_page_is_small() -> None:
    size = sum(path.stat().st_size for path in STATIC.rglob("*") if path.is_file())
    assert size < WHOLE
    assert (STATIC / "assets" / "page.js").stat().st_size < SMALL


def test_what_the_cluster_says_is_never_markup() -> None:
    words = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|eval\(|new Function"
    )
    assert not [
        path.name for path in (WEB / "src").rglob("*.ts*") if words.search(path.read_text("utf-8"))
    ]


def test_the_page_loads_nothing_from_elsewhere_and_has_no_inline_style_or_script() -> None:
    shell = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"style=|<style|\son\w+=|https?://", shell)
    assert re.findall(r'(?:src|href)="([^"]+)"', shell) == [
        "data:,",
        "/assets/page.js",
        "/assets/page.css",
    ]


def test_the_installed_package_has_the_page() -> None:
    assert (files("tenure.dashboard.web") / "static" / "index.html").is_file()
