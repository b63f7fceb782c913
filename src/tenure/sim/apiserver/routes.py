"""From a request path to the resource, object and subresource it means."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects.kinds import ALL
from tenure.sim.apiserver.store.store import Store

_RESOURCES: Final = {(resource.prefix, resource.plural): resource for resource in ALL}
_PREFIXES: Final = frozenset(resource.prefix for resource in ALL)
#: Subresources of a namespace; any other word after its name is a collection in it.
_OF_NAMESPACE: Final = ("status", "finalize")


class Route(NamedTuple):
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Routes:
    """Finds what a path means: a kind that is built in, or one that clients have defined meanwhile."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version = 0
        self._defined: dict[tuple[str, str], Resource] = {}
        self._prefixes: frozenset[str] = frozenset()

    def route(self, path: str) -> Route | None:
        """None when nothing of the kind is served."""
        found = route(path)
        if found is None and self._store.served_version:
            self._look_again()
            return _placed(path, self._defined)
        return found

    def known_prefix(self, path: str) -> bool:
        """Whether the path lies in a group and version that is served at all."""
        self._look_again()
        prefix = "/".join(path.split("/")[: 3 if path.startswith("/api/") else 4])
        return prefix in _PREFIXES or prefix in self._prefixes

    def _look_again(self) -> None:
        if self._version != self._store.served_version:
            self._version = self._store.served_version
            served = [kind.resource for kind in self._store.defined]
            self._defined = {(one.prefix, one.plural): one for one in served}
            self._prefixes = frozenset(one.prefix for one in served)


@lru_cache(maxsize=8192)
def route(path: str) -> Route | None:
    """What the path means; None when nothing of the kind is built in."""
    return _placed(path, _RESOURCES)


def _placed(path: str, resources: Mapping[tuple[str, str], Resource]) -> Route | None:
    parts = path.split("/")
    size = 3 if parts[1:2] == ["api"] else 4
    prefix, rest = "/".join(parts[:size]), parts[size:]
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and rest[2] not in _OF_NAMESPACE:
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3 or "" in rest:
        return None
    resource = resources.get((prefix, rest[0]))
    if resource is None or (namespace and not resource.namespaced):
        return None
    if resource.namespaced and len(rest) > 1 and not namespace:
        return None
    return Route(resource, namespace, *rest[1:])
