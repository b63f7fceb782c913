"""``tenure snapshot``: write a copy of a real cluster that can be handed on and tried out."""

from __future__ import annotations

import sys
from typing import Any

import click

from tenure.cli.copying.source import kubeconfig_options, reached

EPILOG = """\b
Examples:
  tenure snapshot > cluster.jsonl
  tenure snapshot --kubeconfig prod.yaml --context prod > cluster.jsonl
  tenure simulate --from cluster.jsonl change.yaml --for 1d
  tenure up --from cluster.jsonl

\b
Left out: Secrets, ConfigMaps, environment values, commands, arguments, probes, user data, and
every annotation but those of known controllers. What cannot be read is named on stderr and in
the file. Exit code 1 means that no Nodes could be listed.
"""


@click.command(epilog=EPILOG)
@kubeconfig_options
def snapshot(kubeconfig: str, context: str) -> int:
    """Write the nodes, pools and workloads of a cluster to stdout, without its secrets.

    One JSON object per line. Only reads leave this machine; names, labels and images are kept,
    so that what is tried out there can be recognized.
    """
    import msgspec

    from tenure.cli.copying.listing import snapshot_lines  # loaded only when called
    from tenure.cli.view.progress import waiting

    out = sys.stdout.buffer

    def write(obj: dict[str, Any]) -> None:
        out.write(msgspec.json.encode(obj) + b"\n")
        for sentence in obj.get("missing") or ():
            click.echo(f"note: {sentence}", err=True)

    with waiting("copying the cluster"):
        snapshot_lines(reached(kubeconfig, context), write)
    out.flush()
    return 0
