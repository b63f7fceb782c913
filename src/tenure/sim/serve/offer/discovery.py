"""Discovery: which groups, versions and resources there are.

Told in two ways, as a client prefers: all at once (aggregated, what kubectl reads first),
or list by list (what ``kubectl drain`` reads to find out that evictions exist).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from tenure.sim.serve.offer.catalogue import Served, Subresource

Json = dict[str, Any]
_encode = msgspec.json.encode

#: What the embedded store is held to by the contract suite.
VERSION: Final = "v1.36.3"
#: Group → version → what is served in it.
Groups = dict[str, dict[str, list[Served]]]


def version() -> Json:
    major, minor, _ = VERSION.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{VERSION}+tenure",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }


class Discovery:
    """What these kinds are told to be."""

    def __init__(self, served: Iterable[Served]) -> None:
        self._groups: Groups = {}
        for one in served:
            versions = self._groups.setdefault(one.resource.group, {})
            versions.setdefault(one.resource.version, []).append(one)
        #: Path → what lies there, list by list.
        self.documents = self._documents()
        self._aggregated: dict[tuple[str, str], bytes] = {}

    def _documents(self) -> dict[str, bytes]:
        found = {"/version": _encode(version())}
        found["/api"] = _encode(
            {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        )
        groups = [_group(name, versions) for name, versions in self._groups.items() if name]
        found["/apis"] = _encode({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        for name, versions in self._groups.items():
            if name:
                group = {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}
                found[f"/apis/{name}"] = _encode(group)
            for served in versions.values():
                found[served[0].resource.prefix] = _encode(_resource_list(served))
        paths = sorted([*found, "/healthz", "/livez", "/openapi/v3", "/readyz"])
        found["/"] = _encode({"paths": paths})
        return found

    def aggregated(self, path: str, version: str) -> bytes:
        """``/api`` or ``/apis`` with everything below it in one document."""
        if (path, version) not in self._aggregated:
            wanted = path == "/apis"
            found = {name: of for name, of in self._groups.items() if bool(name) == wanted}
            document = {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": f"apidiscovery.k8s.io/{version}",
                "metadata": {},
                "items": [_group_discovery(name, versions) for name, versions in found.items()],
            }
            self._aggregated[path, version] = _encode(document)
        return self._aggregated[path, version]


def _group(name: str, served: Iterable[str]) -> Json:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in served]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(served: list[Served]) -> Json:
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": served[0].resource.api_version,
        "resources": [entry for one in served for entry in _resources(one)],
    }


def _resources(served: Served) -> Iterator[Json]:
    resource = served.resource
    entry: Json = {
        "name": resource.plural,
        "singularName": served.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": served.verbs,
    }
    yield {**entry, **_also_called(served)}
    for sub in served.subresources:
        elsewhere = {} if sub.group is None else {"group": sub.group, "version": sub.version}
        yield {
            "name": f"{resource.plural}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            **elsewhere,
            "kind": sub.kind,
            "verbs": sub.verbs,
        }


def _also_called(served: Served) -> Json:
    names = {"shortNames": served.short_names, "categories": served.categories}
    return {key: value for key, value in names.items() if value}


def _group_discovery(name: str, in_group: dict[str, list[Served]]) -> Json:
    versions = [
        {
            "version": version,
            "resources": [_resource_discovery(one) for one in served],
            "freshness": "Current",
        }
        for version, served in in_group.items()
    ]
    return {"metadata": {"name": name} if name else {}, "versions": versions}


def _resource_discovery(served: Served) -> Json:
    resource = served.resource
    found: Json = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": served.singular,
        "verbs": served.verbs,
        **_also_called(served),
    }
    if served.subresources:
        found["subresources"] = [_subresource(served, sub) for sub in served.subresources]
    return found


def _subresource(served: Served, sub: Subresource) -> Json:
    parent = served.resource
    group, version = parent.group, parent.version
    if sub.group is not None:
        group, version = sub.group, sub.version
    return {
        "subresource": sub.name,
        "responseKind": _kind(group, version, sub.kind),
        "verbs": sub.verbs,
    }


def _kind(group: str, version: str, kind: str) -> Json:
    return {"group": group, "version": version, "kind": kind}
