"""``tenure crds``: the CustomResourceDefinitions, ready for ``kubectl apply``."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  tenure crds | kubectl apply --server-side -f -
  tenure crds --beside-karpenter | kubectl apply --server-side -f -
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
@click.option(
    "--beside-karpenter",
    is_flag=True,
    help="Only those that Karpenter does not have: MaintenanceWindow and NodePoolPolicy.",
)
def crds(provider: str, beside_karpenter: bool) -> None:
    """Print the CRDs of NodePool, NodeClaim, MaintenanceWindow, NodePoolPolicy and the provider's node classes."""
    from tenure.providers.registry import DEFAULT, find  # loaded only when called
    from tenure.schema.structure.crd import BESIDE_KINDS, CUSTOM_KINDS, dump

    if beside_karpenter:
        click.echo(dump(BESIDE_KINDS), nl=False)
        return
    click.echo(dump((*CUSTOM_KINDS, *find(provider or DEFAULT).kinds)), nl=False)
