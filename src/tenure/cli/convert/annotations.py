"""Annotations that older releases read, and what is written instead today."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenure.cli.convert.report import Code, Note
from tenure.cli.lint.oldannotations import old_annotation, old_annotations


def annotation_notes(value: Any) -> Iterator[Note]:
    for at, name in old_annotations(value):
        yield Note(Code.ELSEWHERE, (at,), old_annotation(at, name).message)
