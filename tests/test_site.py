"""The documentation as a site: it builds without a warning, every link leads somewhere, and it needs no network."""

from __future__ import annotations

import json
import re
import struct
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from docs import site
from tests.browser import BROWSER, last_line
from tests.folders import ROOT

needs_browser = pytest.mark.skipif(
    site.browser() is None, reason="no Chromium: make browser gets it"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    site.build(folder)
    return folder


class Page(HTMLParser):
    """Where a page leads, what it loads, and which places in it can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value for name, value in attrs if value is not None}
        self.places |= {told[name] for name in ("id", "name") if name in told}
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        elif "src" in told:
            self.loaded.append(told["src"])
        elif tag == "link" and told.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.loaded.append(told["href"])


def pages(built: Path) -> dict[Path, Page]:
    found = {path: Page(path.read_text(encoding="utf-8")) for path in built.rglob("*.html")}
    assert len(found) > 50
    return found


def in_navigation(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        for below in entry.values():
            yield from in_navigation(below)
    elif isinstance(entry, list):
        for below in entry:
            yield from in_navigation(below)


def test_every_link_of_the_site_leads_to_a_page_and_a_place_in_it(built: Path) -> None:
    read = pages(built)
    dead = []
    for path, page in read.items():
        if path.name == "404.html":
            continue  # It is shown under any address, so its links are those of the root.
        for link in page.links:
            target, place = urldefrag(link)
            if "://" in target or target.startswith("mailto:"):
                continue
            aim = (path.parent / unquote(target)).resolve() if target else path
            if aim.is_dir():
                aim /= "index.html"
            if not aim.exists() or (aim in read and unquote(place) not in read[aim].places):
                dead.append(f"{path.relative_to(built)}: {link}")
    assert not dead


def test_a_page_loads_nothing_from_elsewhere(built: Path) -> None:
    loaded = {(path.name, source) for path, page in pages(built).items() for source in page.loaded}
    assert not {one for one in loaded if "://" in one[1] or one[1].startswith("//")}
    assert any(source.endswith("iframe-worker.js") for _, source in loaded), "search in files"


def test_only_pages_and_what_they_show_are_in_the_site(built: Path) -> None:
    assert not list(built.rglob("*.py"))


def test_every_page_is_in_the_navigation_once() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    named = list(in_navigation(nav))
    assert sorted(set(named)) == sorted(named)
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob("*.md")}
    assert there == {name for name in named if "/" not in name}


def test_the_sections_are_those_that_the_readme_links() -> None:
    readme = (ROOT / "README.md").read_text()
    nav = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    for section in nav:
        ((title, entry),) = section.items()
        first = next(in_navigation(entry))
        assert f"[{title}](docs/{first})" in readme


def test_search_finds_a_reason_and_a_field(built: Path) -> None:
    index = json.loads((built / "search.json").read_text(encoding="utf-8"))
    text = json.dumps(index)
    assert "DisruptionBlocked" in text
    assert "readinessTTL" in text


def test_a_link_to_a_file_that_is_no_page_is_a_name(built: Path) -> None:
    page = (built / "reliability.html").read_text(encoding="utf-8")
    assert 'title="tests/real/test_crashes.py in the repository"' in page


def size_of(picture: Path) -> tuple[int, int]:
    head = picture.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def test_the_pictures_are_there() -> None:
    for name in site.PICTURED:
        assert size_of(site.PICTURES / f"{name}.png") == (site.WIDTH, site.HEIGHT)


@pytest.mark.browser
@needs_browser
@pytest.mark.parametrize("name", site.PICTURED)
def test_a_browser_shows_the_page(built: Path, tmp_path: Path, name: str) -> None:
    shown = tmp_path / f"{name}.png"
    site.picture(built / f"{name}.html", shown)
    assert size_of(shown) == (site.WIDTH, site.HEIGHT)
    assert shown.stat().st_size > 30_000, "a page without text or style is smaller"


MEASURE = """
<pre id="heights"></pre>
<script>
onload = () => setTimeout(() => {
  const frames = [...document.querySelectorAll("iframe")];
  const tall = (frame) => `${frame.title} ${frame.contentDocument.documentElement.scrollHeight}`;
  document.getElementById("heights").textContent = frames.map(tall).join("\\n");
}, 1000);
</script>
"""


def heights(built: Path, names: list[str], width: int, height: int) -> dict[str, int]:
    """How tall each page is in a browser of that size."""
    frames = "".join(
        f'<iframe title="{name}" src="{name}.html" width="{width}" height="{height}"></iframe>'
        for name in names
    )
    measured = built / "measured.html"
    measured.write_text(frames + MEASURE)
    shown = site.shown(measured, "--allow-file-access-from-files", "--dump-dom")
    measured.unlink()
    (found,) = re.findall(r'<pre id="heights">(.*?)</pre>', shown, re.DOTALL)
    return {name: int(tall) for name, tall in (line.split() for line in found.splitlines())}


@pytest.mark.browser
@needs_browser
def test_a_page_that_is_to_be_read_has_two_screens(built: Path) -> None:
    names = [name.removesuffix(".md") for name in site.to_be_read()]
    found = heights(built, names, 1440, 900)
    assert set(found) == set(names)
    assert min(found.values()) > 600, "pages are shown"
    assert {name: tall for name, tall in found.items() if tall > 2 * 900} == {}


def test_what_does_not_fit_is_folded_and_its_title_stays(built: Path) -> None:
    page = (built / "repair.html").read_text(encoding="utf-8")
    assert re.search(r'<details class="more"><summary><h2 id="[^"]+"', page)
    assert page.count("<details") == page.count("</details>")
    reference = (built / "reasons.html").read_text(encoding="utf-8")
    assert "<details" not in reference, "what is looked up is open"


def test_a_link_says_what_its_page_is_called(built: Path) -> None:
    shown = {
        link
        for name in site.to_be_read()
        for link in re.findall(
            r">([\w-]+\.md)</a>", (built / name).with_suffix(".html").read_text(encoding="utf-8")
        )
    }
    assert shown == set()


def test_a_run_without_a_browser_says_so() -> None:
    assert "LEFT OUT" in last_line({}, there=False)
    assert last_line({}, there=True) == ""
    assert BROWSER in last_line({}, there=False)
