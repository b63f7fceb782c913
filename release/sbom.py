"""The bill of materials, in CycloneDX: what uv.lock names for the program, with the licence of each.

uv writes it from the lock. What differs from run to run is taken from the content and the commit, so that the
same commit gives the same file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from release.licences import Licensed
from release.version import ROOT

UV: Final = Path(sys.executable).with_name("uv")
#: Of the project: names made from content are in it.
_SPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "https://tenure.dev/sbom")


def locked() -> dict[str, Any]:
    """As uv tells it, without what is only for development."""
    words = ("export", "--quiet", "--frozen", "--no-dev", "--format", "cyclonedx1.5")
    ended = subprocess.run(  # noqa: S603  # our own words
        [UV, *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def names(bom: dict[str, Any]) -> list[str]:
    return [one["name"] for one in bom["components"]]


def sbom(bom: dict[str, Any], version: str, at: int, known: list[Licensed]) -> str:
    by_name = {one.name: one.licence for one in known}
    root = bom["metadata"]["component"]
    root |= {"type": "application", "version": version, "purl": f"pkg:pypi/tenure@{version}"}
    root["licenses"] = [{"expression": "Apache-2.0"}]
    for one in bom["components"]:
        if licence := by_name.get(one["name"]):
            one["licenses"] = [{"expression": licence}]
    bom["metadata"]["timestamp"] = datetime.fromtimestamp(at, UTC).isoformat()
    del bom["serialNumber"]
    content = json.dumps(bom, sort_keys=True)
    numbered = {**bom, "serialNumber": f"urn:uuid:{uuid.uuid5(_SPACE, content)}"}
    return json.dumps(numbered, indent=1, sort_keys=True) + "\n"
