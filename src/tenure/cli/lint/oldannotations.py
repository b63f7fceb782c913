"""Annotations that older releases of Karpenter read, wherever they stand in an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenure.schema.advice import OLD_ANNOTATIONS
from tenure.schema.findings import Code, Finding


def old_annotations(value: Any) -> Iterator[tuple[str, str]]:
    """Field and name: on the object, or on the template of its pods or nodes."""
    waiting = [("", value)]
    while waiting:
        at, one = waiting.pop()
        if isinstance(one, list):
            waiting += [(f"{at}[{index}]", part) for index, part in enumerate(one)]
        elif isinstance(one, dict):
            for name, part in one.items():
                path = f"{at}.{name}" if at else str(name)
                if name in OLD_ANNOTATIONS and at.rpartition(".")[2] == "annotations":
                    yield path, name
                else:
                    waiting.append((path, part))


def old_annotation(at: str, name: str) -> Finding:
    return Finding(Code.OLD_ANNOTATION, at, f"is not read any more; {OLD_ANNOTATIONS[name]}")
