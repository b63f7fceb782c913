"""Reads what a user wrote in JSON, piece by piece; each refusal names the place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tenure.errors import SpecError
from tenure.model.api.fields import (
    LABEL_VALUE,
    LABEL_VALUE_LENGTH,
    QUALIFIED_NAME,
    QUALIFIED_NAME_LENGTH,
)
from tenure.parse import jsontext
from tenure.parse.files import read_text

_VALUE: Final = re.compile(LABEL_VALUE)
_KEY: Final = re.compile(QUALIFIED_NAME)


def read_json(path: str, at: str) -> Any:
    """What is in the file; ``at`` is what named it."""
    name = Path(path).name
    try:
        text = read_text(Path(path), name=at)
    except OSError as error:
        raise SpecError(at, path, f"a file that can be read; {error.strerror}") from error
    return jsontext.load(text, name)


def fields_of(written: Any, at: str, known: Sequence[str]) -> dict[str, Any]:
    """Each known field, None where it is missing. A name that is nearly known is a slip."""
    if not isinstance(written, dict):
        raise SpecError(at, shown(written), f"an object with {', '.join(known[:4])} …")
    spelled = {name.lower(): name for name in known}
    fields: dict[str, Any] = dict.fromkeys(known)
    for name, value in written.items():
        if (right := spelled.get(name.lower())) is not None:
            fields[right] = value
        elif close := difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=0.8):
            raise SpecError(f"{at}.{name}", shown(value), f"the field {spelled[close[0]]}")
    return fields


def list_of(written: Any, at: str, what: str) -> list[Any]:
    if not isinstance(written, list) or not written:
        raise SpecError(at, shown(written), f"a list of {what}, at least one")
    return written


def label_value(written: Any, at: str, expected: str) -> str:
    if not isinstance(written, str) or not written or not _VALUE.fullmatch(written):
        raise SpecError(at, shown(written), expected)
    if len(written) > LABEL_VALUE_LENGTH:
        raise SpecError(at, written, f"at most {LABEL_VALUE_LENGTH} characters: it becomes a label")
    return written


def label_key(written: Any, at: str, expected: str) -> str:
    """Resources are named by the same rule."""
    if not isinstance(written, str) or not _KEY.fullmatch(written):
        raise SpecError(at, shown(written), expected)
    domain, _, name = written.rpartition("/")
    if len(name) > LABEL_VALUE_LENGTH or len(written) > QUALIFIED_NAME_LENGTH or len(domain) > 253:
        limit = f"at most {LABEL_VALUE_LENGTH} characters, after at most 253 and a slash"
        raise SpecError(at, shown(written), limit)
    return written


def shown(written: Any) -> Any:
    """What an error repeats of the file: a few words, never half of it."""
    if isinstance(written, dict | list):
        what = "an object" if isinstance(written, dict) else "a list"
        return what if written else f"{what} without anything in it"
    return written
