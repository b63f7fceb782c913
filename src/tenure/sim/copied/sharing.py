"""Parts of objects that are equal are held once, and have no nulls: most pods of a cluster are copies of a few templates.

Objects of the store are immutable by agreement, so that they may share what they are made of.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tenure.sim.apiserver.objects.tree import Obj, without_nulls

#: The parts that are looked for, below spec, status and metadata.
_PARTS: Final = ("spec", "status", "metadata")

_encode = msgspec.json.encode


class Sharing:
    def __init__(self) -> None:
        self._known: dict[bytes, Any] = {}
        self._names: dict[str, str] = {}

    def shared(self, obj: Obj) -> Obj:
        return {
            key: self._parts(value) if key in _PARTS else self._one(value)
            for key, value in obj.items()
        }

    def _parts(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {self._name(key): self._one(part) for key, part in value.items()}

    def _one(self, value: Any) -> Any:
        if not isinstance(value, dict | list):
            return self._name(value) if isinstance(value, str) else value
        encoded = _encode(value)
        found = self._known.get(encoded)
        if found is None:
            # As the API server decodes it; a search of the bytes is much cheaper than one of the tree.
            found = without_nulls(value) if b"null" in encoded else value
            self._known[encoded] = found
        return found

    def _name(self, text: str) -> str:
        return self._names.setdefault(text, text)
