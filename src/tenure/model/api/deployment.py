"""A Deployment, as far as it says which release of a controller runs, and with which options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


class Deployment(ApiObject, frozen=True, kw_only=True):
    spec: DeploymentSpec = DeploymentSpec()
