"""Stories on a real control plane: only with ``make test-real`` (``TENURE_REAL=1``)."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from testbed.controlplane import EVERY_CONTROLLER, ControlPlane, control_plane
from tests.real.cluster import install_crds

collect_ignore_glob = [] if os.environ.get("TENURE_REAL") else ["test_*.py"]


@pytest.fixture(scope="session")
def cluster() -> Iterator[ControlPlane]:
    """All that a cluster has, and kwok for kubelets."""
    with control_plane(controllers=EVERY_CONTROLLER, scheduler=True, kwok=True) as running:
        install_crds(running)
        yield running
