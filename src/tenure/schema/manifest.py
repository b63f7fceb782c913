"""Check a manifest that a user wrote: one line per mistake, with what to write instead.

Unknown fields come first, because a misspelt field is silently dropped elsewhere. Then
what the schema says, then what only reading the values can say (crons, time zones,
regular expressions). Each place is spoken about once: where a pattern or a rule fails
and reading the value says why, the latter is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from tenure.errors import KNOWN_FIELD, SpecError
from tenure.model.snapshot.kinds import type_for
from tenure.schema.problems import Problems, problems_in
from tenure.schema.structure import fielderror, shape
from tenure.schema.structure.crd import CustomKind
from tenure.schema.structure.fielderror import FieldError
from tenure.schema.structure.shape import Unknown
from tenure.schema.structure.validate import CustomResourceSchema, Json, schema_for

#: How alike two names must be to be taken for one: a wrong guess sends the reader astray.
#: Fields of v1beta1 that stand somewhere else in v1.
_MOVED: Final = {
    "template.spec.kubelet": (
        "Since v1 it is a field of the node class, for example spec.kubelet of EC2NodeClass."
    ),
    "spec.disruption.expireAfter": "Since v1 it is spec.template.spec.expireAfter.",
}
_CLOSE: Final = 0.7
_ENTRY: Final = re.compile(r"\[([^\]\d][^\]]*)\]")


class Excerpt(msgspec.Struct, frozen=True, gc=False):
    """A list or map, as it would be written."""

    text: str

    def __repr__(self) -> str:
        return self.text


def check_manifest(obj: Json, kinds: Sequence[CustomKind], at: str = "") -> list[SpecError]:
    """Everything wrong with a manifest of one of these kinds; nothing for other kinds.

    ``at`` says where the manifest stands, for example ``pool.yaml``; it leads each line.
    """
    version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
    schema = schema_for(version.partition("/")[0], kind, kinds)
    if schema is None:
        return []
    if version != schema.resource.api_version:
        wanted = schema.resource.api_version
        return [SpecError(_join(at, "apiVersion"), version, wanted, f"Use {wanted}.")]
    return [
        SpecError(_join(at, problem.at), problem.got, problem.expected, problem.hint)
        for problem in _problems(obj, schema)
    ]


def _problems(obj: Json, schema: CustomResourceSchema) -> Iterator[SpecError]:
    unknown = list(shape.unknown_fields(obj, schema.schema))
    for field in unknown:
        yield _unknown_field(field)
    misspelt = frozenset(_meant(field) for field in unknown)
    stored = schema.default(schema.prune(obj))
    errors = [error for error in schema.validate(stored) if error is not fielderror.UNCHECKED]
    precise = () if _is_unreadable(errors) else _precise_problems(stored, schema.kind)
    kept = [error for error in _last_words(errors) if not _is_said_better(error, precise)]
    for error in (one for one in kept if not _is_misspelt(one, misspelt)):
        yield SpecError(error.field, _shown(error.value), error.expected, error.hint)
    said = {_plain(error.field) for error in kept}
    for problem in precise:
        if _plain(problem.at) not in said:
            yield problem


def _meant(unknown: Unknown) -> tuple[str, str]:
    """The place of a field that is not known, and the name that was meant; empty where it is like none."""
    parent, _, name = unknown.field.rpartition(".")
    close = get_close_matches(name, unknown.known, n=1, cutoff=_CLOSE)
    return parent, close[0] if close else ""


def _is_misspelt(error: FieldError, misspelt: frozenset[tuple[str, str]]) -> bool:
    """A field that is missing because its name is misspelt, which has been said."""
    parent, _, name = error.field.rpartition(".")
    return error.reason == fielderror.REQUIRED and bool(misspelt & {(parent, name), (parent, "")})


def _plain(field: str) -> str:
    """An entry of a map has two forms: ``limits.cpu`` and ``limits[cpu]``."""
    return _ENTRY.sub(r".\1", field)


def _last_words(errors: list[FieldError]) -> list[FieldError]:
    """One error for each plain value, the rule's rather than the pattern's; all of the rest."""
    last = {error.field: error for error in errors}
    return [
        error
        for error in errors
        if last[error.field] is error or isinstance(error.value, dict | list)
    ]


def _is_said_better(error: FieldError, precise: Problems) -> bool:
    """A pattern or rule says roughly what reading the value says exactly."""
    return error.reason == fielderror.INVALID and any(
        _covers(error.field, problem.at) for problem in precise
    )


def _is_unreadable(errors: list[FieldError]) -> bool:
    """Then the typed reading would fail too, and add nothing."""
    return any(error.reason == fielderror.TYPE_INVALID for error in errors)


def _precise_problems(obj: Json, kind: CustomKind) -> Problems:
    typed = msgspec.convert(obj, type_for(kind.resource))
    return problems_in(typed, kind, watched=None)  # A file does not name its provider.


def _covers(field: str, precise: str) -> bool:
    return precise == field or precise.startswith((f"{field}.", f"{field}["))


def _unknown_field(unknown: Unknown) -> SpecError:
    if went := next((said for end, said in _MOVED.items() if unknown.field.endswith(end)), ""):
        return SpecError(unknown.field, _shown(unknown.value), KNOWN_FIELD, went)
    name = unknown.field.rpartition(".")[2]
    close = get_close_matches(name, unknown.known, n=1, cutoff=_CLOSE)
    hint = f'Did you mean "{close[0]}"?' if close else f"Known here: {', '.join(unknown.known)}."
    return SpecError(unknown.field, _shown(unknown.value), KNOWN_FIELD, hint)


def _shown(value: Any) -> Any:
    """The value, as it would be written."""
    if not isinstance(value, dict | list):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return Excerpt(text)


def _join(at: str, field: str) -> str:
    return f"{at}: {field}" if at else field
