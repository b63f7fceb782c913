"""Reads manifests from files, folders and the standard input, each with where it stands."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.cli.lint.remarks import STDIN as STDIN_NAME
from tenure.errors import SpecError
from tenure.parse.files import read_text
from tenure.parse.limits import FILE
from tenure.parse.yamltext import Document, Position, documents_in, read_documents

STDIN: Final = "-"
_SUFFIXES: Final = (".yaml", ".yml", ".json")


class Source(msgspec.Struct, frozen=True):
    """One object as it was written."""

    document: Document
    #: Where it begins in its document; empty unless it stands in a ``List``.
    at: str
    value: dict[str, Any]

    @property
    def kind(self) -> tuple[str, str]:
        """Group and kind."""
        group = self.value["apiVersion"].rpartition("/")[0]
        return group, self.value["kind"]

    @property
    def name(self) -> str:
        metadata = self.value.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        parts = (self.value["kind"], metadata.get("namespace"), metadata.get("name"))
        return "/".join(str(part) for part in parts if part)

    def position(self, field: str) -> Position:
        """Of the field, or of the nearest thing around it that is there."""
        return self.document.position(
            f"{self.at}.{field}" if self.at and field else field or self.at
        )


class Sources(msgspec.Struct):
    found: list[Source] = []
    #: What cannot be read at all.
    problems: list[SpecError] = []
    #: What was left out.
    notes: list[str] = []


def read_sources(paths: Sequence[str]) -> Sources:
    sources = Sources()
    for path in paths:
        try:
            for document in _documents(path, sources):
                _add(sources, document, document.value, "")
        except SpecError as error:
            sources.problems.append(error)
    if not sources.found and not sources.problems:
        hint = "Begin with apiVersion: and kind:, as kubectl expects it."
        sources.problems.append(SpecError("FILE", " ".join(paths), "Kubernetes objects", hint))
    return sources


def _documents(path: str, sources: Sources) -> Iterator[Document]:
    if path == STDIN:
        yield from documents_in(sys.stdin.read(FILE.size + 1), STDIN_NAME)
    elif not Path(path).is_dir():
        yield from _file(Path(path))
    else:
        for file in sorted(Path(path).rglob("*")):
            hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
            if file.suffix in _SUFFIXES and file.is_file() and not hidden:
                try:
                    yield from _file(file)
                except SpecError as error:  # One broken file hides none of the others.
                    sources.problems.append(error)


def _file(path: Path) -> list[Document]:
    if not path.exists():
        raise SpecError("FILE", str(path), "a file or folder that exists", "Look at its path.")
    if path.is_fifo() and path.parts[:2] != ("/", "dev"):  # The shell's <(…) is below /dev.
        hint = "Give its text to the standard input: - < FILE."
        raise SpecError("FILE", f"{path}, which is a FIFO", "a regular file", hint)
    try:
        return read_documents(path)
    except SpecError as error:
        if _is_template(path):
            hint = "Render it first: helm template my-app CHART | tenure lint -."
            raise SpecError(f"{path}", "a Helm template", "a manifest", hint) from None
        raise error


def _is_template(path: Path) -> bool:
    """Whether it is one of a Helm chart: it has actions in braces, which no YAML has."""
    with suppress(OSError, SpecError):
        return "{{" in read_text(path)
    return False


def _add(sources: Sources, document: Document, value: Any, at: str) -> None:
    listed = _listed(value)
    if listed:
        for index, item in enumerate(value[listed]):
            place = f"{at}.{listed}[{index}]" if at else f"{listed}[{index}]"
            _add(sources, document, item, place)
    elif isinstance(value, dict) and all(
        isinstance(value.get(field), str) for field in ("apiVersion", "kind")
    ):
        sources.found.append(Source(document, at, value))
    else:
        place = document.place(at)
        sources.notes.append(f"{place}: no Kubernetes object, left out: no apiVersion and kind")


def _listed(value: Any) -> str:
    """The field with the objects of a ``List``, or of a scenario; empty for anything else."""
    if not isinstance(value, dict):
        return ""
    if str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
        return "items"
    return "objects" if "kind" not in value and isinstance(value.get("objects"), list) else ""
