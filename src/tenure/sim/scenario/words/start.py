"""The scenario that ``tenure new scenario`` writes: it runs as it is, and its comments say what to change."""

from __future__ import annotations

from importlib import resources


def start_of(name: str, file: str) -> str:
    """The text of a new scenario of that name, for that file."""
    text = resources.files("tenure.sim.scenario.words").joinpath("start.yaml").read_text("utf-8")
    return text.replace("\nname: start\n", f"\nname: {name}\n").replace("FILE", file)
