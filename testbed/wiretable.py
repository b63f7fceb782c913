"""Writes ``sim/serve/messages.txt``: what the built-in kinds look like in protobuf, from the Go types of a release.

Run it after Kubernetes has a new release, with the folder of Go's modules, which ``make bed`` fills:

    python -m testbed.wiretable ~/go/pkg/mod/k8s.io 0.36.3 > src/tenure/sim/serve/messages.txt
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

PACKAGES: Final = (
    *("admissionregistration/v1", "apps/v1", "authentication/v1", "authorization/v1"),
    *("autoscaling/v1", "autoscaling/v2", "batch/v1", "coordination/v1", "core/v1"),
    *("discovery/v1", "events/v1", "networking/v1", "node/v1", "policy/v1", "rbac/v1"),
    *("scheduling/v1", "storage/v1"),
)
META: Final = "meta/v1"
EXTENSIONS: Final = "apiextensions/v1"
#: Kinds that clients send and that are not stored.
ASKED: Final = (
    *("meta/v1.DeleteOptions", "policy/v1.Eviction", "core/v1.Binding", "autoscaling/v1.Scale"),
    *("authentication/v1.TokenRequest", "authentication/v1.TokenReview"),
    *("authentication/v1.SelfSubjectReview", "authorization/v1.SubjectAccessReview"),
    *("authorization/v1.SelfSubjectAccessReview", "authorization/v1.SelfSubjectRulesReview"),
    "authorization/v1.LocalSubjectAccessReview",
)
_HEAD: Final = """\
# The built-in kinds in protobuf: written by testbed/wiretable.py from Kubernetes {release}.
#
#   package.Name: number:field:type number:field:type …
#
# Types: s text, i number, n number with a fraction, b yes or no, B bytes, q quantity, t and m instants, x number or
# percentage, r any object, e a list in a message of its own, [T] a list, {{T}} a map from text, another message, ^ a message whose
# fields are those of this one. A field that was not given may be sent as zero; where zero is a value of its own, the
# type is marked with *.
"""
_STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_EMPTY: Final = re.compile(r"^type (\w+) struct ?\{\}", re.MULTILINE)
_OTHER: Final = re.compile(r"^type (\w+) ([^\s{]+)\s*(?://.*)?$", re.MULTILINE)
_IMPORT: Final = re.compile(r'^\s*(\w+)? ?"(k8s\.io/[\w./-]+)"$', re.MULTILINE)
_FIELD: Final = re.compile(
    r'^\s+(?:(?P<go>\w+)\s+)?(?P<type>[\w.\[\]*]+)\s+`(?P<tags>[^`]*protobuf:"[^`]*)`', re.MULTILINE
)
_JSON: Final = re.compile(r'json:"([^",]*)([^"]*)"')
_WIRE: Final = re.compile(r'protobuf:"\w+,(\d+)(?:,[^"]*?name=(\w+))?')
_KNOWN: Final = {
    "string": "s",
    "bool": "b",
    **dict.fromkeys(("int", "int32", "int64", "uint32", "uint64"), "i"),
    "float64": "n",
    "[]byte": "B",
    "meta/v1.Time": "t",
    "meta/v1.MicroTime": "m",
    "meta/v1.FieldsV1": "r",
    "resource.Quantity": "q",
    "intstr.IntOrString": "x",
    "runtime.RawExtension": "r",
    "types.UID": "s",
    "types.NodeName": "s",
    f"{EXTENSIONS}.JSON": "r",
    "authorization/v1.ExtraValue": "e",
    "authentication/v1.ExtraValue": "e",
}


class _Field(NamedTuple):
    number: int
    name: str
    type: str
    #: Its Go type is a pointer, or it is written in JSON whatever it is.
    zero_counts: bool


class Types:
    """The types of a release: structs with their fields, and what other types stand for."""

    def __init__(self, modules: Path, release: str) -> None:
        self._structs: dict[str, list[_Field]] = {}
        self._others: dict[str, str] = {}
        api = modules / f"api@v{release}"
        for package in PACKAGES:
            self._read(package, api / package)
        self._read(META, modules / f"apimachinery@v{release}/pkg/apis/meta/v1")
        extensions = modules / f"apiextensions-apiserver@v{release}/pkg/apis/apiextensions/v1"
        self._read(EXTENSIONS, extensions)

    def _read(self, package: str, folder: Path) -> None:
        for file in sorted(folder.glob("*types*.go")):
            text = file.read_text()
            imported = {
                alias or path.rpartition("/")[2]: "/".join(path.split("/")[-2:])
                for alias, path in _IMPORT.findall(text)
            }
            for name, body in _STRUCT.findall(text):
                self._structs[f"{package}.{name}"] = [*_fields(package, imported, body)]
            self._structs |= {f"{package}.{name}": [] for name in _EMPTY.findall(text)}
            for name, meant in _OTHER.findall(text):
                self._others[f"{package}.{name}"] = _qualified(package, imported, meant)

    def rows(self, roots: list[str]) -> Iterator[str]:
        left, seen = list(roots), set(roots)
        found = {}
        for name in left:
            fields = [(one, self._type(one.type)) for one in self._structs[name]]
            found[name] = " ".join(
                f"{one.number}:{one.name}:{type_}{'*' if one.zero_counts else ''}"
                for one, type_ in sorted(fields)
            )
            for _, type_ in fields:
                inner = type_.strip("[]{}^")
                if inner in self._structs and inner not in seen:
                    seen.add(inner)
                    left.append(inner)
        for name in sorted(found):
            yield f"{name}: {found[name]}"

    def _type(self, go: str) -> str:
        if go in _KNOWN:
            return _KNOWN[go]
        if go.startswith("^"):
            return f"^{go[1:]}"
        if go.startswith("[]"):
            return f"[{self._type(go[2:].lstrip('*'))}]"
        if go.startswith("map["):
            return f"{{{self._type(go.partition(']')[2].lstrip('*'))}}}"
        if go in self._others:
            return self._type(self._others[go])
        return go


def _fields(package: str, imported: dict[str, str], body: str) -> Iterator[_Field]:
    for match in _FIELD.finditer(body):
        named, wire = _JSON.search(match["tags"]), _WIRE.search(match["tags"])
        assert wire is not None
        go = match["type"]
        type_ = _qualified(package, imported, go.lstrip("*"))
        # One that is a choice in JSON has no names there.
        name, how = (wire[2], "") if named is None else named.groups()
        kept = go.startswith("*") or "omitempty" not in how
        if name:
            yield _Field(int(wire[1]), name, type_, kept)
        else:
            yield _Field(int(wire[1]), "-", f"^{type_}", zero_counts=False)


def _qualified(package: str, imported: dict[str, str], go: str) -> str:
    """``[]v1.Pod`` as ``[]core/v1.Pod``."""
    match = re.fullmatch(r"((?:\[\]|\*|map\[[\w.]+\])*)(?:(\w+)\.)?(\w+)", go)
    assert match is not None, go
    outer, alias, name = match.groups()
    if alias is None and (name in _KNOWN or f"{outer}{name}".endswith("[]byte")):
        return f"{outer}{name}"
    place = package if alias is None else imported[alias]
    place = {"api/resource": "resource", "util/intstr": "intstr"}.get(place, place)
    place = {"pkg/runtime": "runtime", "pkg/types": "types"}.get(place, place)
    return f"{outer}{place}.{name}"


def roots() -> list[str]:
    from tenure.sim.apiserver.objects.kinds import KINDS, ROWS

    kinds = [row.resource for row in ROWS if not KINDS[row.resource].custom]
    served = [f"{package_of(one.api_version)}.{one.kind}" for one in kinds]
    return sorted({*served, *ASKED} - {"apiregistration/v1.APIService"})


def package_of(api_version: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group.partition('.')[0] or 'core'}/{version}"


def main() -> None:
    modules, release = Path(sys.argv[1]), sys.argv[2]
    sys.stdout.write(_HEAD.format(release=release))
    for row in Types(modules, release).rows(roots()):
        sys.stdout.write(f"{row}\n")


if __name__ == "__main__":
    main()
