"""What is installed of a controller: its Deployment, as far as it says which release runs, with which
options and whether it is ready, and its CustomResourceDefinitions, as far as they say what is served and stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tenure.model.api.meta import ApiObject, Wire


class EnvVar(Wire, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""
    #: Not None: the value is in another object, which is not read.
    value_from: Mapping[str, Any] | None = None


class DeploymentContainer(Wire, frozen=True, kw_only=True):
    name: str = ""
    image: str = ""
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()


class DeploymentPodSpec(Wire, frozen=True, kw_only=True):
    containers: tuple[DeploymentContainer, ...] = ()


class DeploymentTemplate(Wire, frozen=True, kw_only=True):
    spec: DeploymentPodSpec = DeploymentPodSpec()


class DeploymentSpec(Wire, frozen=True, kw_only=True):
    template: DeploymentTemplate = DeploymentTemplate()
    #: Wanted; the API server writes 1 where nothing is written.
    replicas: int = 1


class DeploymentStatus(Wire, frozen=True, kw_only=True):
    #: Of the spec that the numbers are about.
    observed_generation: int = 0
    #: Pods of every template.
    replicas: int = 0
    #: Pods of the newest template.
    updated_replicas: int = 0
    ready_replicas: int = 0


class Deployment(ApiObject, frozen=True, kw_only=True):
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class Schema(Wire, frozen=True, kw_only=True):
    properties: Mapping[str, Schema] = {}

    def has(self, *path: str) -> bool:
        """Whether there is a field at that path."""
        if not path:
            return True
        found = self.properties.get(path[0])
        return found is not None and found.has(*path[1:])


class CrdValidation(Wire, frozen=True, kw_only=True):
    schema: Schema = msgspec.field(default=Schema(), name="openAPIV3Schema")


class CrdVersion(Wire, frozen=True, kw_only=True):
    name: str = ""
    served: bool = False
    validation: CrdValidation = msgspec.field(default=CrdValidation(), name="schema")


class CrdSpec(Wire, frozen=True, kw_only=True):
    versions: tuple[CrdVersion, ...] = ()


class CustomResourceDefinition(ApiObject, frozen=True, kw_only=True):
    spec: CrdSpec = CrdSpec()
