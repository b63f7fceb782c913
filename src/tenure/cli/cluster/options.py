"""Which cluster or scenario to look at: the options that ``explain`` and ``plan`` share.

Those of a cluster are settings of ``tenure run`` by the same names. Whatever else ``run`` reads from the
environment and from its file counts here too, so that a look evaluates as the replica does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click
import msgspec

from tenure.cli.settings.help import option_arguments, parameter_name
from tenure.cli.settings.table import TABLE
from tenure.errors import SpecError

if TYPE_CHECKING:
    from tenure.cli.cluster.access import Reached
    from tenure.cli.cluster.question import Question
    from tenure.cli.cluster.read import ClusterReading
    from tenure.model.settings import Settings
    from tenure.ports.provider import Provider

#: Settings that have a flag here: which cluster it is, and what decides what is done there.
FLAGS: Final = ("kubeconfig", "context", "cluster-name", "provider", "provider-namespace")
SWITCHES: Final = (
    "voluntary-disruption",
    "feature-gates",
    "beside-karpenter",
    "karpenter-version",
    "karpenter-feature-gates",
)
_SETTINGS: Final = [
    *(setting for flag in (*FLAGS, *SWITCHES) for setting in TABLE if setting.flag == flag),
    *(setting for setting in TABLE if setting.providers),
]

#: What may be looked at instead of a cluster.
SCENARIO: Final = "a scenario"

C = TypeVar("C", bound=Callable[..., Any])
#: The options' values, by their names for Python.
Given = Mapping[str, Any]


def cluster_options(command: C) -> C:
    """Adds the options; the command gets them as keyword arguments of these names."""
    add_config = click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        envvar="TENURE_CONFIG",
        metavar="FILE",
        help="The settings of tenure run, in YAML.",
    )
    command = add_config(command)
    for setting in reversed(_SETTINGS):
        command = click.option(
            f"--{setting.flag}",
            parameter_name(setting),
            **option_arguments(setting),
            help=f"{setting.reason} [default: {setting.default_words}]",
        )(command)
    return command


class Form(NamedTuple):
    """In which form to answer."""

    as_json: bool
    #: Nothing is folded.
    verbose: bool


class Played(NamedTuple):
    """Which moment of which scenario is looked at instead of a cluster."""

    scenario: Path
    moment: str
    #: None: the scenario's own.
    seed: int | None


def scenario_options(command: C) -> C:
    """Adds ``--in``, ``--at`` and ``--seed``; see ``played_instead``."""
    options = (
        click.option(
            "--in",
            "scenario",
            type=click.Path(path_type=Path),
            metavar="SCENARIO",
            help="Play this scenario instead of looking at a cluster.",
        ),
        click.option(
            "--at",
            "moment",
            metavar="TIME",
            help="Of the scenario: 5m1s after the start, 2d, or an RFC 3339 instant.",
        ),
        click.option(
            "--seed", type=click.IntRange(min=0), help="Another seed than the scenario's."
        ),
    )
    for add in reversed(options):
        command = add(command)
    return command


def played_instead(
    scenario: Path | None, moment: str | None, seed: int | None, cluster: Given
) -> Played | None:
    """The scenario to play; None where a cluster is looked at."""
    if scenario is None:
        if moment is not None or seed is not None:
            flag = "--seed" if moment is None else "--at"
            raise click.UsageError(f"{flag} goes with --in; a cluster is evaluated as it is now")
        return None
    no_cluster(cluster)
    if moment is None:
        raise click.UsageError("--in needs --at, as in --at 5m")
    return Played(scenario, moment, seed)


def switched_on(flag: str, given: Given) -> bool:
    """For what is looked at without a cluster. Raises ``SpecError`` where it is neither true nor false."""
    (setting,) = (one for one in _SETTINGS if one.flag == flag)
    value = given[parameter_name(setting)]
    return value is not None and bool(setting.form.value(value, f"--{flag}"))


def no_cluster(given: Given, instead: str = SCENARIO) -> None:
    """Raises ``SpecError`` when a cluster is named beside something else."""
    for setting in _SETTINGS:
        if (value := given[parameter_name(setting)]) is not None:
            if setting.flag in SWITCHES:
                expected = f"a cluster and not {instead}"
                hint = "A scenario has its own, under settings." if instead == SCENARIO else ""
                raise SpecError(f"--{setting.flag}", value, expected, hint)
            raise SpecError(f"--{setting.flag}", value, f"{instead} or a cluster, not both")


def reached_and_seen(given: Given, about: Question | None = None) -> tuple[Reached, ClusterReading]:
    """Raises ``CannotRead``, or another ``TenureError`` for input that cannot be used."""
    from tenure.cli.cluster.read import read_cluster  # loaded only when called
    from tenure.cli.view.progress import waiting

    one = chosen_cluster(given)
    if about is not None:
        about = about.in_namespace(one.reached.access.namespace)
    with waiting(f"reading {one.reached.access.server}"):
        reading = read_cluster(one.settings, one.reached, one.provider, about)
    notes = (*one.notes, *reading.notes)
    return one.reached, msgspec.structs.replace(reading, notes=notes)


class ChosenCluster(NamedTuple):
    """Which cluster is looked at, and by which settings."""

    settings: Settings
    reached: Reached
    provider: Provider
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """By which users know it; empty: neither a setting nor a kubeconfig names it."""
        return self.settings.cluster_name or self.reached.access.context


def chosen_cluster(given: Given) -> ChosenCluster:
    """Nothing is asked yet. Raises ``SpecError``."""
    from tenure.cli.cluster.access import find_access  # loaded only when called
    from tenure.cli.settings.config import configured, provider_of

    flags = {setting.flag: given[parameter_name(setting)] for setting in _SETTINGS}
    found = configured(flags, os.environ, given["config_file"])
    settings = found.settings
    provider = provider_of(settings)
    reached = find_access(settings.kubeconfig, settings.context, os.environ)
    return ChosenCluster(settings, reached, provider, tuple(found.notes))
