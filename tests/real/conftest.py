"""Stories on a real control plane: left out where the test bed is not built (``make bed``).

One control plane for all of them, with all that a cluster has, and Tenure's account in it. They come one after the other,
and each begins with an empty cluster, whatever became of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.controlplane import EVERY_CONTROLLER, ControlPlane, control_plane
from tests import bed
from tests.real.account import install_account
from tests.real.cluster import install_crds
from tests.real.emptying import empty

collect_ignore_glob = ["test_*.py"] if bed.missing() else []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(bed.REAL)
            # One worker for all, where there are several: then there is one bed.
            item.add_marker(pytest.mark.xdist_group(bed.REAL))


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[ControlPlane]:
    with control_plane(controllers=EVERY_CONTROLLER, scheduler=True, kwok=True) as running:
        install_crds(running)
        install_account(running)
        yield running


@pytest.fixture
def cluster(running_cluster: ControlPlane) -> Iterator[ControlPlane]:
    """All that a cluster has, and kwok for kubelets; nothing of Tenure's but its kinds."""
    yield running_cluster
    empty(running_cluster)
