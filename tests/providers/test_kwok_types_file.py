"""Instance types of one's own: Karpenter's format is read, and a slip is named with its place."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.errors import SpecError
from tenure.model.cloud.market import Market
from tenure.model.matching.requirements import Requirements
from tenure.model.values.quantity import UNIT, format_resources
from tenure.providers.kwok.typesfile import load_types, parse_types

Json = Any


def requirement(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def offering(zone: str = "zone-a", terms: str = "on-demand", **more: Any) -> Json:
    said = [
        requirement("karpenter.sh/capacity-type", terms),
        requirement("topology.kubernetes.io/zone", zone),
    ]
    return {"Price": 0.096, "Available": True, "Requirements": said, **more}


M5: Json = {
    "name": "m5.large",
    "architecture": "amd64",
    "operatingSystems": ["linux"],
    "resources": {"cpu": "2", "memory": "8Gi"},
    "offerings": [offering(), offering(terms="spot", Price=0.0412345678)],
}


def test_a_file_in_karpenters_format_is_read(tmp_path: Path) -> None:
    path = tmp_path / "types.json"
    path.write_text(json.dumps([M5]))
    (kind,) = load_types(str(path))
    assert kind.name == "m5.large"
    assert kind.requirements.labels()["karpenter.kwok.sh/instance-family"] == "m5"
    assert kind.requirements.labels()["karpenter.kwok.sh/instance-size"] == "large"
    assert format_resources(kind.capacity) == {"cpu": "2", "memory": "8Gi", "pods": "110"}
    assert format_resources(kind.allocatable)["cpu"] == "1900m"
    assert [(o.zone, o.capacity_type, o.price) for o in kind.offerings] == [
        ("zone-a", "on-demand", 96_000),
        ("zone-a", "spot", 41_235),
    ]


def test_a_type_may_say_how_many_volumes_its_nodes_attach() -> None:
    (kind,) = parse_types([{**M5, "volumeLimits": {"disks.example.com": 3}}], "types.json")
    assert kind.volume_limits == {"disks.example.com": 3}
    (silent,) = parse_types([M5], "types.json")
    assert silent.volume_limits == {}
    for wrong in (3, {"disks.example.com": "3"}, {"disks.example.com": -1}, {"a b": 3}):
        with pytest.raises(SpecError, match="volumeLimits"):
            parse_types([{**M5, "volumeLimits": wrong}], "types.json")


def test_an_older_file_is_read_too_and_capitals_do_not_matter() -> None:
    old = {
        "Name": "g5.4xlarge",
        "architecture": "amd64",
        "operatingSystems": {"linux": {}},
        "resources": {"cpu": 16, "memory": "64Gi", "nvidia.com/gpu": "1", "pods": "29"},
        "offerings": [{"capacityType": "on-demand", "zone": "us-east-1a", "price": 1.624}],
    }
    (kind,) = parse_types([old], "old.json")
    assert kind.offerings[0].zone == "us-east-1a"
    assert kind.offerings[0].available
    assert format_resources(kind.capacity)["nvidia.com/gpu"] == "1"
    assert format_resources(kind.capacity)["pods"] == "29"


def test_a_list_of_a_public_cloud_as_karpenter_makes_it_is_read() -> None:
    """Once for each architecture and system, and with whole gibibytes of memory only."""
    runs = [(arch, system) for arch in ("i386", "x86_64") for system in ("windows", "linux")]
    large = [{**M5, "architecture": arch, "operatingSystems": [system]} for arch, system in runs]
    nano = {**M5, "name": "t2.nano", "resources": {"cpu": "1", "memory": "0", "pods": "16"}}
    (kind,) = parse_types([nano, *large], "aws.json")
    assert kind.name == "m5.large"
    assert kind.requirements["kubernetes.io/arch"].values == ("i386", "x86_64")
    assert kind.requirements["kubernetes.io/os"].values == ("linux", "windows")


def test_an_offering_that_is_not_available_stays_in_the_catalogue() -> None:
    (kind,) = parse_types([{**M5, "offerings": [offering(Available=False)]}], "t.json")
    assert [each.available for each in kind.offerings] == [False]


def test_what_all_offerings_of_a_type_say_is_said_of_the_type() -> None:
    dense = requirement("example.com/dense", "yes")
    written = copy.deepcopy(M5)
    for each in written["offerings"]:
        each["Requirements"].append(dense)
    (kind,) = parse_types([written], "t.json")
    assert kind.requirements.labels()["example.com/dense"] == "yes"


def change(*path: str | int, to: Any = None) -> Callable[[Json], None]:
    """Put something else at that place; without a value, take away what is there."""

    def act(types: Json) -> None:
        at = types
        for step in path[:-1]:
            at = at[step]
        if to is None:
            del at[path[-1]]
        else:
            at[path[-1]] = to

    return act


ZONE = "topology.kubernetes.io/zone"
SLIPS = [
    pytest.param(
        change(0, to="m5"), "t.json[0]: got 'm5', expected an object with", id="no object"
    ),
    pytest.param(change(0, "name"), "t.json[0].name: missing, expected a name", id="nameless"),
    pytest.param(change(0, "name", to="m5 large"), "t.json[0].name: got 'm5 large'", id="no label"),
    pytest.param(
        change(0, "name", to="m" * 64), "at most 63 characters: it becomes a label", id="too long"
    ),
    pytest.param(
        change(0, "resources", "cpu", to="two"),
        "t.json[0].resources[cpu]: got 'two', expected a Kubernetes quantity",
        id="no quantity",
    ),
    pytest.param(
        change(0, "resources", "memory"),
        "t.json[0].resources[memory]: missing, expected a quantity such as 2 or 8Gi",
        id="without memory",
    ),
    pytest.param(
        change(0, "resources", "cpu", to=[2]),
        "t.json[0].resources[cpu]: got 'a list', expected a quantity such as 2",
        id="an amount that is a list",
    ),
    pytest.param(
        change(0, "resources", "cpu", to="100m"),
        "t.json[0].resources[cpu]: got '100m', expected a quantity above 100m: the kubelet keeps",
        id="nothing left for pods",
    ),
    pytest.param(
        change(0, "resources", "memory", to="9E"),
        "t.json[0].resources[memory]: got '9E', expected a quantity from 0 to 1P",
        id="more than the API server counts",
    ),
    pytest.param(
        change(0, "resources", "nvidia.com/gpu", to="500m"),
        "t.json[0].resources[nvidia.com/gpu]: got '500m', expected a whole number",
        id="half a device",
    ),
    pytest.param(
        change(0, "resources", "graphics card", to="1"),
        "t.json[0].resources: got 'graphics card', expected names of resources, such as cpu",
        id="no name of a resource",
    ),
    pytest.param(
        change(0, "operatingSystems", to="linux"),
        "t.json[0].operatingSystems: got 'linux', expected a list of operating systems",
        id="one system outside of a list",
    ),
    pytest.param(
        change(0, "offerings", to=[]),
        "t.json[0].offerings: got 'a list without anything in it', expected a list of offerings",
        id="nothing offered",
    ),
    pytest.param(
        change(0, "offerings", 1, "Price", to="cheap"),
        "t.json[0].offerings[1].Price: got 'cheap', expected dollars per hour as a number",
        id="a price in words",
    ),
    pytest.param(
        change(0, "offerings", 1, "Price", to=-1), "offerings[1].Price: got -1", id="paid to take"
    ),
    pytest.param(
        change(0, "offerings", 0, "Price"), "offerings[0].Price: missing", id="without a price"
    ),
    pytest.param(
        change(0, "offerings", 0, "Available", to="no"),
        "t.json[0].offerings[0].Available: got 'no', expected true or false",
        id="availability in words",
    ),
    pytest.param(
        change(0, "offerings", 0, "Requirements", 1),
        f"t.json[0].offerings[0].Requirements: got ['karpenter.sh/capacity-type'], "
        f"expected a requirement on {ZONE}",
        id="nowhere",
    ),
    pytest.param(
        change(0, "offerings", 0, "Requirements", 1, "values", to=["a", "b"]),
        "offerings[0].Requirements[1].values: got ['a', 'b'], expected a list of exactly one value."
        " Write one offering for each.",
        id="in two zones at once",
    ),
    pytest.param(
        change(0, "offerings", 0, "Requirements", 1, "operator", to="NotIn"),
        "offerings[0].Requirements[1].operator: got 'NotIn', expected In",
        id="anywhere but there",
    ),
    pytest.param(
        change(0, "offerings", 0, "Requirements", 1, "values", to=["zone a"]),
        "offerings[0].Requirements[1].values[0]: got 'zone a', expected the value of a label",
        id="no value of a label",
    ),
    pytest.param(
        change(0, "offerings", 0, "Requirements", 1, "key", to="the zone"),
        "offerings[0].Requirements[1].key: got 'the zone', expected the key of a label, such as",
        id="no key of a label",
    ),
    pytest.param(
        change(0, "offerings", 0, "Requirements", 1, "key", to=f"a/{'z' * 64}"),
        "Requirements[1].key: got 'a/zzz",
        id="a key that is too long",
    ),
    pytest.param(
        change(0, "offerings", 0, "Requirements", 1, "key", to="kubernetes.io/arch"),
        "Requirements[1].key: got 'kubernetes.io/arch', expected a key that is not said already",
        id="what the type says itself",
    ),
    pytest.param(
        change(0, "offerings", 0, "Requirements", 1, "key", to="karpenter.sh/capacity-type"),
        "got 'karpenter.sh/capacity-type', expected a key that is not said already",
        id="the same key twice",
    ),
    pytest.param(
        change(0, "offerings", 1, to=offering()),
        "t.json[0].offerings[1]: got 'zone-a on-demand', expected each zone and capacity type once",
        id="the same offering twice",
    ),
    pytest.param(
        change(0, "offerings", 1, "Requirements", 0, "key", to="example.com/other"),
        "t.json[0].offerings[1].Requirements: got ['example.com/other'",
        id="no capacity type",
    ),
    pytest.param(
        lambda types: types.append({**M5, "architecture": "arm64", "resources": {"cpu": 1}}),
        "t.json[1].resources[memory]: missing",
        id="the same type in two sizes, one without memory",
    ),
    pytest.param(
        lambda types: types.append({**M5, "architecture": "arm64", "offerings": [offering()]}),
        "t.json[1].name: got 'm5.large', expected a name of its own",
        id="the same type at two prices",
    ),
    pytest.param(
        lambda types: types.append(
            {**M5, "architecture": "arm64", "operatingSystems": ["windows"]}
        ),
        "t.json[0].name: got 'm5.large', expected each of amd64, arm64 with each of linux, windows",
        id="not every system on every architecture",
    ),
    pytest.param(
        change(0, "resources", "memory", to="0"),
        "expected a list of instance types on which a pod can run, at least one",
        id="nothing but a type that holds nothing",
    ),
    pytest.param(
        change(0, "offerings", 0, "Avialable", to=False),
        "t.json[0].offerings[0].Avialable: got False, expected the field Available",
        id="a slip in a name",
    ),
    pytest.param(
        lambda types: types.append(copy.deepcopy(M5)),
        "t.json[1].name: got 'm5.large', expected a name of its own, or all but architecture and",
        id="the same type twice",
    ),
]


@pytest.mark.parametrize(("slip", "sentence"), SLIPS)
def test_a_slip_is_named_with_its_place(slip: Callable[[Json], None], sentence: str) -> None:
    written = [copy.deepcopy(M5)]
    slip(written)
    with pytest.raises(SpecError) as refusal:
        parse_types(written, "t.json")
    assert sentence in str(refusal.value)


def test_offerings_of_a_type_differ_in_zone_and_capacity_type_only() -> None:
    written = copy.deepcopy(M5)
    written["offerings"][1]["Requirements"].append(requirement("example.com/zone-id", "a1"))
    with pytest.raises(SpecError, match=r"the same example.com/zone-id as in offerings\[0\]"):
        parse_types([written], "t.json")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '[{"name": "m5",}]',
            'types.json, line 1, column 16: got \'[{"name": "m5",}]\', expected JSON',
        ),
        ("", "types.json, line 1, column 1: got '', expected JSON; Expecting value"),
        ("{}", "types.json: got 'an object without anything in it', expected a list of instance"),
        (
            "[]",
            "types.json: got 'a list without anything in it', expected a list of instance types",
        ),
        ("[NaN]", "types.json: got 'NaN', expected a finite number"),
        ("[" * 100_000, "types.json:1: got '101 levels of nesting', expected at most 100"),
        ("1" * 5000, "types.json:1: got 'a number of 5000 characters', expected at most 100"),
    ],
    ids=[
        *("a comma too many", "an empty file", "an object", "an empty list", "not a number"),
        *("a thousand brackets", "a thousand digits"),
    ],
)
def test_a_file_without_types_says_what_is_in_it(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "types.json"
    path.write_text(text)
    with pytest.raises(SpecError) as refusal:
        load_types(str(path))
    assert sentence in str(refusal.value)


def test_a_file_as_large_as_a_public_clouds_is_read_and_bought_from(tmp_path: Path) -> None:
    places = [offering(f"zone-{zone}", terms) for zone in "abcdef" for terms in ("spot", "odd")]
    path = tmp_path / "types.json"
    path.write_text(
        json.dumps([{**M5, "name": f"t{n}.large", "offerings": places} for n in range(1000)])
    )
    types = load_types(str(path))
    offer = next(Market(types).suitable(Requirements(), {"cpu": UNIT}))
    assert (len(types), offer.key) == (1000, ("t0.large", "zone-a", "odd"))


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="No such file or directory"):
        load_types(str(tmp_path / "nowhere.json"))
    with pytest.raises(SpecError, match="Is a directory"):
        load_types(str(tmp_path))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="expected text in UTF-8"):
        load_types(str(tmp_path / "binary"))
