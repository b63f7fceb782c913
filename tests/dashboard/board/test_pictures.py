"""The pictures of the docs: drawn from a scenario, and what is committed loads nothing from elsewhere."""

from __future__ import annotations

import re

import pytest

from docs.board_picture import BOARD, TOUR, picture

#: A page shows the tour while it loads.
TOUR_MAX = 300 * 1024


@pytest.mark.parametrize("file", [BOARD, TOUR], ids=lambda file: file.name)
def test_a_picture_needs_no_network_and_runs_nothing(file: object) -> None:
    text = BOARD.read_text() if file is BOARD else TOUR.read_text()
    assert "<script" not in text
    assert "@font-face" not in text
    addresses = set(re.findall(r"https?://[^\s\"')<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "https://www.textualize.io"}
    assert re.findall(r"url\((?!#)", text) == []


def test_the_tour_is_small_and_has_a_picture_for_those_who_want_no_motion() -> None:
    text = TOUR.read_text()
    assert TOUR.stat().st_size <= TOUR_MAX
    assert "prefers-reduced-motion: reduce" in text
    assert text.count(' still">') == 1
    assert "<title>tenure board: a released image rolls through a pool at night</title>" in text


def test_in_each_picture_of_the_tour_the_row_is_marked_that_is_selected() -> None:
    """The cursor moves down by two rows from the first picture to the second."""
    _, first, second, *_ = re.split(r'<g class="frame ', TOUR.read_text())
    rows = [re.findall(r'<rect [^>]* y="([0-9.]+)"', one) for one in (first, second)]
    assert [len(set(found)) for found in rows] == [1, 1]
    assert round(float(rows[1][0]) - float(rows[0][0])) == round(2 * 24.4)


def test_the_board_is_drawn_from_the_scenario() -> None:
    """In the window of the night: two nodes go, the others wait for the budget."""
    drawn = picture().replace("&#160;", " ")
    assert "nightly-drift.yaml" in drawn
    assert "12 pods running" in drawn or "11 pods running" in drawn
    assert "drifted" in drawn
