"""The four CustomResourceDefinitions, generated from the model and the rules.

``generate()`` gives them as objects, ``dump()`` as YAML for ``kubectl apply -f -``,
``files()`` as the files that the chart ships. Columns, scale and short names are the
peer's, so that its users find what they know.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodeclass import KWOKNodeClass
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import (
    KWOK_NODE_CLASSES,
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOLS,
    Resource,
)
from tenure.model.api.window import MaintenanceWindow
from tenure.schema.structure.rules import RULES, Rule
from tenure.schema.structure.structural import Schema, structural_schema


class Column(msgspec.Struct, frozen=True, gc=False):
    """What ``kubectl get`` shows; ``wide`` ones only with ``-o wide``."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False


class CustomKind(msgspec.Struct, frozen=True):
    """Everything a CRD says beside its schema."""

    resource: Resource
    model: type[ApiObject]
    columns: tuple[Column, ...]
    short_names: tuple[str, ...] = ()
    scale: bool = False


def _condition(type_: str) -> str:
    return f'.status.conditions[?(@.type=="{type_}")].status'


def _label(key: str) -> str:
    return f".metadata.labels.{key.replace('.', chr(92) + '.')}"


_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")

CUSTOM_KINDS: Final = (
    CustomKind(
        NODE_POOLS,
        NodePool,
        (
            Column("NodeClass", ".spec.template.spec.nodeClassRef.name"),
            Column("Nodes", ".status.nodes"),
            Column("Ready", _condition("Ready")),
            _AGE,
            Column("Weight", ".spec.weight", "integer", wide=True),
            Column("CPU", ".status.resources.cpu", wide=True),
            Column("Memory", ".status.resources.memory", wide=True),
        ),
        scale=True,
    ),
    CustomKind(
        NODE_CLAIMS,
        NodeClaim,
        (
            Column("Type", _label("node.kubernetes.io/instance-type")),
            Column("Capacity", _label("karpenter.sh/capacity-type")),
            Column("Zone", _label("topology.kubernetes.io/zone")),
            Column("Node", ".status.nodeName"),
            Column("Ready", _condition("Ready")),
            _AGE,
            Column("ImageID", ".status.imageID", wide=True),
            Column("ID", ".status.providerID", wide=True),
            Column("NodePool", _label("karpenter.sh/nodepool"), wide=True),
            Column("NodeClass", ".spec.nodeClassRef.name", wide=True),
            Column("Drifted", _condition("Drifted"), wide=True),
        ),
    ),
    CustomKind(
        MAINTENANCE_WINDOWS,
        MaintenanceWindow,
        (
            Column("Type", ".spec.type"),
            Column("Valid", _condition("Valid")),
            Column("Active", _condition("Active")),
            Column("Nodes", ".status.nodesMatched", "integer"),
            Column("Next-Change", ".status.nextChange"),
            _AGE,
            Column("Actions", ".spec.actions", wide=True),
        ),
        short_names=("mw",),
    ),
    CustomKind(
        KWOK_NODE_CLASSES,
        KWOKNodeClass,
        (
            Column("Ready", _condition("Ready")),
            _AGE,
            Column("Image", ".spec.image", wide=True),
            Column("Delay", ".spec.nodeRegistrationDelay", wide=True),
        ),
        short_names=("kwoknc", "kwokncs"),
    ),
)


def schema_of(kind: CustomKind) -> Schema:
    """The structural schema with the rules put in their places."""
    schema = structural_schema(kind.model)
    for path, rules in RULES[kind.resource.kind].items():
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


def generate() -> list[dict[str, Any]]:
    return [_definition(kind) for kind in CUSTOM_KINDS]


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
    """Writes repeated values out instead of as anchors, which people do not read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(definition: Mapping[str, Any]) -> str:
    return yaml.dump(definition, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=100)


def dump() -> str:
    """All four as one YAML stream."""
    return "---\n" + "---\n".join(_yaml(definition) for definition in generate())


def files() -> dict[str, str]:
    """File name → text, one file per kind."""
    header = "# Generated from the types in tenure.model; change those, then `make generate`.\n"
    return {
        f"{d['spec']['group']}_{d['spec']['names']['plural']}.yaml": header + _yaml(d)
        for d in generate()
    }


def write(folder: Path) -> list[Path]:
    """Write the files into a folder; gives back their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in files()]
