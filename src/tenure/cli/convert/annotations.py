"""Annotations that older releases read, and what is written instead today."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenure.cli.convert.report import Code, Note
from tenure.schema.advice import OLD_ANNOTATIONS


def old_annotations(value: Any) -> Iterator[Note]:
    """Wherever they stand in an object: on it, or on the template of its pods or nodes."""
    waiting = [("", value)]
    while waiting:
        at, one = waiting.pop()
        if isinstance(one, list):
            waiting += [(f"{at}[{index}]", part) for index, part in enumerate(one)]
        elif isinstance(one, dict):
            for name, part in one.items():
                path = f"{at}.{name}" if at else name
                if name in OLD_ANNOTATIONS and at.rpartition(".")[2] == "annotations":
                    message = f"is not read any more; {OLD_ANNOTATIONS[name]}"
                    yield Note(Code.ELSEWHERE, (path,), message)
                else:
                    waiting.append((path, part))
