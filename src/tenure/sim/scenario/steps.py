"""Reads the ``events`` of a scenario: when, one verb, and what it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    ZoneOutage,
)
from tenure.sim.scenario.draining import Drain
from tenure.sim.scenario.manifests import ManifestReader
from tenure.sim.scenario.read.fields import Fields, Reader, nearest
from tenure.sim.scenario.targets import (
    ALL,
    PICKS,
    TARGETING,
    Target,
    read_reference,
    read_target,
)
from tenure.sim.scenario.words import verbs as words
from tenure.sim.scenario.worldoptions import FAULTS, check_zones

_NONE: Final = timedelta(0)
#: What becomes of a launch in a zone that is cut off.
_LAUNCHES: Final = ("hang", "refused")
#: Verbs that took their node without ``node:``, and still do.
_ONCE_ALONE: Final = frozenset(
    {"cordon", "uncordon", "silence", "resume", "stick-volumes", "unstick-volumes"}
)
VERBS: Final = {word.name: word for word in words.VERBS}
_SCALED: Final = {"deployment": r.DEPLOYMENTS, "statefulset": r.STATEFUL_SETS}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    at: timedelta
    verb: str
    deed: Any
    #: Where it stands in the file.
    place: str


class StepReader:
    """Reads the ``events`` of a scenario; manifests are evaluated in the order of the file.

    ``zones``: those that there are.
    """

    def __init__(
        self, reader: Reader, manifest_reader: ManifestReader, zones: Sequence[str]
    ) -> None:
        self._reader = reader
        self._manifest_reader = manifest_reader
        self._zones = zones

    def read(self, value: Any, at: str) -> Step | None:
        fields = self._reader.fields(value, at, ("at", *VERBS))
        instant = fields.span("at")
        verb = fields.one_of(tuple(VERBS), "thing to happen")
        if not verb:
            return None
        with self._reader.example(VERBS[verb].hint):
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
            if isinstance(value, dict):
                hint = "For example merge: {spec: {replicas: 3}}."
                self._reader.problem(f"{at}.merge", merge, "fields to change", hint)
            merge = {}
        self._manifest_reader.patch(self._reader, target, merge, f"{at}.merge")
        return Patch(target, merge)

    def _scale(self, value: Any, at: str) -> StepAction:
        fields = self._fields("scale", value, at)
        word = fields.one_of(tuple(_SCALED), "workload") or "deployment"
        named = fields.raw(word, "")
        if "namespace" in fields and isinstance(named, str):
            named = f"{fields.text('namespace')}/{named}"
        target = read_target(self._reader, _SCALED[word], named, fields.path(word))
        return Scale(target, fields.whole("replicas"))

    def _fields(self, verb: str, value: Any, at: str) -> Fields:
        return self._reader.fields(value, at, VERBS[verb].names)

    def _node(
        self, verb: str, value: Any, at: str, picks: tuple[str, ...] = PICKS
    ) -> tuple[Target, Fields]:
        """``{node: TARGET, …}``. A target alone is the older form, where the verb had one."""
        alone = not isinstance(value, dict) or (
            "node" not in value and not value.keys().isdisjoint(TARGETING)
        )
        if alone and verb in _ONCE_ALONE and isinstance(value, str | dict):
            target = read_target(self._reader, r.NODES, value, at, picks)
            self._reader.note(at, f"{verb} takes its node under node: {VERBS[verb].example}")
            return target, Fields(self._reader, {}, at)
        fields = self._node_fields(verb, value, at)
        found = read_target(
            self._reader, r.NODES, fields.raw("node", {}), fields.path("node"), picks
        )
        return found, fields

    def _node_fields(self, verb: str, value: Any, at: str) -> Fields:
        """A field of the target beside ``node`` is one mistake, and where it belongs is said."""
        given = dict(value) if isinstance(value, dict) else value
        if isinstance(given, dict):
            for name in [name for name in given if name in TARGETING]:
                hint = f"Write it inside of node: {VERBS[verb].example}."
                self._reader.problem(f"{at}.{name}", given.pop(name), "a field of the verb", hint)
        return self._fields(verb, given, at)

    def _cordon(self, value: Any, at: str) -> StepAction:
        return Cordon(self._node("cordon", value, at)[0], closed=True)

    def _uncordon(self, value: Any, at: str) -> StepAction:
        return Cordon(self._node("uncordon", value, at)[0], closed=False)

    def _drain(self, value: Any, at: str) -> StepAction:
        node, fields = self._node("drain", value, at)
        return Drain(node, fields.span("timeout") if "timeout" in fields else None)

    def _set_condition(self, value: Any, at: str) -> StepAction:
        node, fields = self._node("set-condition", value, at)
        return SetCondition(
            node,
            fields.text("type"),
            _status(fields),
            fields.text("reason", ""),
            fields.text("message", ""),
        )

    def _silence(self, value: Any, at: str) -> StepAction:
        return Kubelet(self._node("silence", value, at, (*PICKS, ALL))[0], "silence")

    def _resume(self, value: Any, at: str) -> StepAction:
        return Kubelet(self._node("resume", value, at, (*PICKS, ALL))[0], "resume")

    def _reboot(self, value: Any, at: str) -> StepAction:
        node, fields = self._node("reboot", value, at)
        return Kubelet(node, "reboot", fields.span("down-for", timedelta(minutes=1)))

    def _stick_volumes(self, value: Any, at: str) -> StepAction:
        return Volumes(self._node("stick-volumes", value, at)[0], stuck=True)

    def _unstick_volumes(self, value: Any, at: str) -> StepAction:
        return Volumes(self._node("unstick-volumes", value, at)[0], stuck=False)

    def _zone_outage(self, value: Any, at: str) -> StepAction:
        fields = self._fields("zone-outage", value, at)
        zone = fields.text("zone")
        if zone and zone not in self._zones:
            hint = nearest(zone, self._zones)
            self._reader.problem(fields.path("zone"), zone, "a zone of the scenario", hint)
        return ZoneOutage(
            zone,
            fields.span("for") if "for" in fields else None,
            refuses_launches=fields.choice("launches", _LAUNCHES, _LAUNCHES[0]) == _LAUNCHES[1],
        )

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
        faults = FAULTS.read(self._reader, value, at)
        check_zones(self._reader, faults, self._zones, at)
        return SetFaults(faults)

    def _crash(self, value: Any, at: str) -> StepAction:
        fields = self._fields("crash", {} if value is None else value, at)
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
    "drain": StepReader._drain,
    "set-condition": StepReader._set_condition,
    "silence": StepReader._silence,
    "resume": StepReader._resume,
    "reboot": StepReader._reboot,
    "stick-volumes": StepReader._stick_volumes,
    "unstick-volumes": StepReader._unstick_volumes,
    "vanish": StepReader._vanish,
    "recommend-rebalance": StepReader._recommend_rebalance,
    "interrupt": StepReader._interrupt,
    "zone-outage": StepReader._zone_outage,
    "release-image": StepReader._release_image,
    "faults": StepReader._faults,
    "crash": StepReader._crash,
    "api-restart": StepReader._api_restart,
    "say": StepReader._say,
}
if _READERS.keys() != VERBS.keys():
    raise ValueError(f"verbs without a word or a reader: {_READERS.keys() ^ VERBS.keys()}")
