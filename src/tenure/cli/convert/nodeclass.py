"""What a Provisioner says about instances: the node class that a NodePool refers to has it now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tenure.cli.convert.conversion import Conversion
from tenure.cli.convert.fields import Fields, shown_value
from tenure.cli.convert.report import Code
from tenure.errors import SpecError

#: The kind that a ``providerRef`` means when it names none, and the kind that took its place.
OLD_TEMPLATE: Final = "AWSNodeTemplate"
_SUCCESSOR: Final = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}
_TO: Final = "spec.template.spec.nodeClassRef"
_EXAMPLE: Final = "Write providerRef: {name: default}, or give --node-class GROUP/KIND/NAME."
#: Settings of the kubelet that no release reads any more.
_KUBELET_GONE: Final = frozenset({"containerRuntime"})


def node_class_ref(
    done: Conversion, parts: Sequence[Fields], chosen: Mapping[str, str] | None
) -> None:
    refs = [(part, name) for part in parts for name in ("providerRef", "nodeClassRef")]
    written = [
        (one, part.path(name)) for part, name in refs if (one := part.take(name)) is not None
    ]
    inlines = [(part.take("provider"), part.path("provider")) for part in parts]
    for _, again in written[1:]:
        expected = f"it once, and {written[0][1]} is there too"
        parts[0].refuse(SpecError(again, "a second one", expected, "Remove one of them."))
    for value, at in inlines:
        if value is None:
            continue
        message = f"{shown_value(value)} has to be written into the node class that the NodePool refers to"
        done.note(Code.ELSEWHERE, message, at)
    if chosen is not None:
        done.put(_TO, dict(chosen), written[0][1] if written else None)
        for value, at in written:
            done.note(Code.CHANGED, f"{shown_value(value)} is replaced by --node-class", at)
    elif written:
        _refer(done, Fields(written[0][0], written[0][1], done.notes))
    else:
        at = parts[-1].path("providerRef") if len(parts) == 1 else "spec.template.providerRef"
        parts[0].refuse(SpecError(at, None, "the node class of the NodePool", _EXAMPLE))


def _refer(done: Conversion, ref: Fields) -> None:
    version, group = ref.text("apiVersion"), ref.text("group")
    kind, name = ref.text("kind") or OLD_TEMPLATE, ref.text("name")
    if name is None:
        expected = "the name of the node class"
        ref.refuse(SpecError(ref.path("name"), None, expected, "For example name: default."))
    if group is None and version is not None:
        group = version.rpartition("/")[0]
    if kind == OLD_TEMPLATE:
        message = (
            f"{OLD_TEMPLATE} {name} is {_SUCCESSOR['kind']} {name} of {_SUCCESSOR['group']} now; "
            "that object has to be written by hand"
        )
        done.note(Code.CHANGED, message, ref.at)
        done.put(_TO, {**_SUCCESSOR, "name": name}, ref.at)
    elif group:
        done.put(_TO, {"group": group, "kind": kind, "name": name}, ref.at)
    else:
        expected = f"the API group of {kind}"
        hint = "For example apiVersion: example.com/v1."
        ref.refuse(SpecError(ref.path("apiVersion"), version, expected, hint))
    done.report_left(ref)


def kubelet_notes(done: Conversion, part: Fields) -> None:
    """NodePools do not configure the kubelet; node classes may."""
    for name in ("kubeletConfiguration", "kubelet"):
        for path, value in part.inner(name).left():
            field = path.rpartition(".")[2]
            if field in _KUBELET_GONE:
                message = f"{shown_value(value)} has no successor, and is left out"
                done.note(Code.NO_SUCCESSOR, message, path)
            else:
                message = f"{shown_value(value)} has to be written as spec.kubelet.{field} of the node class"
                done.note(Code.ELSEWHERE, message, path)
