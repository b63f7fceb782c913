"""Where the repository's own files are, for tests that read them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
#: What other programs answered, kept as files.
DATA: Final = ROOT / "tests" / "data"
