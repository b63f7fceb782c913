"""Reads a scenario file, strictly: a typed value, or every mistake in it, one line each.

The first document of the file is the scenario. Further documents, and the files that
``files`` names, are plain manifests, so that a user's own YAML can be pasted in or
referred to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from tenure.errors import SpecError
from tenure.parse.yamltext import Document, read_documents
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario import worldoptions as surroundings
from tenure.sim.scenario.context import span
from tenure.sim.scenario.expectations import Expectation, ExpectationReader
from tenure.sim.scenario.manifests import ManifestReader
from tenure.sim.scenario.read.fields import BadInput, Reader
from tenure.sim.scenario.steps import Step, StepReader
from tenure.sim.world import WorldOptions

T = TypeVar("T")

FIELDS: Final = (
    *("name", "description", "until"),
    *surroundings.FIELDS,
    *("files", "objects", "events", "expect"),
)
#: A scenario that does not say how long it takes goes on for this long after its last line.
_EPILOGUE: Final = timedelta(minutes=10)


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    until: timedelta
    options: WorldOptions
    objects: tuple[Obj, ...]
    #: In the order in which they happen.
    steps: tuple[Step, ...]
    expectations: tuple[Expectation, ...]


def load_scenario(path: Path) -> Scenario:
    """The scenario in that file; raises ``BadInput`` with everything that is wrong."""
    problems: list[SpecError] = []
    try:
        documents = read_documents(path)
        if not documents:
            hint = "Begin with name:, objects: and expect:; see examples/scenarios/."
            raise SpecError(str(path), "", "a scenario", hint)
        scenario = _Loader(path, documents, problems).load()
    except SpecError as error:
        raise BadInput([*problems, error]) from None
    if problems:
        raise BadInput(problems)
    return scenario


class _Loader:
    def __init__(self, path: Path, documents: list[Document], problems: list[SpecError]) -> None:
        self._path, self._documents, self._problems = path, documents, problems
        self._reader = Reader(documents[0], problems)
        self._fields = self._reader.fields(documents[0].value, "", FIELDS)

    def load(self) -> Scenario:
        fields, reader = self._fields, self._reader
        options = surroundings.read_world_options(reader, fields)
        manifest_reader = ManifestReader(options.epoch)
        objects = tuple(self._objects(manifest_reader))
        read_step, read_expectation = StepReader(reader, manifest_reader), ExpectationReader(reader)
        steps = _present(read_step.read(value, at) for at, value in self._listed("events"))
        expected = _present(
            read_expectation.read(value, at) for at, value in self._listed("expect")
        )
        return Scenario(
            name=fields.text("name", self._path.stem),
            description=fields.text("description", "").strip(),
            until=self._until(steps, expected),
            options=options,
            objects=objects,
            steps=tuple(sorted(steps, key=lambda step: step.at)),
            expectations=tuple(expected),
        )

    def _listed(self, name: str) -> Iterator[tuple[str, Any]]:
        return self._reader.items(self._fields.raw(name), name)

    def _objects(self, manifest_reader: ManifestReader) -> Iterator[Obj]:
        for at, name in self._listed("files"):
            relative = self._reader.text(name, at)
            file = self._path.parent / relative
            if relative and not file.is_file():
                hint = "Paths are relative to the scenario's folder."
                self._reader.problem(at, relative, "a file that exists", hint)
            elif relative:
                yield from self._manifests(manifest_reader, read_documents(file))
        for at, value in self._listed("objects"):
            yield from manifest_reader.read(self._reader, value, at)
        yield from self._manifests(manifest_reader, self._documents[1:])

    def _manifests(
        self, manifest_reader: ManifestReader, documents: list[Document]
    ) -> Iterator[Obj]:
        for document in documents:
            yield from manifest_reader.read(Reader(document, self._problems), document.value, "")

    def _until(self, steps: list[Step], expected: list[Expectation]) -> timedelta:
        """How long it takes; everything that is said must lie within."""
        instants = [(step.at, step.place) for step in steps]
        instants += [(one.after if one.until is None else one.until, one.place) for one in expected]
        if "until" not in self._fields:
            return max((at for at, _ in instants), default=timedelta(0)) + _EPILOGUE
        known = len(self._problems)
        until = self._fields.span("until")
        for at, place in instants:
            if at > until and len(self._problems) == known:
                expectation = f"an instant within until: {span(until)}"
                self._problems.append(
                    SpecError(place, span(at), expectation, "Raise until, or move it.")
                )
        return until


def _present(values: Iterable[T | None]) -> list[T]:
    return [value for value in values if value is not None]
