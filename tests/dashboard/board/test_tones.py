"""The board's colours, as readers see them who lack one kind of cone: told apart, and read on its ground."""

from __future__ import annotations

from itertools import combinations
from typing import Final

import pytest

from tenure.dashboard.board.app import Board
from tenure.dashboard.board.tones import LOOKS

Three = tuple[float, float, float]
Matrix = tuple[Three, Three, Three]

#: G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A Physiologically-based Model for Simulation of Color Vision
#: Deficiency", 2009, at full severity; for linear RGB.
SEEN: Final[dict[str, Matrix]] = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
#: Of CIE 1976; about 2 is the least that is seen beside each other, 10 is seen at a glance.
APART_MIN: Final = 15.0
#: WCAG 2, level AA, for text.
CONTRAST_MIN: Final = 4.5
GROUND: Final = "#101418"


def linear(colour: str) -> Three:
    def channel(at: int) -> float:
        part = int(colour[at : at + 2], 16) / 255
        return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)

    return channel(1), channel(3), channel(5)


def seen(colour: str, by: Matrix) -> Three:
    red, green, blue = linear(colour)
    first, second, third = (
        min(1.0, max(0.0, row[0] * red + row[1] * green + row[2] * blue)) for row in by
    )
    return first, second, third


def lab(rgb: Three) -> Three:
    red, green, blue = rgb
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883

    def root(part: float) -> float:
        return float(part ** (1 / 3)) if part > 0.008856 else 7.787 * part + 16 / 116

    return 116 * root(y) - 16, 500 * (root(x) - root(y)), 200 * (root(y) - root(z))


def apart(one: str, other: str, by: Matrix) -> float:
    there, here = lab(seen(one, by)), lab(seen(other, by))
    return float(sum((a - b) ** 2 for a, b in zip(there, here, strict=True)) ** 0.5)


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("by", SEEN)
def test_each_tone_is_told_from_each_other(by: str) -> None:
    near = {
        (one, other): apart(LOOKS[one].colour, LOOKS[other].colour, SEEN[by])
        for one, other in combinations(LOOKS, 2)
    }
    assert {pair: far for pair, far in near.items() if far < APART_MIN} == {}


def test_each_tone_is_read_on_the_ground() -> None:
    assert f"background: {GROUND}" in Board.CSS
    contrast = {
        tone: (luminance(look.colour) + 0.05) / (luminance(GROUND) + 0.05)
        for tone, look in LOOKS.items()
    }
    assert {tone: found for tone, found in contrast.items() if found < CONTRAST_MIN} == {}


def test_signs_and_words_differ_without_any_colour() -> None:
    looks = LOOKS.values()
    assert len({look.sign for look in looks}) == len({look.word for look in looks}) == len(LOOKS)
