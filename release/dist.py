"""Builds what a release is made of into ``dist/``, bit for bit the same from the same commit.

    python -m release.dist [FOLDER]

The wheel, the sdist, the chart, the plugin of kubectl, the bill of materials, the licences, and a hash of each. The image is built from the
same commit by its Dockerfile (docs/install.md).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from release import chart, krew, licences, sbom
from release.version import EPOCH, ROOT, made_at, semver

SUMS: Final = "SHA256SUMS"


def build(folder: Path) -> list[Path]:
    """Everything there, in the order of names; what was there before is removed."""
    at = made_at()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wheel = python_packages(folder, at)
    version = wheel.name.split("-")[1]
    packed = folder / f"tenure-chart-{semver(version)}.tgz"
    packed.write_bytes(chart.package(semver(version), at))
    plugin = krew.archive(wheel, semver(version), at)
    name = f"kubectl-tenure-{semver(version)}.tar.gz"
    (folder / name).write_bytes(plugin)
    (folder / "krew.yaml").write_text(
        krew.manifest(semver(version), name, plugin), encoding="utf-8"
    )
    bom = sbom.locked()
    known = list(licences.licences(sbom.names(bom)))
    (folder / "licences.md").write_text(licences.as_page(known), encoding="utf-8")
    (folder / "sbom.cdx.json").write_text(sbom.sbom(bom, version, at, known), encoding="utf-8")
    made = sorted(folder.iterdir())
    sums = "".join(f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in made)
    (folder / SUMS).write_text(sums, encoding="utf-8")
    return sorted(folder.iterdir())


def python_packages(folder: Path, at: int) -> Path:
    """The sdist, and the wheel built from it, by the tools that uv.lock names; gives the wheel."""
    locked = ("--no-build-isolation", "--python", sys.executable)
    subprocess.run(  # noqa: S603  # our own words
        [sbom.UV, "build", "--quiet", "--no-create-gitignore", *locked, "--out-dir", folder],
        cwd=ROOT,
        env={**os.environ, EPOCH: str(at)},
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"
    for path in build(target):
        print(f"{path.stat().st_size:>10,}  {path.name}")
