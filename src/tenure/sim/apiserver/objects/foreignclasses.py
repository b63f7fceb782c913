"""Node classes of clouds that Tenure has no provider for, so that clusters which use them can be copied.

The embedded cloud launches instances in their place. What their specs say is their cloud's: it is stored as it
comes and never read. The kinds are those of the public providers for Karpenter, each in the version that
they serve today.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from tenure.model.api import fields
from tenure.model.api.fields import described
from tenure.model.api.meta import ApiObject, Condition, Wire
from tenure.model.api.resource import Resource
from tenure.schema.structure.crd import AGE, Column, CustomKind, condition_path


class ForeignNodeClassStatus(Wire, frozen=True, kw_only=True):
    conditions: Annotated[
        tuple[Condition, ...],
        described("Whether instances can be made from the class.", **fields.CONDITIONS),
    ] = ()


class ForeignNodeClass(ApiObject, frozen=True, kw_only=True):
    """How another cloud makes its nodes; the embedded cloud stands in for it."""

    spec: Annotated[
        Mapping[str, Any],
        described("As its cloud has it; nothing here reads it."),
    ] = {}
    status: Annotated[ForeignNodeClassStatus, described("Whether the class can be used.")] = (
        ForeignNodeClassStatus()
    )


def _kind(group: str, version: str, kind: str, short: str, plural: str = "") -> CustomKind:
    resource = Resource(group, version, kind, plural or f"{kind.lower()}es", False)
    columns = (Column("Ready", condition_path("Ready")), AGE)
    return CustomKind(resource, ForeignNodeClass, columns, short_names=(short,))


FOREIGN_KINDS: Final = (
    _kind("karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nc"),
    _kind("eks.amazonaws.com", "v1", "NodeClass", "eksnc"),
    _kind("karpenter.azure.com", "v1beta1", "AKSNodeClass", "aksnc"),
    _kind("karpenter.k8s.gcp", "v1alpha1", "GCENodeClass", "gcenc"),
    _kind("karpenter.k8s.alibabacloud", "v1alpha1", "ECSNodeClass", "ecsnc"),
    _kind("oci.oraclecloud.com", "v1beta1", "OCINodeClass", "ocinc"),
    _kind("karpenter.cluster.x-k8s.io", "v1alpha1", "ClusterAPINodeClass", "capinc"),
    _kind("karpenter.proxmox.sinextra.dev", "v1alpha1", "ProxmoxNodeClass", "pxnc"),
    _kind("karpenter-ibm.sh", "v1alpha1", "IBMNodeClass", "ibmnc"),
)
FOREIGN_NODE_CLASSES: Final = tuple(kind.resource for kind in FOREIGN_KINDS)
