"""YAML files as plain values that remember on which line each of them stood.

Read as Kubernetes reads them: a time stamp is text, a key is text, and a key that is
there twice is a mistake. A broken file is one error with its line and column.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tenure.errors import SpecError

#: Far beyond any scenario; keeps aliases of aliases of aliases from filling the memory.
_VALUES_MAX: Final = 500_000
_DEPTH_MAX: Final = 100

_SafeLoader: Final[type[yaml.SafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc, valid-type]  # the C one if it is there
    """Without time stamps, which are text in Kubernetes."""

    yaml_implicit_resolvers: Final = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class Document:
    """One YAML document: its value, and where everything in it stands."""

    def __init__(self, file: str, value: Any, lines: dict[str, int]) -> None:
        self.file = file
        self.value = value
        self._lines = lines

    def place(self, at: str) -> str:
        """``file:line: field``, with the line of the nearest thing that is there."""
        path = at
        while path and path not in self._lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return f"{self.file}:{self._lines.get(path, 1)}: {at}".removesuffix(": ")


def read_documents(path: Path, *, shown_as: str = "") -> list[Document]:
    """Every document of a file; empty ones are left out."""
    file = shown_as or str(path)
    return documents_in(_text(path, file), file)


def documents_in(text: str, file: str) -> list[Document]:
    """Every document of a text; ``file`` is what to call it."""
    return [
        _document(file, loader, node)
        for loader, node in _composed(file, text)
        if node is not None and node.tag != "tag:yaml.org,2002:null"
    ]


def _text(path: Path, file: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        hint = "See examples/scenarios/ for some that do."
        raise SpecError("file", file, "a file that exists", hint) from None
    except UnicodeDecodeError as error:
        found = f"byte {error.object[error.start]:#x} at {error.start}"
        raise SpecError(file, found, "text in UTF-8", "Save it as UTF-8.") from None
    except OSError as error:
        raise SpecError(
            "file", file, "a file that can be read", f"{error.strerror}: look at its path."
        ) from None


def _composed(file: str, text: str) -> Iterator[tuple[Any, Any]]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            yield loader, loader.get_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        lines = text.splitlines()
        shown = lines[line].strip() if line < len(lines) else "the end of the file"
        at = f"{file}:{line + 1}:{column + 1}"
        hint = f"{_sentence(error.problem)} Check indentation, quotes and colons, as in key: value."
        raise SpecError(at, shown, "YAML", hint) from None
    except yaml.YAMLError as error:
        first = str(error).splitlines()[0]
        raise SpecError(f"{file}:1", first, "YAML", "Save it as plain text.") from None
    finally:
        loader.dispose()


def _sentence(problem: str | None) -> str:
    text = (problem or "it cannot be read").strip()
    return f"{text[0].upper()}{text[1:]}."


def _document(file: str, loader: Any, node: Any) -> Document:
    builder = _Builder(file, loader)
    value = builder.build(node, "", 0)
    return Document(file, value, builder.lines)


class _Builder:
    def __init__(self, file: str, loader: Any) -> None:
        self._file = file
        self._loader = loader
        self._count = 0
        self.lines: dict[str, int] = {}

    def build(self, node: Any, at: str, depth: int) -> Any:
        self._count += 1
        line = node.start_mark.line + 1
        if depth > _DEPTH_MAX or self._count > _VALUES_MAX:
            hint = "Look for an alias (*name) inside its own anchor (&name)."
            got = f"more than {_VALUES_MAX} values or {_DEPTH_MAX} levels"
            raise SpecError(f"{self._file}:{line}", got, "a smaller document", hint)
        self.lines.setdefault(at, line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at, depth)
        if isinstance(node, yaml.SequenceNode):
            items = enumerate(node.value)
            return [self.build(item, f"{at}[{index}]", depth + 1) for index, item in items]
        return self._scalar(node, at)

    def _mapping(self, node: Any, at: str, depth: int) -> dict[str, Any]:
        self._check_keys(node, at)
        try:
            self._loader.flatten_mapping(node)  # Merge keys: what they bring comes first.
        except yaml.YAMLError:
            place = f"{self._file}:{node.start_mark.line + 1}: {_join(at, '<<')}"
            hint = "For example <<: *defaults."
            raise SpecError(place, "something else", "an alias of fields", hint) from None
        value: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = str(key_node.value)
            path = _join(at, key)
            self.lines[path] = line
            value[key] = self.build(value_node, path, depth + 1)
        return value

    def _check_keys(self, node: Any, at: str) -> None:
        seen: set[str] = set()
        for key_node, _ in node.value:
            place = f"{self._file}:{key_node.start_mark.line + 1}"
            if not isinstance(key_node, yaml.ScalarNode):
                raise SpecError(place, "a list or map", "text as a key", "For example key: value.")
            key = str(key_node.value)
            if key in seen:
                hint = "Leave one of the two out."
                raise SpecError(f"{place}: {_join(at, key)}", key, "each key once", hint)
            seen.add(key)

    def _scalar(self, node: Any, at: str) -> Any:
        try:
            value = self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError):
            value = node
        if value is None or isinstance(value, str | int | float | bool):
            return value
        place = f"{self._file}:{node.start_mark.line + 1}: {at}"
        raise SpecError(place, str(node.value), "a plain value", "Put it in quotes, without a tag.")


def _join(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key
