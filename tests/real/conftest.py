"""Stories on a real control plane: left out where the test bed is not built (``make bed``).

One control plane for all of them, with all that a cluster has, and Tenure's account in it. They
come one after the other, and each begins with an empty cluster, whatever became of the one before.
What is told of all of them together comes last.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from testbed.controlplane import EVERY_CONTROLLER, ControlPlane, control_plane
from tests import bed
from tests.real.account import install_account
from tests.real.cluster import install_crds
from tests.real.emptying import empty

collect_ignore_glob = ["test_*.py"] if bed.missing() else []

HERE: Final = Path(__file__).parent
LAST: Final = HERE / "test_rights.py"
#: Test files of this folder of which everything was going to run.
WHOLE: Final[pytest.StashKey[set[str]]] = pytest.StashKey()

#: A request that takes too long is given up, on a busy machine also in the middle of a TLS
#: handshake; asyncio then leaves the socket to Python's garbage collector.
LOST_CONNECTION: Final = (
    r"ignore:Exception ignored in. <(socket|function _SelectorTransport)"
    ":pytest.PytestUnraisableExceptionWarning"
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(bed.REAL)
        item.add_marker(pytest.mark.filterwarnings(LOST_CONNECTION))
    items.sort(key=lambda item: item.path == LAST)
    picked = any("::" in argument for argument in config.args)
    config.stash[WHOLE] = set() if picked else {item.path.name for item in ours}


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.config.stash[WHOLE].discard(item.path.name)


@pytest.fixture(autouse=True)
def lost_connections() -> Iterator[None]:
    """Collected here, and not in a test that has none."""
    yield
    gc.collect()


@pytest.fixture
def whole_suite(request: pytest.FixtureRequest) -> None:
    """Skips what only all stories together can tell."""
    if request.session.testsfailed:
        pytest.skip("something has failed before: that comes first")
    whole = request.config.stash[WHOLE]
    if lacking := {path.name for path in HERE.glob("test_*.py")} - whole:
        pytest.skip(f"only the whole suite can tell; not all of {', '.join(sorted(lacking))} ran")


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[ControlPlane]:
    with control_plane(
        controllers=EVERY_CONTROLLER, scheduler=True, kwok=True, storage=True
    ) as running:
        install_crds(running)
        install_account(running)
        yield running


@pytest.fixture
def cluster(running_cluster: ControlPlane) -> Iterator[ControlPlane]:
    """All that a cluster has, and kwok for kubelets; nothing of Tenure's but its kinds."""
    yield running_cluster
    empty(running_cluster)
