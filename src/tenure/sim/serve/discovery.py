"""Discovery: which groups, versions and resources there are.

Told in two ways, as a client prefers: all at once (aggregated, what kubectl reads first),
or list by list (what ``kubectl drain`` reads to find out that evictions exist).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import msgspec

from tenure.sim.serve.catalogue import SERVED, Served, Subresource

Json = dict[str, Any]
_encode = msgspec.json.encode

#: What the embedded store is held to by the contract suite.
VERSION: Final = "v1.36.3"
_SERVED_BY_GROUP: Final[dict[str, dict[str, list[Served]]]] = {}
for _one in SERVED:
    _versions = _SERVED_BY_GROUP.setdefault(_one.resource.group, {})
    _versions.setdefault(_one.resource.version, []).append(_one)


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


def documents() -> dict[str, bytes]:
    """Path → what lies there, list by list."""
    found = {"/version": _encode(version())}
    found["/api"] = _encode(
        {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    )
    groups = [_group(name) for name in _SERVED_BY_GROUP if name]
    found["/apis"] = _encode({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    for name, versions in _SERVED_BY_GROUP.items():
        if name:
            group = {"kind": "APIGroup", "apiVersion": "v1", **_group(name)}
            found[f"/apis/{name}"] = _encode(group)
        for served in versions.values():
            found[served[0].resource.prefix] = _encode(_resource_list(served))
    paths = sorted([*found, "/healthz", "/livez", "/openapi/v3", "/readyz"])
    found["/"] = _encode({"paths": paths})
    return found


@cache
def aggregated(path: str, version: str) -> bytes:
    """``/api`` or ``/apis`` with everything below it in one document."""
    names = [name for name in _SERVED_BY_GROUP if bool(name) == (path == "/apis")]
    return _encode(
        {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{version}",
            "metadata": {},
            "items": [_group_discovery(name) for name in names],
        }
    )


def _group(name: str) -> Json:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in _SERVED_BY_GROUP[name]
    ]
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


def _group_discovery(name: str) -> Json:
    versions = [
        {
            "version": version,
            "resources": [_resource_discovery(one) for one in served],
            "freshness": "Current",
        }
        for version, served in _SERVED_BY_GROUP[name].items()
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
