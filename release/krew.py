"""The plugin of kubectl for krew: an archive with the wheel and a program that starts it, and the manifest.

The libraries of the wheel are compiled for a platform, so the archive has none: its program makes a virtual environment at
the first call, with the wheel beside it and what that needs from the user's package index.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from pathlib import Path
from typing import Final

from release.version import ROOT

#: Where releases are to be had; the manifest names the archive below it.
ADDRESS: Final = "TENURE_RELEASES"
_NOWHERE: Final = "https://releases.invalid/tenure"

_PROGRAM: Final = """\
#!/bin/sh
# kubectl tenure: starts the wheel beside it, in an environment that is made at the first call.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$(readlink -f -- "$0" 2>/dev/null || echo "$0")")" && pwd)
home=${XDG_DATA_HOME:-$HOME/.local/share}/tenure-kubectl/@VERSION@
if [ ! -x "$home/bin/kubectl-tenure" ]; then
  python=${TENURE_PYTHON:-python3}
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "kubectl tenure: Python 3.11 or newer is needed; name it by TENURE_PYTHON" >&2
    exit 1
  }
  echo "kubectl tenure: making $home, once" >&2
  "$python" -m venv --clear "$home" >&2
  "$home/bin/pip" install --quiet --disable-pip-version-check "$here"/tenure-*.whl >&2 || {
    rm -rf "$home"
    exit 1
  }
fi
exec "$home/bin/kubectl-tenure" "$@"
"""

_MANIFEST: Final = """\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: tenure
spec:
  version: v{version}
  shortDescription: Why is this node in its state, and what comes next?
  description: |
    Explains the life of nodes: why a Node, NodeClaim or pod is in its state, what
    blocks it and until when; what Tenure would do now; what the next days bring.
    Works on any cluster with Karpenter's kinds, and only reads.
  caveats: |
    Needs Python 3.11 or newer. The first call makes an environment below
    ~/.local/share/tenure-kubectl, with libraries from your package index.
  platforms:
{platforms}"""
_PLATFORM: Final = """\
    - selector: {{matchLabels: {{os: {os}, arch: {arch}}}}}
      uri: {address}/{name}
      sha256: {hash}
      bin: kubectl-tenure
"""
_PLATFORMS: Final = (
    ("linux", "amd64"),
    ("linux", "arm64"),
    ("darwin", "amd64"),
    ("darwin", "arm64"),
)


def archive(wheel: Path, version: str, at: int) -> bytes:
    """Bit for bit the same from the same wheel; ``at``: of the commit."""
    program = _PROGRAM.replace("@VERSION@", version)
    files = (
        ("LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644),
        ("kubectl-tenure", program.encode(), 0o755),
        (wheel.name, wheel.read_bytes(), 0o644),
    )
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content, mode in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), at, mode
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=at)


def manifest(version: str, name: str, packed: bytes) -> str:
    """``name``: of the archive."""
    hash_ = hashlib.sha256(packed).hexdigest()
    address = os.environ.get(ADDRESS, _NOWHERE).rstrip("/")
    platforms = "".join(
        _PLATFORM.format(os=system, arch=arch, address=address, name=name, hash=hash_)
        for system, arch in _PLATFORMS
    )
    return _MANIFEST.format(version=version, platforms=platforms)
