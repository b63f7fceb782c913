"""Everything that was given to ``tenure convert``: NodePools, and the report about each object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tenure.cli.convert.annotations import annotation_notes
from tenure.cli.convert.conversion import Conversion
from tenure.cli.convert.nodeclass import OLD_TEMPLATE
from tenure.cli.convert.provisioner import KIND, convert
from tenure.cli.convert.report import Code, Line, Note
from tenure.cli.lint.source import Source, Sources
from tenure.errors import SpecError
from tenure.schema.findings import Severity

#: Of kinds that are found beside Provisioners, what to do about them.
_ADVICE: Final = {
    OLD_TEMPLATE: "Write an EC2NodeClass of the same name by hand",
    "Machine": "Its Node is drained by you, or stays until it is deleted",
    "NodePool": "Apply it as it is",
    "MaintenanceWindow": "Apply it as it is",
}


class Converted(msgspec.Struct, frozen=True):
    pools: tuple[dict[str, Any], ...]
    report: tuple[Line, ...]
    provisioners: int

    @property
    def invalid(self) -> bool:
        return any(line.note.severity is Severity.ERROR for line in self.report)

    @property
    def complete(self) -> bool:
        """Whether all that was given is in the NodePools."""
        return all(line.note.severity is Severity.INFO for line in self.report)


def convert_all(sources: Sources, node_class: Mapping[str, str] | None = None) -> Converted:
    conversions = [
        convert(source, node_class) if source.kind == KIND else _left_out(source)
        for source in sources.found
    ]
    return Converted(
        pools=tuple(one.pool for one in conversions if one.pool is not None),
        report=tuple(line for one in conversions for line in _report(one)),
        provisioners=sum(one.source.kind == KIND for one in conversions),
    )


def _left_out(source: Source) -> Conversion:
    kind = source.value["kind"]
    changes = list(annotation_notes(source.value))
    usual = "What has to be changed there is named beside" if changes else "It needs no change"
    advice = _ADVICE.get(kind, usual)
    message = f"{source.value['apiVersion']} {kind} is no Provisioner, and is left out. {advice}"
    return Conversion(source, notes=[Note(Code.LEFT_OUT, (), message), *changes])


def _report(done: Conversion) -> list[Line]:
    """In the order in which the fields stand."""
    return sorted((_line(done.source, note) for note in done.notes), key=lambda one: one.line)


def _line(source: Source, note: Note) -> Line:
    field = note.fields[0] if note.fields else ""
    return Line(
        about=source.name, note=note, file=source.document.file, line=source.position(field).line
    )


def node_class_in(text: str) -> dict[str, str]:
    """``GROUP/KIND/NAME``."""
    parts = text.split("/")
    if len(parts) != 3 or not all(parts):
        hint = "For example karpenter.k8s.aws/EC2NodeClass/default."
        raise SpecError("--node-class", text, "GROUP/KIND/NAME", hint)
    return dict(zip(("group", "kind", "name"), parts, strict=True))
