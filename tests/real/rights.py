"""What Tenure's account may do, by the manifests, and what it did, by the API server's audit log."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from testbed.controlplane import ControlPlane
from tests.real.account import USER

Json = dict[str, Any]


class Right(NamedTuple):
    """One verb on one resource, where and on what it is allowed."""

    verb: str
    #: With its group behind it and its subresource, as ``kubectl auth can-i`` takes it.
    resource: str
    #: Empty: in all of them, and where there is none.
    namespace: str = ""
    #: Empty: all of them.
    name: str = ""

    def __str__(self) -> str:
        words = [self.verb, self.resource, self.name]
        words += [f"in {self.namespace}"] if self.namespace else []
        return " ".join(filter(None, words))


class Ask(NamedTuple):
    """A request of the account, and whether RBAC let it pass."""

    verb: str
    resource: str
    namespace: str
    name: str
    allowed: bool

    def uses(self, right: Right) -> bool:
        return (
            (right.verb, right.resource) == (self.verb, self.resource)
            and right.namespace in ("", self.namespace)
            and right.name in ("", self.name)
        )


def granted(manifests: Iterable[Json]) -> list[Right]:
    """By every Role and ClusterRole among them."""
    roles = [m for m in manifests if m["kind"] in ("Role", "ClusterRole")]
    return sorted(right for role in roles for rule in role["rules"] for right in _of(role, rule))


def _of(role: Json, rule: Json) -> Iterator[Right]:
    namespace = role["metadata"].get("namespace", "")
    names = rule.get("resourceNames") or [""]
    for group, resource, verb, name in itertools.product(
        rule["apiGroups"], rule["resources"], rule["verbs"], names
    ):
        yield Right(verb, _resource(group, *resource.split("/")), namespace, name)


def _resource(group: str, plural: str, subresource: str = "") -> str:
    return "/".join(filter(None, [".".join(filter(None, [plural, group])), subresource]))


def asked(plane: ControlPlane) -> Iterator[Ask]:
    """Everything that the account has asked the API server for, pages without objects left out."""
    if not plane.audit_log.exists():
        return
    with plane.audit_log.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            what = event.get("objectRef")
            if event["user"]["username"] == USER and what:
                yield Ask(
                    event["verb"],
                    _resource(
                        what.get("apiGroup", ""), what["resource"], what.get("subresource", "")
                    ),
                    what.get("namespace", ""),
                    what.get("name", ""),
                    event["annotations"]["authorization.k8s.io/decision"] == "allow",
                )
