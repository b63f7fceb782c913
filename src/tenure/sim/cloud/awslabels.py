"""The labels that Karpenter on AWS gives to an instance type, as far as its name and size say them."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from tenure.model.api.names import ARCH
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirement import Requirement
from tenure.model.values.quantity import UNIT

#: ``m7i.large``, ``u-12tb1.112xlarge``: category, generation and size are in the name.
_NAME: Final = re.compile(
    r"(?P<category>[a-z]+)(-\d+tb)?(?P<generation>\d+)(?P<also>[^.]*)\.(?P<size>.+)"
)
AWS_GROUPS: Final = ("karpenter.k8s.aws", "eks.amazonaws.com")
_GPU: Final = "nvidia.com/gpu"
#: Families whose names do not say that their processors are of AMD.
_AMD: Final = frozenset({"g5", "g6", "g6e", "gr6", "inf2", "p5"})
_MIB: Final = 2**20


def aws_labels(kind: InstanceType, cpu: int) -> dict[str, str]:
    """Nothing for a type whose name is none of AWS."""
    match = _NAME.fullmatch(kind.name)
    if match is None:
        return {}
    family = kind.name.partition(".")[0]
    said = {
        "category": match["category"],
        "family": family,
        "generation": match["generation"],
        "size": match["size"],
        "cpu": str(cpu),
        "cpu-manufacturer": _manufacturer(kind, family, match["also"]),
        "memory": str(kind.capacity["memory"] // UNIT // _MIB),
    }
    return {
        f"{group}/instance-{name}": value for group in AWS_GROUPS for name, value in said.items()
    }


def with_aws_labels(kind: InstanceType) -> InstanceType:
    """A type of the catalogue as NodePools for AWS ask for it."""
    labels = aws_labels(kind, kind.capacity["cpu"] // UNIT)
    if labels and (gpus := kind.capacity.get(_GPU)):
        said = {"gpu-count": str(gpus // UNIT), "gpu-manufacturer": "nvidia"}
        labels |= {
            f"{group}/instance-{name}": value
            for group in AWS_GROUPS
            for name, value in said.items()
        }
    known = (Requirement.of(key, "In", (value,)) for key, value in labels.items())
    return msgspec.structs.replace(kind, requirements=kind.requirements.add(*known))


def _manufacturer(kind: InstanceType, family: str, also: str) -> str:
    if kind.requirements.labels().get(ARCH) == "arm64":
        return "aws"
    return "amd" if "a" in also or family in _AMD else "intel"
