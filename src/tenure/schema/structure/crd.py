"""CustomResourceDefinitions, generated from the model and the rules.

Tenure has four kinds of its own; a provider declares a ``CustomKind`` for each of its node
classes. ``generate()`` gives the definitions as objects, ``dump()`` as YAML for
``kubectl apply -f -``, ``files()`` as the files that the chart ships. Columns, scale and short
names are Karpenter's, so that its users find what they know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from tenure.errors import SpecError
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.nodepool import NodePool
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.resource import (
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOL_POLICIES,
    NODE_POOLS,
    Resource,
)
from tenure.model.api.window import MaintenanceWindow
from tenure.schema.structure.rules import RULES, Rule, RulesByPath
from tenure.schema.structure.structural import Schema, structural_schema


class Column(msgspec.Struct, frozen=True, gc=False):
    """What ``kubectl get`` shows; ``wide`` ones only with ``-o wide``."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False


class CustomKind(msgspec.Struct, frozen=True, eq=False):
    """A kind of ours or of a provider: everything that its CRD and its validation need."""

    resource: Resource
    #: Its fields with their descriptions, patterns, limits and defaults.
    model: type[ApiObject]
    columns: tuple[Column, ...]
    short_names: tuple[str, ...] = ()
    scale: bool = False
    #: CEL, by path.
    rules: RulesByPath = {}
    #: Of a provider's node class: what is wrong with one whose schema and rules hold.
    problems: Callable[[NodeClass], Iterable[SpecError]] | None = None
    #: Of a provider's node class: its part of the table in ``schema.fieldmarks``.
    marks: Mapping[type[Any], Mapping[str, Any]] = {}


def condition_path(type_: str) -> str:
    return f'.status.conditions[?(@.type=="{type_}")].status'


def _label(key: str) -> str:
    return f".metadata.labels.{key.replace('.', chr(92) + '.')}"


AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")

#: Tenure's own, whatever the provider.
CUSTOM_KINDS: Final = (
    CustomKind(
        NODE_POOLS,
        NodePool,
        (
            Column("NodeClass", ".spec.template.spec.nodeClassRef.name"),
            Column("Nodes", ".status.nodes"),
            Column("Ready", condition_path("Ready")),
            AGE,
            Column("Weight", ".spec.weight", "integer", wide=True),
            Column("CPU", ".status.resources.cpu", wide=True),
            Column("Memory", ".status.resources.memory", wide=True),
        ),
        scale=True,
        rules=RULES["NodePool"],
    ),
    CustomKind(
        NODE_CLAIMS,
        NodeClaim,
        (
            Column("Type", _label("node.kubernetes.io/instance-type")),
            Column("Capacity", _label("karpenter.sh/capacity-type")),
            Column("Zone", _label("topology.kubernetes.io/zone")),
            Column("Node", ".status.nodeName"),
            Column("Ready", condition_path("Ready")),
            AGE,
            Column("ImageID", ".status.imageID", wide=True),
            Column("ID", ".status.providerID", wide=True),
            Column("NodePool", _label("karpenter.sh/nodepool"), wide=True),
            Column("NodeClass", ".spec.nodeClassRef.name", wide=True),
            Column("Drifted", condition_path("Drifted"), wide=True),
        ),
        rules=RULES["NodeClaim"],
    ),
    CustomKind(
        MAINTENANCE_WINDOWS,
        MaintenanceWindow,
        (
            Column("Type", ".spec.type"),
            Column("Valid", condition_path("Valid")),
            Column("Active", condition_path("Active")),
            Column("Nodes", ".status.nodesMatched", "integer"),
            Column("Next-Change", ".status.nextChange"),
            AGE,
            Column("Actions", ".spec.actions", wide=True),
        ),
        short_names=("mw",),
        rules=RULES["MaintenanceWindow"],
    ),
    CustomKind(
        NODE_POOL_POLICIES,
        NodePoolPolicy,
        (
            Column("Valid", condition_path("Valid")),
            Column("Pools", ".status.nodePools", "integer"),
            AGE,
        ),
        short_names=("npp",),
        rules=RULES["NodePoolPolicy"],
    ),
)

#: Those that Karpenter does not have: all that is installed beside it.
BESIDE_KINDS: Final = tuple(
    kind for kind in CUSTOM_KINDS if kind.resource in (MAINTENANCE_WINDOWS, NODE_POOL_POLICIES)
)


def schema_of(kind: CustomKind) -> Schema:
    """The structural schema with the rules put in their places."""
    schema = structural_schema(kind.model)
    for path, rules in kind.rules.items():
        place = _place(schema, path)
        place["x-kubernetes-validations"] = [_rule(rule) for rule in rules]
    return schema


def _rule(rule: Rule) -> dict[str, str]:
    return {"rule": rule.rule, "message": rule.message}


def _place(schema: Schema, path: str) -> Schema:
    for part in path.split("."):
        schema = schema["properties"][part.removesuffix("[]")]
        if part.endswith("[]"):
            schema = schema["items"]
    return schema


def generate(kinds: Sequence[CustomKind]) -> list[dict[str, Any]]:
    return [_definition(kind) for kind in kinds]


def _definition(kind: CustomKind) -> dict[str, Any]:
    resource = kind.resource
    assert not resource.namespaced
    names: dict[str, Any] = {
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "categories": ["karpenter"],
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Cluster",
            "names": names,
            "versions": [_version(kind)],
        },
    }


def _version(kind: CustomKind) -> dict[str, Any]:
    subresources: dict[str, Any] = {"status": {}}
    if kind.scale:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.nodes",
        }
    return {
        "name": kind.resource.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
        "subresources": subresources,
        "schema": {"openAPIV3Schema": schema_of(kind)},
    }


def _column(column: Column) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return {**shown, "priority": 1} if column.wide else shown


class _Plain(yaml.SafeDumper):
    """Writes repeated values out instead of as anchors, which are hard to read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(definition: Mapping[str, Any]) -> str:
    return yaml.dump(definition, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=100)


def dump(kinds: Sequence[CustomKind]) -> str:
    """All of them as one YAML stream."""
    return "---\n" + "---\n".join(_yaml(definition) for definition in generate(kinds))


def files(kinds: Sequence[CustomKind]) -> dict[str, str]:
    """File name → text, one file per kind."""
    header = "# Generated from the types in tenure.model; change those, then `make generate`.\n"
    return {
        f"{d['spec']['group']}_{d['spec']['names']['plural']}.yaml": header + _yaml(d)
        for d in generate(kinds)
    }


def write(folder: Path, kinds: Sequence[CustomKind]) -> list[Path]:
    """Write the files into a folder; gives back their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = files(kinds)
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in written]
