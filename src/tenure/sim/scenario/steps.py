"""Reads the ``events`` of a scenario: when, one verb, and what it is about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from tenure.model.api import resource as r
from tenure.sim.cloud.cloud import INTERRUPTION_GRACE
from tenure.sim.scenario.actions import (
    ApiRestart,
    Apply,
    Cordon,
    Crash,
    Delete,
    Interrupt,
    Kubelet,
    Patch,
    RecommendRebalance,
    ReleaseImage,
    Say,
    Scale,
    SetCondition,
    SetFaults,
    StepAction,
    Vanish,
    Volumes,
)
from tenure.sim.scenario.manifests import ManifestReader
from tenure.sim.scenario.read.fields import Fields, Reader
from tenure.sim.scenario.read.options import read_options
from tenure.sim.scenario.targets import ALL, PICKS, Target, read_reference, read_target
from tenure.sim.virtual.faults import Faults

_NONE: Final = timedelta(0)
_SCALED: Final = {"deployment": r.DEPLOYMENTS, "statefulset": r.STATEFUL_SETS}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    at: timedelta
    verb: str
    deed: Any
    #: Where it stands in the file.
    place: str


class StepReader:
    """Reads the ``events`` of a scenario; manifests are evaluated in the order of the file."""

    def __init__(self, reader: Reader, manifest_reader: ManifestReader) -> None:
        self._reader = reader
        self._manifest_reader = manifest_reader

    def read(self, value: Any, at: str) -> Step | None:
        fields = self._reader.fields(value, at, ("at", *VERBS))
        instant = fields.span("at")
        verb = fields.one_of(VERBS, "thing to happen")
        if not verb:
            return None
        deed = _READERS[verb](self, fields.raw(verb), fields.path(verb))
        return Step(at=instant, verb=verb, deed=deed, place=self._reader.document.place(at))

    def _apply(self, value: Any, at: str) -> StepAction:
        given = list(self._reader.items(value, at)) if isinstance(value, list) else [(at, value)]
        read = self._manifest_reader.read
        found = [read(self._reader, one, place, again=True) for place, one in given]
        return Apply(tuple(manifest for manifests in found for manifest in manifests))

    def _delete(self, value: Any, at: str) -> StepAction:
        return Delete(read_reference(self._reader, value, at))

    def _patch(self, value: Any, at: str) -> StepAction:
        target = read_reference(self._reader, value, at, ("merge",))
        merge = value.get("merge") if isinstance(value, dict) else None
        if not isinstance(merge, dict):
            hint = "For example merge: {spec: {replicas: 3}}."
            self._reader.problem(f"{at}.merge", merge, "fields to change", hint)
            merge = {}
        self._manifest_reader.patch(self._reader, target, merge, f"{at}.merge")
        return Patch(target, merge)

    def _scale(self, value: Any, at: str) -> StepAction:
        fields = self._reader.fields(value, at, (*_SCALED, "namespace", "replicas"))
        word = fields.one_of(tuple(_SCALED), "workload") or "deployment"
        name, namespace = fields.text(word, ""), fields.text("namespace", "default")
        target = read_target(self._reader, _SCALED[word], f"{namespace}/{name}", at)
        return Scale(target, fields.whole("replicas"))

    def _node(self, value: Any, at: str) -> Target:
        return read_target(self._reader, r.NODES, value, at)

    def _nodes(self, value: Any, at: str) -> Target:
        """One, or all that a filter selects."""
        return read_target(self._reader, r.NODES, value, at, (*PICKS, ALL))

    def _cordon(self, value: Any, at: str) -> StepAction:
        return Cordon(self._node(value, at), closed=True)

    def _uncordon(self, value: Any, at: str) -> StepAction:
        return Cordon(self._node(value, at), closed=False)

    def _set_condition(self, value: Any, at: str) -> StepAction:
        known = ("node", "type", "status", "reason", "message")
        fields = self._reader.fields(value, at, known)
        return SetCondition(
            self._node(fields.raw("node", ""), fields.path("node")),
            fields.text("type"),
            _status(fields),
            fields.text("reason", ""),
            fields.text("message", ""),
        )

    def _silence(self, value: Any, at: str) -> StepAction:
        return Kubelet(self._nodes(value, at), "silence")

    def _resume(self, value: Any, at: str) -> StepAction:
        return Kubelet(self._nodes(value, at), "resume")

    def _reboot(self, value: Any, at: str) -> StepAction:
        fields = self._reader.fields(value, at, ("node", "down-for"))
        node = self._node(fields.raw("node", ""), fields.path("node"))
        return Kubelet(node, "reboot", fields.span("down-for", timedelta(minutes=1)))

    def _stick_volumes(self, value: Any, at: str) -> StepAction:
        return Volumes(self._node(value, at), stuck=True)

    def _unstick_volumes(self, value: Any, at: str) -> StepAction:
        return Volumes(self._node(value, at), stuck=False)

    def _vanish(self, value: Any, at: str) -> StepAction:
        return Vanish(read_reference(self._reader, value, at))

    def _recommend_rebalance(self, value: Any, at: str) -> StepAction:
        return RecommendRebalance(read_reference(self._reader, value, at))

    def _interrupt(self, value: Any, at: str) -> StepAction:
        target = read_reference(self._reader, value, at, ("in",))
        given = value.get("in") if isinstance(value, dict) else None
        if given is None:
            return Interrupt(target, INTERRUPTION_GRACE, dated=False)
        return Interrupt(target, self._reader.span(given, f"{at}.in"), dated=True)

    def _release_image(self, value: Any, at: str) -> StepAction:
        return ReleaseImage("" if value is None else self._reader.text(value, at))

    def _faults(self, value: Any, at: str) -> StepAction:
        return SetFaults(read_options(self._reader, value, at, Faults))

    def _crash(self, value: Any, at: str) -> StepAction:
        fields = self._reader.fields({} if value is None else value, at, ("down-for",))
        return Crash(fields.span("down-for", _NONE))

    def _api_restart(self, value: Any, at: str) -> StepAction:
        self._reader.fields({} if value is None else value, at, ("nothing",))
        return ApiRestart()

    def _say(self, value: Any, at: str) -> StepAction:
        return Say(self._reader.text(value, at))


def _status(fields: Fields) -> str:
    """``False`` without quotes is YAML's own false; here it can only mean the word."""
    if isinstance(given := fields.raw("status"), bool):
        return str(given)
    return fields.choice("status", ("True", "False", "Unknown"))


_READERS: Final[dict[str, Callable[[StepReader, Any, str], StepAction]]] = {
    "apply": StepReader._apply,
    "delete": StepReader._delete,
    "patch": StepReader._patch,
    "scale": StepReader._scale,
    "cordon": StepReader._cordon,
    "uncordon": StepReader._uncordon,
    "set-condition": StepReader._set_condition,
    "silence": StepReader._silence,
    "resume": StepReader._resume,
    "reboot": StepReader._reboot,
    "stick-volumes": StepReader._stick_volumes,
    "unstick-volumes": StepReader._unstick_volumes,
    "vanish": StepReader._vanish,
    "recommend-rebalance": StepReader._recommend_rebalance,
    "interrupt": StepReader._interrupt,
    "release-image": StepReader._release_image,
    "faults": StepReader._faults,
    "crash": StepReader._crash,
    "api-restart": StepReader._api_restart,
    "say": StepReader._say,
}
VERBS: Final = tuple(_READERS)
