"""``--instance-types-file``: one's own instance types, in the peer's JSON.

::

    [{"name": "m5.large", "architecture": "amd64", "operatingSystems": ["linux"],
      "resources": {"cpu": "2", "memory": "8Gi"},
      "offerings": [{"Price": 0.096, "Available": true, "Requirements": [
          {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
          {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]}]}]

As the peer reads it: capitals in the names of fields do not matter, unknown fields are
skipped, ``pods`` is 110 where it is missing; older files may name ``Zone`` and
``CapacityType`` instead of ``Requirements``, and write the systems as an object. Unlike
there, ``Available: false`` means what it says, and a file with a slip in it is refused with
the path of the field.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tenure.errors import SpecError
from tenure.model.fields import LABEL_VALUE, LABEL_VALUE_LENGTH
from tenure.model.names import CAPACITY_TYPE, ZONE
from tenure.model.offering import MICRO_DOLLARS, InstanceType, Offering
from tenure.model.quantity import UNIT, parse_resources
from tenure.providers.kwok.catalogue import instance_type

#: The number of pods that Kubernetes supports on a node.
_PODS: Final = 110 * UNIT
_LABEL: Final = re.compile(LABEL_VALUE)
_PRICE_MAX: Final = 10**6
#: Without these no pod ever fits.
_NEEDED: Final = ("cpu", "memory", "pods")

_TYPE_FIELDS: Final = ("name", "offerings", "architecture", "operatingSystems", "resources")
_OFFERING_FIELDS: Final = (
    *("Price", "Available", "Requirements"),
    *("Zone", "CapacityType", "ReservationCapacity"),
)
#: What an offering is sold with beside zone and capacity type: labels of its node.
_Labels = Mapping[str, str]


def load_types(path: str) -> tuple[InstanceType, ...]:
    """The types in the file. Raises ``SpecError`` with the place of the first slip."""
    name = Path(path).name
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text in UTF-8"
        expected = f"a file that can be read; {why}"
        raise SpecError("--instance-types-file", path, expected) from error
    try:
        written = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        at = f"{name}, line {error.lineno}, column {error.colno}"
        raise SpecError(at, _line(text, error.lineno), f"JSON; {error.msg}") from error
    return parse_types(written, name)


def _no_number(text: str) -> float:
    raise SpecError("--instance-types-file", text, "a number")


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1].strip()[:60] if number <= len(lines) else ""


def parse_types(written: Any, at: str) -> tuple[InstanceType, ...]:
    entries = _list(written, at, "instance types")
    types: dict[str, InstanceType] = {}
    for index, entry in enumerate(entries):
        kind = _type(entry, f"{at}[{index}]")
        if kind.name in types:
            expected = "a name that no other type in the file has"
            raise SpecError(f"{at}[{index}].name", kind.name, expected)
        types[kind.name] = kind
    return tuple(types.values())


def _type(written: Any, at: str) -> InstanceType:
    fields = _fields(written, at, _TYPE_FIELDS)
    offerings = [
        _offering(entry, f"{at}.offerings[{index}]")
        for index, entry in enumerate(_list(fields["offerings"], f"{at}.offerings", "offerings"))
    ]
    return instance_type(
        _label(fields["name"], f"{at}.name", "a name such as m5.large"),
        architecture=_label(fields["architecture"], f"{at}.architecture", "amd64 or arm64"),
        systems=_systems(fields["operatingSystems"], f"{at}.operatingSystems"),
        capacity=_resources(fields["resources"], f"{at}.resources"),
        offerings=_unique([offering for offering, _ in offerings], f"{at}.offerings"),
        labels=_shared([labels for _, labels in offerings], f"{at}.offerings"),
    )


def _systems(written: Any, at: str) -> list[str]:
    names = list(written) if isinstance(written, dict) else written
    return [
        _label(name, f"{at}[{index}]", "linux or windows")
        for index, name in enumerate(_list(names, at, "operating systems"))
    ]


def _resources(written: Any, at: str) -> dict[str, int]:
    if not isinstance(written, dict):
        raise SpecError(at, _shown(written), "an object of quantities", 'E.g. {"cpu": "2", ...}.')
    for name, amount in written.items():
        if not isinstance(amount, str | int | float) or isinstance(amount, bool):
            raise SpecError(f"{at}[{name}]", _shown(amount), "a quantity such as 2 or 8Gi")
    resources = {"pods": _PODS, **parse_resources(written, at)}
    for name in dict.fromkeys((*_NEEDED, *resources)):
        if resources.get(name, 0) < (1 if name in _NEEDED else 0):
            expected = "a quantity above 0" if name in _NEEDED else "a quantity of 0 or more"
            raise SpecError(f"{at}[{name}]", written.get(name), expected)
    return resources


def _offering(written: Any, at: str) -> tuple[Offering, _Labels]:
    fields = _fields(written, at, _OFFERING_FIELDS)
    available = fields["Available"]
    if not isinstance(available, bool | None):
        raise SpecError(f"{at}.Available", _shown(available), "true or false")
    said = _requirements(fields["Requirements"], f"{at}.Requirements")
    for key, field in ((ZONE, "Zone"), (CAPACITY_TYPE, "CapacityType")):
        if fields[field] is not None:
            said.setdefault(key, _label(fields[field], f"{at}.{field}", "the value of a label"))
        if key not in said:
            raise SpecError(f"{at}.Requirements", sorted(said), f"a requirement on {key}")
    offering = Offering(
        zone=said.pop(ZONE),
        capacity_type=said.pop(CAPACITY_TYPE),
        price=_price(fields["Price"], f"{at}.Price"),
        available=available is not False,
    )
    return offering, said


def _requirements(written: Any, at: str) -> dict[str, str]:
    if written is None:
        return {}
    values: dict[str, str] = {}
    for index, entry in enumerate(_list(written, at, "requirements")):
        here = f"{at}[{index}]"
        fields = _fields(entry, here, ("key", "operator", "values"))
        key, listed = fields["key"], fields["values"]
        if not isinstance(key, str) or not key:
            raise SpecError(f"{here}.key", _shown(key), f"the key of a label, such as {ZONE}")
        if fields["operator"] != "In":
            raise SpecError(f"{here}.operator", fields["operator"], "In: an offering is one thing")
        if not isinstance(listed, list) or len(listed) != 1:
            hint = "Write one offering for each."
            raise SpecError(f"{here}.values", listed, "a list of exactly one value", hint)
        values[key] = _label(listed[0], f"{here}.values[0]", "the value of a label")
    return values


def _price(written: Any, at: str) -> int:
    is_number = isinstance(written, int | float) and not isinstance(written, bool)
    if not is_number or not 0 <= written <= _PRICE_MAX:
        raise SpecError(
            at, _shown(written), "dollars per hour as a number, 0 or more", "E.g. 0.096."
        )
    return round(float(written) * MICRO_DOLLARS)


def _unique(offerings: Sequence[Offering], at: str) -> tuple[Offering, ...]:
    seen: set[tuple[str, str]] = set()
    for index, offering in enumerate(offerings):
        place = (offering.zone, offering.capacity_type)
        if place in seen:
            raise SpecError(f"{at}[{index}]", " ".join(place), "each zone and capacity type once")
        seen.add(place)
    return tuple(offerings)


def _shared(labels: Sequence[_Labels], at: str) -> _Labels:
    """What all offerings of a type say beside zone and capacity type is said of the type."""
    for index, said in enumerate(labels):
        for key in sorted({*said, *labels[0]}):
            if said.get(key) != labels[0].get(key):
                expected = (
                    f"the same {key} as in offerings[0]: "
                    f"offerings of one type differ in {ZONE} and {CAPACITY_TYPE} only"
                )
                raise SpecError(f"{at}[{index}].Requirements", said.get(key), expected)
    return labels[0]


def _fields(written: Any, at: str, known: Sequence[str]) -> dict[str, Any]:
    """Each known field, None where it is missing. A name that is nearly known is a slip."""
    if not isinstance(written, dict):
        raise SpecError(at, _shown(written), f"an object with {', '.join(known[:4])} …")
    spelled = {name.lower(): name for name in known}
    fields: dict[str, Any] = dict.fromkeys(known)
    for name, value in written.items():
        if (right := spelled.get(name.lower())) is not None:
            fields[right] = value
        elif close := difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=0.8):
            raise SpecError(f"{at}.{name}", _shown(value), f"the field {spelled[close[0]]}")
    return fields


def _list(written: Any, at: str, what: str) -> list[Any]:
    if not isinstance(written, list) or not written:
        raise SpecError(at, _shown(written), f"a list of {what}, at least one")
    return written


def _label(written: Any, at: str, expected: str) -> str:
    if not isinstance(written, str) or not written or not _LABEL.fullmatch(written):
        raise SpecError(at, _shown(written), expected)
    if len(written) > LABEL_VALUE_LENGTH:
        raise SpecError(at, written, f"at most {LABEL_VALUE_LENGTH} characters: it becomes a label")
    return written


def _shown(written: Any) -> Any:
    """What an error repeats of the file: a few words, never half of it."""
    if isinstance(written, dict | list):
        what = "an object" if isinstance(written, dict) else "a list"
        return what if written else f"{what} without anything in it"
    return written
