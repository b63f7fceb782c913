"""Only ``tenure.parse`` turns text from outside into values: every other module asks it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.folders import ROOT

SOURCE: Final = ROOT / "src" / "tenure"

#: Of each module, what may be used; everything else of it reads.
WRITERS: Final = {
    "yaml": {"SafeDumper", "dump", "dump_all", "safe_dump", "safe_dump_all"},
    "json": {"dumps", "dump"},
}
FORBIDDEN: Final = {
    *("pickle", "marshal", "shelve", "tomllib", "configparser", "plistlib"),
    *("xml", "ast", "ruamel", "simplejson", "orjson"),
}
#: Modules that decode without a type what this program has encoded a moment before.
OWN_BYTES: Final = {
    "model/snapshot/kinds.py": "an object that its typed decoder has refused; one too deep is refused again",
    "sim/apiserver/api.py": "items of the list it has just made",
    "sim/serve/answers.py": "the answer of the store, to show it in another form",
}


def modules() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if SOURCE / "parse" not in path.parents]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_parses_by_itself(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert list(readers(tree, str(path.relative_to(SOURCE)))) == []


@pytest.mark.parametrize(
    "line",
    [
        "import yaml\nyaml.safe_load('')",
        "import yaml\nload = yaml.load",
        "from yaml import CSafeLoader",
        "import json\njson.loads('')",
        "from json import load",
        "import pickle",
        "import xml.etree.ElementTree",
        "import msgspec\nmsgspec.json.decode(b'')",
        "import msgspec\nread = msgspec.json.decode",
        "import msgspec\nmsgspec.yaml.decode(b'', type=int)",
        "import msgspec\nmsgspec.json.Decoder()",
        "eval('1')",
    ],
)
def test_the_rule_finds_each_way_around(line: str) -> None:
    assert list(readers(ast.parse(line), "somewhere.py"))


def readers(tree: ast.Module, module: str) -> Iterator[str]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    typed = {id(call.func) for call in calls if len(call.args) > 1 or call.keywords}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.partition(".")[0] in FORBIDDEN)
        elif isinstance(node, ast.ImportFrom) and node.module:
            top = node.module.partition(".")[0]
            if top in FORBIDDEN or top in WRITERS:
                yield from (a.name for a in node.names if a.name not in WRITERS.get(top, ()))
        elif isinstance(node, ast.Attribute):
            yield from _of_attribute(node, module, is_typed=id(node) in typed)
        elif isinstance(node, ast.Call) and _name(node.func) in ("eval", "exec", "__import__"):
            yield _name(node.func)
        elif isinstance(node, ast.Call) and _name(node.func) == "msgspec.json.Decoder":
            yield from () if node.args or node.keywords else ("a decoder without a type",)


def _of_attribute(node: ast.Attribute, module: str, *, is_typed: bool) -> Iterator[str]:
    name = _name(node)
    top, _, rest = name.partition(".")
    if top in WRITERS and rest not in WRITERS[top] and not rest.startswith("SafeDumper."):
        yield name
    elif name == "msgspec.json.decode":
        if not is_typed and module not in OWN_BYTES:
            yield f"{name} without a type"
    elif name.startswith(("msgspec.yaml.", "msgspec.toml.")) and rest.endswith("decode"):
        yield name


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
