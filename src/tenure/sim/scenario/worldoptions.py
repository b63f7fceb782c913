"""The world that a scenario asks for: when it begins, its cloud, its kubelets, its faults."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.errors import SpecError
from tenure.model.settings import Settings
from tenure.sim.actors.kubelet.kubelet import KubeletTimings
from tenure.sim.actors.kubelet.podstatus import PodPace, PodTimings
from tenure.sim.actors.volumes.driver import VolumeTimings
from tenure.sim.cloud.catalogue import DEFAULT_ZONES, select
from tenure.sim.cloud.cloud import CloudTimings
from tenure.sim.infrastructure import InfrastructureOptions
from tenure.sim.scenario.read.fields import Fields, Reader, nearest
from tenure.sim.scenario.read.options import Options
from tenure.sim.scenario.words import options as words
from tenure.sim.virtual.faults import ANY, Faults
from tenure.sim.world import DEFAULT_EPOCH, WorldOptions

_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(3000, 1, 1, tzinfo=UTC)


class _CloudOptions(CloudTimings, frozen=True, kw_only=True):
    """The timings, and what there is to buy."""

    catalogue: str | tuple[str, ...] = "common"
    zones: tuple[str, ...] = DEFAULT_ZONES


#: What a scenario may say under each of these fields.
CLOUD: Final = Options(_CloudOptions, words.CLOUD)
KUBELET: Final = Options(KubeletTimings, words.KUBELET, Options(PodTimings, words.KUBELET_PODS))
PODS: Final = Options(PodPace, words.PODS)
VOLUMES: Final = Options(VolumeTimings, words.VOLUMES)
FAULTS: Final = Options(Faults, words.FAULTS)
SETTINGS: Final = Options(Settings)


def read_world_options(reader: Reader, fields: Fields) -> WorldOptions:
    start = _start(reader, fields) if "start" in fields else DEFAULT_EPOCH
    cloud = CLOUD.read(reader, fields.raw("cloud"), "cloud")
    _check_catalogue(reader, cloud, fields.raw("cloud"))
    timings = {field: getattr(cloud, field) for field in CloudTimings.__struct_fields__}
    infrastructure = InfrastructureOptions(
        catalogue=cloud.catalogue,
        zones=cloud.zones,
        cloud=CloudTimings(**timings),
        kubelet=KUBELET.read(reader, fields.raw("kubelet"), "kubelet"),
        paces=tuple(
            PODS.read(reader, value, at) for at, value in reader.items(fields.raw("pods"), "pods")
        ),
        volumes=VOLUMES.read(reader, fields.raw("volumes"), "volumes"),
        startup_agents=_startup_agents(reader, fields.raw("startup-agents")),
        faults=FAULTS.read(reader, fields.raw("faults"), "faults"),
    )
    return WorldOptions(
        epoch=start,
        seed=fields.whole("seed", 0),
        settings=SETTINGS.read(reader, fields.raw("settings"), "settings"),
        infrastructure=infrastructure,
    )


def _start(reader: Reader, fields: Fields) -> datetime:
    """Far from both ends of the calendar, so that every sum of instants and spans exists."""
    start = reader.instant(fields.raw("start"), fields.path("start"))
    if _EARLIEST <= start < _LATEST:
        return start
    expected = f"an instant from {_EARLIEST.year} to {_LATEST.year - 1}"
    hint = "For example 2026-01-05T08:00:00Z."
    reader.problem(fields.path("start"), fields.raw("start"), expected, hint)
    return DEFAULT_EPOCH


def _check_catalogue(reader: Reader, cloud: _CloudOptions, written: Any) -> None:
    try:
        select(cloud.catalogue)
    except SpecError as error:
        reader.problem("cloud.catalogue", error.got, error.expected, error.hint)
    if isinstance(written, dict) and written.get("zones") == []:
        reader.problem("cloud.zones", [], "at least one zone", "For example [zone-a, zone-b].")


def check_zones(reader: Reader, faults: Faults, zones: Sequence[str], at: str) -> None:
    """A shortage in a zone that is not there would say nothing, and do nothing."""
    for index, (_, zone, _) in enumerate(faults.cloud_dry):
        if zone not in (ANY, "", *zones):
            place = f"{at}.cloud-dry[{index}].zone"
            reader.problem(place, zone, "a zone of the scenario", nearest(zone, zones))


def _startup_agents(reader: Reader, value: Any) -> dict[str, timedelta]:
    """Taint key → how long its agent takes on a Ready node."""
    at = "startup-agents"
    if value is None:
        return {}
    if not isinstance(value, dict):
        reader.problem(at, value, "taint keys with durations", "For example example.com/cni: 30s.")
        return {}
    return {key: reader.span(span, f"{at}.{key}") for key, span in value.items()}


def with_seed(options: WorldOptions, seed: int | None) -> WorldOptions:
    return options if seed is None else msgspec.structs.replace(options, seed=seed)
