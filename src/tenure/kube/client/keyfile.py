"""OpenSSL reads certificates and keys from files only; here is one that lives for a moment."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_file(content: bytes) -> Iterator[str]:
    """Where the kernel can, it is never on a disk: a disk may keep it, or be read-only."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("tenure"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile("wb", suffix=".pem") as named:
            named.write(content)
            named.flush()
            yield named.name
