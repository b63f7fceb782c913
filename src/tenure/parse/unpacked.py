"""A file that gzip wrote, or one in UTF-16 as PowerShell's ``>`` writes it, as plain UTF-8; and what comes through a pipe.

It is unpacked piece by piece into a file without a name, which goes with its last user, and never beyond a bound.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from tenure.errors import SpecError

#: Bytes of a file, unpacked.
LONGEST: Final = 1 << 30
_PIECE: Final = 1 << 20
_COMPRESSED: Final = b"\x1f\x8b"
UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_packed(start: bytes) -> bool:
    """Whether a file that begins so has to be unpacked before it is read."""
    return start.startswith((_COMPRESSED, *UTF_16))


def unpacked(path: Path, *, longest: int = LONGEST) -> IO[bytes]:
    """At its beginning; the file itself is read once. Raises ``SpecError``."""
    plain = TemporaryFile()  # noqa: SIM115  # The caller closes it.
    try:
        with path.open("rb") as packed:
            for piece in _utf_8(_pieces(packed)):
                plain.write(piece)
                if plain.tell() > longest:
                    got = f"more than {longest} bytes, unpacked"
                    raise _wrong(path, got, f"at most {longest} bytes", "Split the file.")
    except (OSError, EOFError, zlib.error) as error:
        plain.close()
        expected = f"a whole file that gzip wrote ({error})"
        raise _wrong(path, str(path), expected, "Write it again, or use gunzip first.") from None
    except UnicodeDecodeError as error:
        plain.close()
        raise _wrong(path, error.reason, "text in UTF-16", "Save it as UTF-8.") from None
    except SpecError:
        plain.close()
        raise
    plain.seek(0)
    return plain


def _pieces(packed: BufferedReader) -> Iterator[bytes]:
    compressed = packed.peek(len(_COMPRESSED)).startswith(_COMPRESSED)
    source = gzip.GzipFile(fileobj=packed) if compressed else packed
    while piece := source.read(_PIECE):
        yield piece


def _utf_8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """What is not in UTF-16 stays as it is."""
    first = next(pieces, b"")
    if not first.startswith(UTF_16):
        yield first
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder("utf-16")()
    yield decoder.decode(first).encode()
    for piece in pieces:
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", final=True).encode()


def _wrong(path: Path, got: str, expected: str, hint: str) -> SpecError:
    return SpecError("--from" if got == str(path) else f"--from {path}", got, expected, hint)
