"""Surroundings for a provider whose instances are outside of the cluster.

It reads its node classes there, and nothing else: so nothing else is there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from tenure.errors import NotFound
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import Resource
from tenure.ports.provider import Api, Surroundings


class ClassesOnly:
    """Implements ``ports.provider.Api`` with node classes of one kind: name → spec."""

    def __init__(self, resource: Resource, specs: Mapping[str, Mapping[str, Any]]) -> None:
        self._resource = resource
        self._stored = {
            name: msgspec.json.encode(
                {
                    "apiVersion": resource.api_version,
                    "kind": resource.kind,
                    "metadata": {"name": name, "uid": f"uid-of-{name}", "generation": 1},
                    "spec": spec,
                }
            )
            for name, spec in specs.items()
        }

    def read(self, name: str) -> NodeClass:
        """As Tenure hands it to ``instance_types``."""
        return msgspec.json.decode(self._stored[name], type=NodeClass)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> bytes:
        if resource != self._resource or name not in self._stored:
            raise NotFound(f'{resource} "{name}" not found')
        return self._stored[name]

    async def list_all(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> tuple[list[msgspec.Raw], str]:
        stored = self._stored.values() if resource == self._resource else ()
        return [msgspec.Raw(each) for each in stored], "1"

    async def create(
        self, resource: Resource, body: Mapping[str, Any], namespace: str = ""
    ) -> bytes:
        raise AssertionError(f"a bench of classes only takes no {resource}")

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any],
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> bytes:
        raise AssertionError(f"a bench of classes only changes no {resource}")

    async def delete(
        self, resource: Resource, name: str, *, uid: str, namespace: str = ""
    ) -> bytes:
        raise AssertionError(f"a bench of classes only deletes no {resource}")


def outside(cluster: str, api: Api, **options: str) -> Surroundings:
    """What ``open`` is given; options are written with ``_`` for ``-``."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return Surroundings(api=api, clock=_WallClock(), cluster=cluster, options=named)


class _WallClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
