"""A control plane of its own where Karpenter runs, with its kinds, with those of ours that it lacks, and
with Tenure's account.

One for all stories of a worker; each begins with an empty cluster and Karpenter's default feature gates.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_POOL_POLICIES
from tenure.schema.structure.crd import CUSTOM_KINDS, dump
from testbed.karpenter import Karpenter, karpenter_bed
from testbed.kubectl import apply
from testbed.manifests import BESIDE_KARPENTER
from tests import bed
from tests.real.account import install_account
from tests.real.emptying import empty

collect_ignore_glob = ["test_*.py"] if bed.missing() else []


@pytest.fixture(scope="session")
def running_karpenter() -> Iterator[Karpenter]:
    with karpenter_bed() as karpenter:
        crds = yaml.safe_load_all(dump(CUSTOM_KINDS))
        kinds = (MAINTENANCE_WINDOWS.kind, NODE_POOL_POLICIES.kind)
        ours = [crd for crd in crds if crd["spec"]["names"]["kind"] in kinds]
        apply(karpenter.plane, ours)
        install_account(karpenter.plane, BESIDE_KARPENTER)
        yield karpenter


@pytest.fixture
def karpenter(running_karpenter: Karpenter) -> Iterator[Karpenter]:
    if (
        running_karpenter.ended
    ):  # On a machine that was too busy to renew the Lease within ten seconds.
        running_karpenter.restart()
    yield running_karpenter
    empty(running_karpenter.plane)


@pytest.fixture
def karpenter_with_repair(karpenter: Karpenter) -> Iterator[Karpenter]:
    """For a story that restarts it with the gate ``NodeRepair``; it is off again afterwards."""
    yield karpenter
    karpenter.restart()


@pytest.fixture(scope="module")
def bare_karpenter() -> Iterator[Karpenter]:
    """A bed for one module, with nothing of Tenure's in it: what is installed there is part of the story."""
    with karpenter_bed() as karpenter:
        yield karpenter
