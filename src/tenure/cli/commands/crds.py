"""``tenure crds``: the CustomResourceDefinitions, ready for ``kubectl apply``."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  tenure crds | kubectl apply --server-side -f -
  tenure crds > crds.yaml
"""


@click.command(epilog=EPILOG)
def crds() -> None:
    """Print the CRDs of NodePool, NodeClaim, MaintenanceWindow and KWOKNodeClass as YAML."""
    from tenure.schema.structure.crd import dump  # loaded only when called

    click.echo(dump(), nl=False)
