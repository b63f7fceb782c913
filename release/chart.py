"""The chart as one file, bit for bit the same from the same commit.

``helm package`` writes the instant of the build into it. Here names are sorted, and the instant is that of the
commit; what helm reads is the same.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from pathlib import Path
from typing import Final

from release.version import ROOT

CHART: Final = ROOT / "charts" / "tenure"
_VERSIONS: Final = re.compile(r"^(version|appVersion): .*$", re.M)


def package(version: str, at: int, folder: Path = CHART) -> bytes:
    """``version``: of the chart, of the program, and the tag of the image."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = path.relative_to(folder)
            content = path.read_bytes()
            if str(name) == "Chart.yaml":
                content = _VERSIONS.sub(rf'\1: "{version}"', content.decode()).encode()
            entry = tarfile.TarInfo(f"{folder.name}/{name.as_posix()}")
            entry.size, entry.mtime, entry.mode = len(content), at, 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=at)
