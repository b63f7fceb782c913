"""A Node with its claim beside Karpenter 1.15, and what stands on it."""

from __future__ import annotations

from typing import Any, Final

from tenure.core.beside.kinds import DISRUPTION, LeverKind
from tenure.core.beside.levers import LeverDecider
from tenure.core.decision import Verdict
from tenure.core.policy.deciders import decide_all
from tenure.model.api import names
from tenure.model.api.deployment import (
    Deployment,
    DeploymentContainer,
    DeploymentPodSpec,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentTemplate,
    EnvVar,
)
from tenure.model.api.meta import ApiObject
from tenure.model.api.node import Node
from tenure.model.settings import Settings
from tests.core.build import NOW, a_node, meta
from tests.snapshots import snapshot_with

SETTINGS: Final = Settings(beside_karpenter=True, karpenter_version="1.15")
IMAGE: Final = "public.ecr.aws/karpenter/controller:1.15.0@sha256:0123"
TRUE: Final = {names.DO_NOT_DISRUPT: "true"}


def marks(
    because: str = "MaintenanceWindow freeze",
    until: str = "unknown",
    kind: LeverKind = DISRUPTION,
) -> dict[str, str]:
    return {kind.by: "tenure", kind.because: because, kind.until: until}


def node_with(annotations: dict[str, str], **fields: Any) -> Node:
    return a_node(annotations=annotations, **fields)


def verdict_on(
    *objects: ApiObject,
    now: Any = NOW,
    settings: Settings = SETTINGS,
    kind: LeverKind = DISRUPTION,
    **more: Any,
) -> Verdict:
    """On the only Node among them."""
    snapshot = snapshot_with(*objects, **more)
    (verdict,) = decide_all(LeverDecider(settings, kind), snapshot, settings, now)
    return verdict


def annotations_of(verdict: Verdict) -> dict[str, str | None]:
    """What the verdict's patch writes."""
    body: Any = getattr(verdict.action, "body")  # noqa: B009  # a patch has one
    written: dict[str, str | None] = body["metadata"]["annotations"]
    return written


def karpenter(
    name: str = "karpenter",
    *,
    image: str = IMAGE,
    labels: dict[str, str] | None = None,
    namespace: str = "kube-system",
    replicas: int = 1,
    ready: int | None = None,
    old: int = 0,
    **container: Any,
) -> Deployment:
    own = {"app.kubernetes.io/name": "karpenter", **(labels or {})}
    env = tuple(EnvVar(name=key, value=value) for key, value in container.pop("env", {}).items())
    ready = replicas if ready is None else ready
    status = DeploymentStatus(
        observed_generation=1,
        replicas=replicas + old,
        updated_replicas=replicas,
        ready_replicas=ready,
    )
    runs = DeploymentContainer(name="controller", image=image, env=env, **container)
    pod = DeploymentPodSpec(containers=(runs,))
    return Deployment(
        metadata=meta(name, namespace=namespace, labels=own),
        spec=DeploymentSpec(template=DeploymentTemplate(spec=pod), replicas=replicas),
        status=status,
    )
