"""Scenario files for tests: a small story that is right, and ways to bend it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from tests.builders import a_deployment, a_node_class, a_pool
from tests.folders import ROOT

SHIPPED = ROOT / "examples" / "scenarios"


def a_story(**changes: Any) -> dict[str, Any]:
    """Three pods get a node; ``changes`` replace or add fields."""
    story: dict[str, Any] = {
        "name": "small",
        "until": "5m",
        "objects": [a_node_class(), a_pool(), a_deployment(replicas=3)],
        "expect": [{"by": "3m", "pods": {"app": "web", "running": 3}}],
    }
    return copy.deepcopy(story) | changes


def written(folder: Path, story: dict[str, Any] | str, name: str = "story.yaml") -> Path:
    path = folder / name
    text = story if isinstance(story, str) else yaml.safe_dump(story, sort_keys=False)
    path.write_text(text, encoding="utf-8")
    return path
