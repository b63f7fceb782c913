"""The page on the KWOK provider tells the truth: its manifests are taken, its file is read."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from tenure.model.cloud.offering import MICRO_DOLLARS
from tenure.providers.kwok import labels
from tenure.providers.kwok.catalogue import CPUS, ZONES, built_in_types
from tenure.providers.kwok.cloud import KwokCloud
from tenure.providers.kwok.typesfile import parse_types
from tenure.sim.apiserver.objects.kinds import BY_KIND
from tests.folders import ROOT
from tests.providers.benches import StoreBench
from tests.providers.kwokcases import tell

PAGE = (ROOT / "docs" / "kwok.md").read_text()


def block(language: str) -> str:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)
    return str(text)


def test_its_manifests_are_taken() -> None:
    async def tale(bench: StoreBench, _cloud: KwokCloud) -> None:
        await bench.client.delete(*_default(), uid="")
        for manifest in yaml.safe_load_all(block("yaml")):
            resource = BY_KIND[manifest["apiVersion"], manifest["kind"]]
            stored = json.loads(await bench.client.create(resource, manifest))
            assert stored["spec"].items() >= manifest["spec"].items() or resource.kind == "NodePool"

    tell(tale)


def _default() -> tuple[Any, str]:
    return BY_KIND["karpenter.kwok.sh/v1alpha1", "KWOKNodeClass"], "default"


def test_its_file_is_read() -> None:
    (kind,) = parse_types(json.loads(block("json")), "types.json")
    assert (kind.name, kind.offerings[0].zone) == ("m5.large", "us-west-2a")


def test_it_names_every_label_and_every_figure() -> None:
    named = [labels.INSTANCE_SIZE, labels.INSTANCE_FAMILY, labels.INSTANCE_CPU]
    named += [labels.INSTANCE_MEMORY, labels.KWOK_NODE, labels.PARTITION, labels.PRICE]
    assert [label for label in named if f"`{label}`" not in PAGE] == []
    types = {kind.name: kind for kind in built_in_types()}
    assert f"{len(types)} types" in PAGE
    assert ", ".join(map(str, CPUS)) in PAGE
    assert f"`{ZONES[0]}` … `{ZONES[-1]}`" in PAGE
    price = types["c-4x-amd64-linux"].offerings[1].price / MICRO_DOLLARS
    assert f"`{price:.6f}` dollars" in PAGE
