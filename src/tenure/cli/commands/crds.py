"""``tenure crds``: the CustomResourceDefinitions, ready for ``kubectl apply``."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  tenure crds | kubectl apply --server-side -f -
  tenure crds > crds.yaml
"""


@click.command(epilog=EPILOG)
@click.option(
    "--provider",
    envvar="TENURE_PROVIDER",
    metavar="NAME",
    default="",
    help="Whose node classes. [default: the one that ships with Tenure; TENURE_PROVIDER]",
)
def crds(provider: str) -> None:
    """Print the CRDs of NodePool, NodeClaim, MaintenanceWindow, NodePoolPolicy and the provider's node classes."""
    from tenure.providers.registry import DEFAULT, find  # loaded only when called
    from tenure.schema.structure.crd import CUSTOM_KINDS, dump

    click.echo(dump((*CUSTOM_KINDS, *find(provider or DEFAULT).kinds)), nl=False)
