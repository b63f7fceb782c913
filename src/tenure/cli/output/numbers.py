"""Numbers on the command line that are numbers: ``nan`` is in every range, and is none."""

from __future__ import annotations

import math
from typing import Any

import click


class Between(click.FloatRange):
    """A finite number in a range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{value} is not in the range of numbers.", param, ctx)
        return found
