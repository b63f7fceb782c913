"""Reads a scenario file, strictly: a typed value, or every mistake in it, one line each.

The first document of the file is the scenario. Further documents, and the files that
``files`` names, are plain manifests, so that a user's own YAML can be pasted in or
referred to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec

from tenure.errors import SpecError
from tenure.model.api.names import ZONE
from tenure.model.api.resource import NODES, Resource
from tenure.parse.yamltext import Document, read_documents
from tenure.sim.actors.kubelet.podstatus import APP_LABELS
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.cloud.standins import STAND_INS
from tenure.sim.scenario.actions import Apply, Patch
from tenure.sim.scenario.context import span
from tenure.sim.scenario.expectations import Expectation, ExpectationReader
from tenure.sim.scenario.manifests import ManifestReader
from tenure.sim.scenario.read.fields import BadInput, Reader
from tenure.sim.scenario.steps import Step, StepReader
from tenure.sim.scenario.words import options as words
from tenure.sim.scenario.worldoptions import check_zones, read_world_options
from tenure.sim.world import WorldOptions

T = TypeVar("T")

FIELDS: Final = tuple(word.name for word in words.FIELDS)
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
    #: What could be written better, a sentence each.
    notes: tuple[str, ...] = ()
    #: What is said about something that no object has: a slip, most likely.
    unused: tuple[str, ...] = ()


def load_scenario(path: Path, base: Base | None = None) -> Scenario:
    """The scenario in that file; raises ``BadInput`` with everything that is wrong.

    ``base``: the cluster that it is played in. A file of plain manifests is a scenario, too: they are applied
    as it begins.
    """
    problems: list[SpecError] = []
    try:
        documents = read_documents(path)
        if not documents:
            hint = "Begin with name:, objects: and expect:; tenure new scenario writes one."
            raise SpecError(str(path), "", "a scenario", hint)
        if _is_manifest(documents[0].value):
            if base is None:
                got = f"a manifest: {documents[0].value['kind']}"
                hint = "Write it under objects: (tenure new scenario), or ask tenure lint about it."
                raise SpecError(str(path), got, "a scenario", hint)
            documents = [Document(documents[0].file, {}), *documents]
        scenario = _Loader(path, documents, problems, base).load()
    except SpecError as error:
        raise BadInput([*problems, error]) from None
    if problems:
        raise BadInput(problems)
    return scenario


def _is_manifest(value: Any) -> bool:
    return isinstance(value, dict) and "apiVersion" in value and "kind" in value


class Base(Protocol):
    """A cluster with objects, in which a scenario is played."""

    @property
    def at(self) -> datetime: ...

    def zones(self) -> Iterable[str]:
        """What its cloud sells in."""
        ...

    def changeable(self) -> Iterable[tuple[Resource, Obj]]:
        """What the manifests of a scenario may change."""
        ...


class _Loader:
    def __init__(
        self,
        path: Path,
        documents: list[Document],
        problems: list[SpecError],
        base: Base | None = None,
    ) -> None:
        self._base = base
        self._path, self._documents, self._problems = path, documents, problems
        self._reader = Reader(documents[0], problems)
        self._fields = self._reader.fields(documents[0].value, "", FIELDS)

    def load(self) -> Scenario:
        fields, reader = self._fields, self._reader
        options = read_world_options(reader, fields)
        there: Iterable[tuple[Resource, Obj]] = ()
        if self._base is not None:
            self._check_base()
            options = msgspec.structs.replace(options, epoch=self._base.at)
            there = self._base.changeable()
        manifest_reader = ManifestReader(options.epoch, there)
        objects = tuple(self._objects(manifest_reader))
        options = self._with_stand_ins(options, objects)
        zones = sorted(self._zones(options, objects))
        check_zones(reader, options.infrastructure.faults, zones, "faults")
        read_step = StepReader(reader, manifest_reader, zones)
        read_expectation = ExpectationReader(reader)
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
            notes=tuple(reader.notes),
            unused=tuple(self._unused(options, (*objects, *_applied(steps)))),
        )

    def _unused(self, options: WorldOptions, objects: Sequence[Obj]) -> Iterator[str]:
        """Of a copied cluster it is not known yet what there is."""
        if self._base is not None:
            return
        labels = [one for obj in objects for one in _values(obj, "labels") if isinstance(one, dict)]
        apps = {one.get(key) for one in labels for key in APP_LABELS}
        for index, pace in enumerate(options.infrastructure.paces):
            if pace.app and pace.app not in apps:
                place = self._reader.document.place(f"pods[{index}].app")
                yield f"{place}: no object has the label app: {pace.app}"
        taints = [
            taint for obj in objects for each in _values(obj, "startupTaints") for taint in each
        ]
        keys = {taint.get("key") for taint in taints if isinstance(taint, dict)}
        for key in options.infrastructure.startup_agents:
            if key not in keys:
                place = self._reader.document.place(f"startup-agents.{key}")
                yield f"{place}: no NodePool has the startup taint {key}"

    def _with_stand_ins(self, options: WorldOptions, objects: Sequence[Obj]) -> WorldOptions:
        """The embedded cloud launches for classes of AWS that the scenario brings along.

        A cluster that is copied says itself which it has; beside Karpenter nothing is launched.
        """
        kinds = {obj["kind"] for obj in objects}
        wanted = [one for one in STAND_INS if one.kind in kinds]
        if self._base is not None or options.settings.beside_karpenter or not wanted:
            return options
        more = {"stands_in_for": wanted, "makes_classes_ready": True}
        infrastructure = msgspec.structs.replace(options.infrastructure, **more)
        return msgspec.structs.replace(options, infrastructure=infrastructure)

    def _zones(self, options: WorldOptions, objects: Iterable[Obj]) -> set[str]:
        """A cluster that is copied has its own cloud."""
        if self._base is not None:
            return {*self._base.zones(), *_zones_of(objects)}
        return {*options.infrastructure.zones, *_zones_of(objects)}

    def _check_base(self) -> None:
        """When it begins, and what is sold there, is the cluster's to say."""
        for name in ("start", "cloud"):
            if name in self._fields:
                expected = "no such field with --from: the copied cluster says it"
                self._reader.problem(name, self._fields.raw(name), expected)

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


def _applied(steps: Iterable[Step]) -> Iterator[Obj]:
    for step in steps:
        if isinstance(step.deed, Apply):
            yield from step.deed.manifests
        elif isinstance(step.deed, Patch):
            yield step.deed.merge


def _values(tree: Any, name: str) -> Iterator[Any]:
    """Each value of a field of that name, wherever it stands."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == name and value:
                yield value
            yield from _values(value, name)
    elif isinstance(tree, list):
        for one in tree:
            yield from _values(one, name)


def _zones_of(objects: Iterable[Obj]) -> Iterator[str]:
    """Of Nodes that are there from the start: their zones need not be the cloud's."""
    for obj in objects:
        zone = dig(obj, "metadata", "labels", ZONE)
        if obj["kind"] == NODES.kind and isinstance(zone, str):
            yield zone


def _present(values: Iterable[T | None]) -> list[T]:
    return [value for value in values if value is not None]
