"""The computer of a newcomer: an empty home, uv and pipx, a Python, an index of packages, and no checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

#: What people have; the rest is ours and stays out.
TOOLS: Final = ("uv", "uvx", "pipx")
SYSTEM: Final = "/usr/local/bin:/usr/bin:/bin"
#: Seconds, where much else runs.
PATIENCE: Final = 300


class Computer:
    def __init__(self, folder: Path, index: str) -> None:
        self.home = folder / "home"
        self.work = self.home / "work"
        self.work.mkdir(parents=True)
        tools = folder / "tools"
        tools.mkdir()
        for name in TOOLS:
            (tools / name).symlink_to(Path(sys.executable).with_name(name))
        python = Path(sys.base_prefix) / "bin"
        self.local = self.home / ".local" / "bin"
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{self.local}:{tools}:{python}:{SYSTEM}",
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            # Where packages come from, in place of PyPI.
            "PIP_INDEX_URL": index,
            "UV_DEFAULT_INDEX": index,
            "UV_PYTHON_DOWNLOADS": "never",
            "PIPX_DEFAULT_PYTHON": str(python / "python3"),
        }

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """As typed into a shell; it has to succeed."""
        ended = subprocess.run(  # noqa: S603  # our own pages
            ["/bin/bash", "-c", command],
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert ended.returncode == 0, f"{command}\n{ended.stdout[-2000:]}\n{ended.stderr[-4000:]}"
        return ended
