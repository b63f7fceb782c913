"""The page on reliability names every story of processes, and no other."""

from __future__ import annotations

import re

from tests.folders import ROOT

STORIES = ROOT / "tests" / "real"


def test_every_story_that_a_soak_repeats_is_a_promise_on_the_page() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text()
    told = {path.name for path in STORIES.glob("test_*.py") if "process_story" in path.read_text()}
    assert set(re.findall(r"\(\.\./tests/real/(test_\w+\.py)\)", page)) == told
