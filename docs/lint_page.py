"""The table of codes in the page of lint."""

from __future__ import annotations

from tenure.schema.findings import CODES

_HEAD = """\
| code | severity | what it means | what to do |
|---|---|---|---|
"""


def codes_table() -> str:
    rows = "".join(
        f"| `{code}` | {info.severity} | {info.meaning} | {info.advice} |\n"
        for code, info in CODES.items()
    )
    return f"{_HEAD}{rows}\n"
