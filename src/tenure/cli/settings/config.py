"""Reads the settings: flag before environment before file before default.

A feature gate that means the same as a setting counts where the setting itself is given nowhere.

An empty variable counts as not there, as manifests often have one. Every mistake is said, each
with its source. What Karpenter knows and we do not act on is accepted and noted: a deployment
that was Karpenter's starts, and says what became of its settings.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.cli.settings.table import (
    BUILT,
    GATES,
    KARPENTER_ONLY,
    REPAIR_GATE,
    SPOT_GATE,
    TABLE,
    Setting,
    clashing,
)
from tenure.errors import SpecError, TenureError
from tenure.kube.client.client import ANSWER_MAX
from tenure.kube.lease.times import KARPENTERS_DURATION
from tenure.model.settings import BESIDE_LEASE, Settings
from tenure.parse import yamltext
from tenure.parse.files import read_text
from tenure.parse.limits import SMALL
from tenure.ports.provider import Provider
from tenure.providers.absent import NO_PROVIDER
from tenure.providers.registry import DEFAULT, find

#: Ends the place of a setting that was not given.
DEFAULTED: Final = "(its default)"

(_NODE_REPAIR,) = (setting for setting in TABLE if setting.field == "node_repair")


class SettingsError(TenureError):
    """Settings that cannot be used; ``problems`` has a sentence for each."""

    def __init__(self, problems: list[SpecError]) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "; ".join(map(str, self.problems))


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    settings: Settings
    #: What differs from the defaults, as it would be written: flag and value.
    chosen: Mapping[str, str] = {}
    #: What was asked for and does nothing, a sentence each.
    notes: tuple[str, ...] = ()


def provider_of(settings: Settings) -> Provider:
    """Raises ``SpecError`` where it cannot be used."""
    if settings.beside_karpenter:
        return NO_PROVIDER
    provider = find(settings.provider or DEFAULT)
    for name in clashing(provider):
        expected = f"another provider: --{name}, an option of it, is a setting of Tenure"
        raise SpecError("--provider", provider.name, expected)
    return provider


class _Given(msgspec.Struct, frozen=True):
    """A value, as text, and where it was written."""

    at: str
    text: str


def configured(
    flags: Mapping[str, str | None], environment: Mapping[str, str], file: Path | None = None
) -> Configured:
    """``flags`` by their names without dashes. Raises ``SettingsError``."""
    problems: list[SpecError] = []
    written = _file(file, problems) if file is not None else {}
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for setting in TABLE:
        given = _given(setting, flags, environment, written)
        places[setting.flag] = given.at if given else f"--{setting.flag} {DEFAULTED}"
        try:
            values[setting.flag] = (
                setting.form.value(given.text, given.at) if given else setting.default
            )
        except SpecError as error:
            problems.append(error)
    options = {
        setting.flag: values[setting.flag]
        for setting in TABLE
        if setting.providers and values.get(setting.flag)
    }
    if not problems:
        problems += _beside_karpenter(values, places)
        problems += _contradictions(values, places)
        problems += _options_of_others(options, values["provider"], places)
    if problems:
        raise SettingsError(problems)
    repair_is_given = _given(_NODE_REPAIR, flags, environment, written) is not None
    by = places["node-repair"] if repair_is_given else _gated_repair(values, places)
    return Configured(
        settings=Settings(
            provider_options=options,
            spot_to_spot_consolidation=values["feature-gates"].get(SPOT_GATE, GATES[SPOT_GATE]),
            **{s.field: values[s.flag] for s in TABLE if s.field},
        ),
        chosen={s.flag: s.form.show(values[s.flag]) for s in TABLE if values[s.flag] != s.default},
        notes=(*_switch_notes(values, places, by), *_karpenter_notes(environment)),
    )


def _switch_notes(
    values: Mapping[str, Any], places: Mapping[str, str], repair_by: str
) -> Iterator[str]:
    """What is switched off, and where."""
    yield from _repair_notes(values["node-repair"], repair_by)
    yield from _voluntary_notes(values["voluntary-disruption"], places["voluntary-disruption"])
    yield from _gate_notes(values["feature-gates"])


def _given(
    setting: Setting,
    flags: Mapping[str, str | None],
    environment: Mapping[str, str],
    written: Mapping[str, _Given],
) -> _Given | None:
    if (flag := flags.get(setting.flag)) is not None:
        return _Given(f"--{setting.flag}", flag)
    if (variable := environment.get(setting.environment, "").strip()) != "":
        return _Given(f"environment {setting.environment}", variable)
    return written.get(setting.key)


# -- the file --------------------------------------------------------------------------


def _file(path: Path, problems: list[SpecError]) -> dict[str, _Given]:
    try:
        document = yamltext.load(read_text(path, limits=SMALL), str(path), limits=SMALL)
    except OSError as error:
        why = error.strerror or "unreadable"
        problems.append(SpecError("--config", str(path), f"a file that can be read ({why})"))
        return {}
    except SpecError as error:
        problems.append(error)
        return {}
    if document is None:
        return {}
    if not isinstance(document, dict):
        hint = "For example batchIdleDuration: 1s"
        problems.append(SpecError(str(path), document, "a mapping of settings", hint))
        return {}
    return dict(_entries(path, document, problems))


def _entries(
    path: Path, document: Mapping[Any, Any], problems: list[SpecError]
) -> Iterator[tuple[str, _Given]]:
    known = {setting.key: setting for setting in TABLE}
    for key, value in document.items():
        at = f"{path}: {key}"
        if key not in known:
            problems.append(SpecError(f"{path}", key, "the key of a setting", _guess(key, known)))
        elif value is not None:
            try:
                yield key, _Given(at, _as_text(value))
            except ValueError:
                expected = known[key].form.expected
                problems.append(
                    SpecError(at, value, expected, f"For example {known[key].form.example}.")
                )


def _as_text(value: Any) -> str:
    """A scalar as one would type it at a prompt; gates may be a mapping."""
    if isinstance(value, dict):
        return ",".join(f"{name}={_as_text(on)}" for name, on in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return str(value)
    raise ValueError


def _guess(key: Any, known: Mapping[str, Setting]) -> str:
    near = difflib.get_close_matches(str(key), known, n=1)
    return f'Did you mean "{near[0]}"?' if near else "tenure run --help lists the settings."


# -- what does not go together, and what does nothing ----------------------------------


def _contradictions(values: Mapping[str, Any], places: Mapping[str, str]) -> Iterator[SpecError]:
    def wrong(flag: str, expected: str) -> SpecError:
        return SpecError(places[flag], _shown(flag, values), expected)

    for less, more in (
        ("batch-idle-duration", "batch-max-duration"),
        ("eviction-retry-min", "eviction-retry-max"),
        ("retry-min", "retry-max"),
    ):
        if values[less] > values[more]:
            yield wrong(less, f"at most --{more}, which is {_shown(more, values)}")
    lease, renewal = values["lease-duration"], values["lease-renew-deadline"]
    if renewal > lease - ANSWER_MAX:
        least = f"at least {ANSWER_MAX // timedelta(seconds=1)}s less than --lease-duration"
        yield wrong("lease-renew-deadline", f"{least}, which is {_shown('lease-duration', values)}")
    longest = KARPENTERS_DURATION - ANSWER_MAX
    if values["leader-election-name"] == Settings().lease_name and renewal > longest:
        most = f"at most {longest // timedelta(seconds=1)}s for a Lease that Karpenter may want"
        yield wrong("lease-renew-deadline", most)
    if values["lease-retry-period"] * 2 > renewal:
        most = _shown("lease-renew-deadline", values)
        half = f"at most half of --lease-renew-deadline, which is {most}"
        yield wrong("lease-retry-period", half)
    ports = ("metrics-port", "health-probe-port", "webhook-port", "journal-port", "ui-port")
    for first, second in combinations(ports, 2):
        if values[first] == values[second] != 0:
            yield wrong(second, f"another port than --{first}")


def _beside_karpenter(values: dict[str, Any], places: Mapping[str, str]) -> Iterator[SpecError]:
    """Karpenter keeps its Lease, so Tenure has one of its own."""
    name, place = values["leader-election-name"], places["leader-election-name"]
    if not values["beside-karpenter"]:
        for flag in ("karpenter-version", "karpenter-feature-gates", "release"):
            if values[flag]:
                expected = f"--beside-karpenter, without which --{flag} has no meaning"
                yield SpecError(places[flag], _shown(flag, values), expected)
    elif place.endswith(DEFAULTED):
        values["leader-election-name"] = BESIDE_LEASE
    elif name == Settings().lease_name:
        yield SpecError(place, name, "another Lease: beside Karpenter this one is Karpenter's")


def _options_of_others(
    options: Mapping[str, str], provider: str, places: Mapping[str, str]
) -> Iterator[SpecError]:
    for setting in TABLE:
        if setting.flag in options and provider not in setting.providers:
            owners = " or ".join(setting.providers)
            expected = f"no such option: provider {provider} does not have it, {owners} does"
            yield SpecError(places[setting.flag], options[setting.flag], expected)


def _shown(flag: str, values: Mapping[str, Any]) -> str:
    (setting,) = (setting for setting in TABLE if setting.flag == flag)
    return setting.form.show(values[flag])


def _gated_repair(values: dict[str, Any], places: Mapping[str, str]) -> str:
    """Lets Karpenter's gate stand for the setting; what then decides, in words."""
    gate = values["feature-gates"].get(REPAIR_GATE)
    if gate is None:
        return places["node-repair"]
    values["node-repair"] = gate
    return f"feature gate {REPAIR_GATE}={str(gate).lower()} ({places['feature-gates']})"


def _repair_notes(on: bool, by: str) -> Iterator[str]:
    """That unhealthy nodes stay must not be found out from a node that stays."""
    if on:
        return
    what = by if by.startswith("feature gate") else f"{by}=false"
    yield (
        f"node repair is off: {what}; unhealthy nodes are reported and not repaired, time-outs of "
        "new nodes still run; --node-repair=true switches it on"
    )


def _voluntary_notes(on: bool, by: str) -> Iterator[str]:
    if not on:
        yield (
            f"voluntary disruption is off: {by}=false; empty, expired, drifted and underutilized nodes are "
            "reported and stay; --voluntary-disruption=true switches it on"
        )


def _gate_notes(gates: Mapping[str, bool]) -> Iterator[str]:
    for name, on in gates.items():
        if name in BUILT:
            continue
        if name not in GATES:
            near = difflib.get_close_matches(name, GATES, n=1)
            guess = f"; did you mean {near[0]}?" if near else ""
            yield f"feature gate {name} is not known here and does nothing{guess}"
        elif on != GATES[name] and on:
            yield f"feature gate {name} is on and does nothing yet"


def _karpenter_notes(environment: Mapping[str, str]) -> Iterator[str]:
    for name, harmless in KARPENTER_ONLY.items():
        if (value := environment.get(name, "")) not in ("", harmless):
            yield f"environment {name}={value} is a setting of Karpenter's that does nothing here"
