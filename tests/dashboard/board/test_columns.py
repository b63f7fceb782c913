"""What stands in a cell that is narrow."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from tenure.dashboard.board.columns import cell
from tenure.dashboard.board.rows import NodeRow
from tests.dashboard.board.frames import NOW, node

NARROW, WIDE = 6, 9


def shown(key: str, width: int, **given: object) -> str:
    return cell(NodeRow(msgspec.structs.replace(node("a"), **given)), key, width, NOW)


@pytest.mark.parametrize(
    ("micro_dollars", "narrow", "wide"),
    [
        (8_140, "$0.008", "$0.0081"),
        (8_960, "$0.009", "$0.0090"),
        (192_000, "$0.19", "$0.19"),
        (123_456_000, "$123.5", "$123.46"),
        (999_990_000, "$1,000", "$999.99"),
        (12_345_670_000, "$12k", "$12,346"),
        (1_234_567_890_000, "$1235k", "$1235k"),
        (10**18, "$1e+12", "$1e+12"),
    ],
)
def test_a_price_is_rounded_and_never_cut(micro_dollars: int, narrow: str, wide: str) -> None:
    assert shown("price", NARROW, price=micro_dollars) == narrow
    assert shown("price", 7, price=micro_dollars) == wide


@pytest.mark.parametrize(
    ("seconds", "narrow", "wide"),
    [(30, "30s", "in 30s"), (240, "4m00s", "in 4m00s"), (48_600, "13h30m", "in 13h30m")],
)
def test_a_column_says_in_how_long_in_one_way(seconds: int, narrow: str, wide: str) -> None:
    at = NOW + timedelta(seconds=seconds)
    assert shown("next", NARROW, next_at=at) == narrow
    assert shown("next", WIDE, next_at=at) == wide
