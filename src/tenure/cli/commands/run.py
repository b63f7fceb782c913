"""``tenure run``: look after a real cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from tenure.cli.settings.help import SettingsCommand, parameter_name
from tenure.cli.settings.table import TABLE

EPILOG = """\b
Examples:
  tenure run --kubeconfig ~/.kube/config
  tenure run --config settings.yaml --log-level debug
  BATCH_IDLE_DURATION=2s tenure run --metrics-port 0 --health-probe-port 0

\b
A flag wins over the environment, the environment over the file, the file over the default.
In brackets: the default, then the name in the environment. The key in the file is the flag in
camel case: --batch-idle-duration is batchIdleDuration. Durations are written as in Kubernetes:
500ms, 90s, 1h30m.
Ends with 0 on SIGTERM or SIGINT; a second one ends it at once. Bad settings end it with 2.
"""


@click.command(cls=SettingsCommand, epilog=EPILOG)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    envvar="TENURE_CONFIG",
    metavar="FILE",
    help="Settings in YAML. [TENURE_CONFIG]",
)
def run(config_file: Path | None, **given: Any) -> int:
    """Look after a cluster: launch nodes for pending pods, and take away what leaves.

    What it concludes is in the log, in Kubernetes events, in the objects' conditions and in
    metrics. Several replicas may run; the one that holds the Lease acts.
    """
    from tenure.cli.replica.operate import operate
    from tenure.cli.settings.config import configured  # loaded only when called

    flags = {setting.flag: given.get(parameter_name(setting)) for setting in TABLE}
    return operate(configured(flags, os.environ, config_file), os.environ)
