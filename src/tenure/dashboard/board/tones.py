"""How a tone looks: a sign for those who see no colours, and a colour that also colour-blind readers can tell.

The first four colours are those of Okabe and Ito; none says what the sign does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from rich.style import Style
from rich.text import Text

from tenure.dashboard.fleet.tones import SIGNS
from tenure.dashboard.fleet.values import Tone


class Look(NamedTuple):
    sign: str
    colour: str
    word: str


_COLOURS: Final[dict[Tone, str]] = {
    Tone.SERVING: "#56b4e9",
    Tone.COMING: "#cc79a7",
    Tone.WAITING: "#f0e442",
    Tone.LEAVING: "#e69f00",
    Tone.UNHEALTHY: "#ff7f50",
    Tone.FOREIGN: "#d0d0d0",
}
LOOKS: Final[dict[Tone, Look]] = {
    tone: Look(said.sign, _COLOURS[tone], said.word) for tone, said in SIGNS.items()
}
#: What needs a reader comes first.
SEVERITY: Final = {
    tone: place
    for place, tone in enumerate(
        (Tone.UNHEALTHY, Tone.LEAVING, Tone.WAITING, Tone.COMING, Tone.SERVING, Tone.FOREIGN)
    )
}


def style(tone: Tone) -> Style:
    return Style(color=LOOKS[tone].colour, bold=tone is Tone.UNHEALTHY)


def signs(nodes: Mapping[Tone, int], *, words: bool = False) -> Text:
    """``●10 ◆2``, or with what they mean."""
    told = Text()
    for tone in LOOKS:
        if number := nodes.get(tone, 0):
            look = LOOKS[tone]
            said = f"{look.sign} {number:,} {look.word}" if words else f"{look.sign}{number:,}"
            told.append(" · " if words and told else " " if told else "")
            told.append(said, style(tone))
    return told
