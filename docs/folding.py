"""Folds what a page has after its second screen: the titles stay, and a click opens a section.

A page is read from its beginning; edge cases are looked up. In the file itself, and in the search, nothing is folded.
"""

from __future__ import annotations

import re
from typing import Final

#: Two screens of 900 pixels, without what stands above the text and below it.
ROOM: Final = 1450
#: Pixels: a line of text, one of an example, what a block has around it, and a folded title.
_LINE, _CODE_LINE, _AROUND, _TITLE, _PICTURE = 22, 19, 14, 38, 330
#: Letters in a line.
_WIDTH: Final = 115

_SECTION: Final = re.compile(r"(?=<h2 id=)")
_HEAD: Final = re.compile(r"<h2 id=.*?</h2>", re.DOTALL)
_ARTICLE: Final = re.compile(r"(<article\b[^>]*>)(.*?)(</article>)", re.DOTALL)
_BLOCK: Final = re.compile(r"<(pre|tr|p|li|h2|h3)\b.*?</\1>|<(img)\b", re.DOTALL)
_TAG: Final = re.compile(r"<[^>]+>")


def folded(page: str) -> str:
    """The page with the sections that do not fit as ``details``."""
    found = _ARTICLE.search(page)
    if found is None:
        return page
    opening, *sections = _SECTION.split(found[2])
    if not sections:
        return page
    last, end = _without_end(sections.pop())
    sections.append(last)
    shown, used, rest = [opening], height(opening), sections
    # A page whose beginning is short has its first section open, however long that is.
    while rest and (
        used + height(rest[0]) + _TITLE * (len(rest) - 1) <= ROOM
        or (len(shown) == 1 and used < ROOM // 3)
    ):
        used += height(rest[0])
        shown.append(rest.pop(0))
    body = "".join((*shown, *map(_details, rest)))
    return page[: found.start(2)] + body + end + page[found.end(2) :]


def height(html: str) -> int:
    """About how many pixels it takes."""
    total = 0
    for kind, inner in ((block[1] or block[2], block[0]) for block in _BLOCK.finditer(html)):
        if kind == "pre":
            total += _CODE_LINE * (_TAG.sub("", inner).strip().count("\n") + 1) + 2 * _AROUND
        elif kind == "img" or "<img" in inner:
            total += _PICTURE
        elif kind == "tr":
            cells = re.split(r"<t[hd]\b", inner)[1:]
            longest = max((len(_TAG.sub("", cell)) for cell in cells), default=0)
            width = _WIDTH / max(len(cells), 1) * 1.4
            total += _AROUND + round(_LINE * (longest // width + 1))
        else:
            total += _AROUND + _LINE * (len(_TAG.sub("", inner)) // _WIDTH + 1)
    return total


def _without_end(section: str) -> tuple[str, str]:
    """What the generator writes after the last section is none of it."""
    at = section.find("<form")
    return (section, "") if at < 0 else (section[:at], section[at:])


def _details(section: str) -> str:
    return (
        _HEAD.sub(r'<details class="more"><summary>\g<0></summary>', section, count=1)
        + "</details>"
    )
