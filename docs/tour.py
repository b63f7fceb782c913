"""A film of screenshots as one SVG: board and page, one picture after the other, each with a line that says what it shows.

``tests/dashboard/browser/test_tour.py`` takes the screenshots from a running ``tenure up``. Nothing is fetched for the film, and it
runs no script; readers who want no motion see its first picture.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

FILE: Final = Path(__file__).parent / "pictures" / "tour-of-board-and-page.svg"
WIDTH, HEIGHT = 1200, 794
#: The line above a picture.
LINE: Final = 44
#: Seconds that a picture stays.
STAYS: Final = 3.5
TITLE: Final = "Tenure: the board of the terminal and the web page"
TOLD: Final = (
    "A tour from a running tenure up. The board lists nodes with phase, reason and what happens next. The page shows the fleet by pool "
    "and zone, why a drifted node has not gone and what to change, the lanes of all nodes, and what the next two weeks bring."
)


class Shot(NamedTuple):
    says: str
    jpeg: bytes


def film(shots: Sequence[Shot]) -> str:
    whole = STAYS * len(shots)
    share = 100 / len(shots)
    frames = "\n".join(_frame(index, shot) for index, shot in enumerate(shots))
    delays = "\n".join(
        f".f{index} {{ animation-delay: {index * STAYS:g}s }}" for index in range(len(shots))
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">
<title>{escape(TITLE)}</title>
<desc>{escape(TOLD)}</desc>
<style>
text {{ font: 600 20px system-ui, sans-serif; fill: #f4f6f9 }}
.frame {{ visibility: hidden }}
.f0 {{ visibility: visible }}
@media (prefers-reduced-motion: no-preference) {{
.frame {{ visibility: hidden; animation: shown {whole:g}s step-end infinite }}
@keyframes shown {{ 0% {{ visibility: visible }} {share:.3f}% {{ visibility: hidden }} }}
{delays}
}}
</style>
<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#1c2430"/>
{frames}
</svg>
"""


def _frame(index: int, shot: Shot) -> str:
    data = b64encode(shot.jpeg).decode()
    return (
        f'<g class="frame f{index}"><text x="20" y="{LINE - 15}">{escape(shot.says)}</text>'
        f'<image x="0" y="{LINE}" width="{WIDTH}" height="{HEIGHT - LINE}" preserveAspectRatio="xMidYMin meet" '
        f'href="data:image/jpeg;base64,{data}"/></g>'
    )
