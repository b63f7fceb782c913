"""Reads a file up to a limit, as text in UTF-8. What cannot be read is a ``SpecError``."""

from __future__ import annotations

from pathlib import Path

from tenure.errors import SpecError
from tenure.parse.limits import FILE, Limits
from tenure.parse.unpacked import UTF_16


def read_text(path: Path, *, name: str = "", limits: Limits = FILE) -> str:
    """``name`` is what to call the file in an error. Raises ``SpecError`` and ``OSError``."""
    name = name or str(path)
    with path.open("rb") as file:
        # One byte more tells; the size that the file system states may be wrong or endless.
        data = file.read(limits.size + 1)
    return text_of(data, name, limits=limits)


def text_of(data: bytes, name: str, *, limits: Limits = FILE) -> str:
    """UTF-8, or UTF-16 with the mark that PowerShell's ``>`` writes. Raises ``SpecError``."""
    if len(data) > limits.size:
        got = f"a file of more than {limits.size} bytes"
        raise SpecError(name, got, f"at most {limits.size} bytes", "Split the file.")
    encoding = "utf-16" if data.startswith(UTF_16) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        found = f"byte {error.object[error.start]:#x} at {error.start}"
        raise SpecError(name, found, "text in UTF-8", "Save it as UTF-8.") from None
