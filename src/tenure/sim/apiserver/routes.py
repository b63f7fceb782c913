"""From a request path to the resource, object and subresource it means."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects.kinds import ALL

_RESOURCES: Final = {(resource.prefix, resource.plural): resource for resource in ALL}
_PREFIXES: Final = frozenset(resource.prefix for resource in ALL)
#: Subresources of a namespace; any other word after its name is a collection in it.
_OF_NAMESPACE: Final = ("status", "finalize")


class Route(NamedTuple):
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def known_prefix(path: str) -> bool:
    """Whether the path lies in a group and version that is served at all."""
    return "/".join(path.split("/")[: 3 if path.startswith("/api/") else 4]) in _PREFIXES


@lru_cache(maxsize=8192)
def route(path: str) -> Route | None:
    """What the path means; None when nothing of the kind is served."""
    parts = path.split("/")
    size = 3 if parts[1:2] == ["api"] else 4
    prefix, rest = "/".join(parts[:size]), parts[size:]
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and rest[2] not in _OF_NAMESPACE:
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3 or "" in rest:
        return None
    resource = _RESOURCES.get((prefix, rest[0]))
    if resource is None or (namespace and not resource.namespaced):
        return None
    if resource.namespaced and len(rest) > 1 and not namespace:
        return None
    return Route(resource, namespace, *rest[1:])
