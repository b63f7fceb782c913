"""NodePools as text: YAML documents, or one JSON object of kind List."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import yaml

#: Text that other readers of YAML take for a number, and PyYAML writes without quotes: 1e3, 0o17.
_LIKE_A_NUMBER: Final = re.compile(r"[-+]?(0o[0-7]+|\.?[0-9][0-9_.]*([eE][-+]?[0-9]+)?)")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> Any:
    style = "'" if _LIKE_A_NUMBER.fullmatch(text) else None
    if not text.isprintable():
        style = '"'  # The other styles fold some line breaks into spaces.
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def as_yaml(objects: Sequence[Mapping[str, Any]]) -> str:
    """With a separator in front of each, so that the texts of several calls can be joined."""
    return "".join(
        "---\n" + yaml.dump(one, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
        for one in objects
    )


def as_json(objects: Sequence[Mapping[str, Any]]) -> str:
    whole = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return msgspec.json.format(msgspec.json.encode(whole).decode(), indent=2) + "\n"
