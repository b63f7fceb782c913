"""The labels of AWS on the embedded catalogue: every type's agree with its name and its size."""

from __future__ import annotations

import re

import pytest

from tenure.model.api.names import ARCH
from tenure.model.values.quantity import parse_quantity
from tenure.sim.cloud.awslabels import aws_labels
from tenure.sim.cloud.catalogue import instance_types, price_list

SHAPES = {shape.name: shape for shape in price_list()}
TYPES = {kind.name: kind for kind in instance_types(price_list(), seed=0)}
GROUPS = ("karpenter.k8s.aws", "eks.amazonaws.com")


def labels(name: str, group: str = GROUPS[0]) -> dict[str, str]:
    found = aws_labels(TYPES[name], SHAPES[name].cpu)
    start = f"{group}/instance-"
    return {key.removeprefix(start): value for key, value in found.items() if key.startswith(start)}


@pytest.mark.parametrize(
    ("name", "category", "generation", "manufacturer"),
    [
        ("t4g.small", "t", "4", "aws"),
        ("t3a.small", "t", "3", "amd"),
        ("a1.large", "a", "1", "aws"),
        ("c7i-flex.large", "c", "7", "intel"),
        ("m7a.large", "m", "7", "amd"),
        ("g5.xlarge", "g", "5", "amd"),
        ("g5g.xlarge", "g", "5", "aws"),
        ("g4dn.xlarge", "g", "4", "intel"),
        ("im4gn.large", "im", "4", "aws"),
        ("inf2.xlarge", "inf", "2", "amd"),
        ("p4d.24xlarge", "p", "4", "intel"),
        ("u-12tb1.112xlarge", "u", "1", "intel"),
        ("u7i-12tb.224xlarge", "u", "7", "intel"),
        ("x2gd.large", "x", "2", "aws"),
    ],
)
def test_labels_of_types_that_people_know(
    name: str, category: str, generation: str, manufacturer: str
) -> None:
    said = labels(name)
    assert (said["category"], said["generation"]) == (category, generation)
    assert said["cpu-manufacturer"] == manufacturer


def test_every_type_has_labels_that_agree_with_its_name_and_size() -> None:
    assert len(TYPES) > 800
    for name, kind in TYPES.items():
        said, (family, _, size) = labels(name), name.partition(".")
        assert said == labels(name, GROUPS[1]), name
        assert (said["family"], said["size"]) == (family, size), name
        assert re.match(r"[a-z]+", name)[0] == said["category"], name  # type: ignore[index]
        assert said["generation"] in re.findall(r"\d+", re.sub(r"-\d+tb(?!\d)", "", family)), name
        assert int(said["cpu"]) * 10**9 == kind.capacity["cpu"], name
        assert parse_quantity(f"{said['memory']}Mi") == kind.capacity["memory"], name


def test_arm_is_made_by_aws_and_nothing_else_is() -> None:
    for name, kind in TYPES.items():
        arm = kind.requirements.labels()[ARCH] == "arm64"
        assert (labels(name)["cpu-manufacturer"] == "aws") == arm, name
        # Graviton: a g behind the generation. The first one was called a1.
        named = bool(re.match(r"[a-z]+\d+[a-z]*g", name.partition(".")[0])) or name.startswith(
            "a1."
        )
        assert named == arm, name
