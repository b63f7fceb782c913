"""What a process costs: processor seconds and memory, as the kernel counts them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
#: Written to ``clear_refs``: the peak of the memory begins anew.
_RESET_PEAK: Final = "5"


class Footprint:
    """From now on."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")
        (self._folder / "clear_refs").write_text(_RESET_PEAK)
        self._began = self._cpu()

    @property
    def cpu_seconds(self) -> float:
        return self._cpu() - self._began

    @property
    def memory_peak(self) -> int:
        """Of resident memory, in bytes."""
        return self._status("VmHWM")

    @property
    def memory(self) -> int:
        return self._status("VmRSS")

    def _cpu(self) -> float:
        fields = (self._folder / "stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def _status(self, field: str) -> int:
        for line in (self._folder / "status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {field} on this system")
