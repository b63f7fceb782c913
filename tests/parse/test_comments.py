"""Comments that speak to Tenure, and what only looks like one."""

from __future__ import annotations

import pytest

from tenure.parse.comments import comments_in
from tenure.parse.yamltext import documents_in

TEXT = """\
# tenure: on top

# something else
---
kind: |  # tenure: of a block
  text # tenure: no
  # tenure: no
# tenure: after the block
b: "quoted # tenure: no
  # tenure: no"
c: ä # tenure: behind a letter
d:
    # tenure: above an item
    - first#tenure
    - >-
      folded
      # tenure: no

# tenure: at the end
"""


def test_each_comment_is_about_its_own_line_or_the_next_value() -> None:
    found = [(one.said, one.line, one.column, one.about) for one in comments_in(TEXT)]
    assert found == [
        ("on top", 1, 1, 5),
        ("of a block", 5, 10, 5),
        ("after the block", 8, 1, 9),
        ("behind a letter", 11, 6, 11),
        ("above an item", 13, 5, 14),
        ("at the end", 19, 1, 21),
    ]


def test_lines_of_another_system_end_with_two_characters() -> None:
    assert comments_in("# tenure: x\r\n\r\nkind: Pod\r\n") == [("x", 1, 1, 3)]


@pytest.mark.parametrize("text", ["", "# tenured: x", "a: '# tenure: x'", "#tenur: e"])
def test_a_text_may_have_none(text: str) -> None:
    assert comments_in(text) == []


@pytest.mark.parametrize(
    ("at", "place"),
    [
        ("", (1, 1)),
        ("spec", (2, 1)),
        ("spec.a", (3, 3)),
        ("spec.list[1]", (5, 7)),
        ("spec.map.two", (6, 17)),
        ("spec.map.three", (6, 3)),
    ],
)
def test_a_field_has_a_line_and_a_column(at: str, place: tuple[int, int]) -> None:
    text = "kind: Pod\nspec:\n  a: 1\n  list:\n    [1, 2]\n  map: {one: 1, two: 2}\n"
    (document,) = documents_in(text.replace("    [1, 2]", "    - 1\n    - 2"), "x.yaml")
    line, column = place
    moved = (line + 1, column) if line >= 5 else place
    assert document.position(at) == moved


def test_a_column_beyond_every_line_counts_as_the_last() -> None:
    (document,) = documents_in("{a: " + "'" + " " * 2_000_000 + "', b: 1}", "x.yaml")
    assert document.position("b") == (1, 2**20 - 1)
