"""Runs the contract suite through every door there is.

The real door needs the binaries of the test bed (``make bed``); ``make test-real`` goes
through it alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from testbed.controlplane import ControlPlane, control_plane
from tests import bed
from tests.contract.backends import Door, RealDoor, ServedDoor, ServedStore, StoreDoor
from tests.contract.clusters import Cluster, EmbeddedCluster, RealCluster
from tests.real.cluster import install_crds

#: What the embedded store does by itself, and no more: other controllers would write to
#: the objects that tests are about.
CONTROLLERS = ("garbage-collector-controller", "namespace-controller")
REAL = pytest.param(RealDoor.name, marks=pytest.mark.real)
EMBEDDED = [StoreDoor.name, ServedDoor.name]
#: What a test of workloads needs beside them; nobody makes service accounts, so no pod needs one.
WORKERS = (
    *CONTROLLERS,
    "statefulset-controller",
    "job-controller",
    "disruption-controller",
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "ephemeral-volume-controller",
)
DOORS = EMBEDDED if bed.missing() else [*EMBEDDED, REAL]


@pytest.fixture(params=DOORS, ids=lambda name: f"through the {name} door")
def api(request: pytest.FixtureRequest) -> Door:
    if request.param == StoreDoor.name:
        return StoreDoor()
    if request.param == ServedDoor.name:
        return ServedDoor(request.getfixturevalue("served"))
    return RealDoor(request.getfixturevalue("plane"))


@pytest.fixture(
    params=[name for name in DOORS if name != ServedDoor.name],
    ids=lambda name: f"through the {name} door",
)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    if request.param == StoreDoor.name:
        return EmbeddedCluster()
    return RealCluster(request.getfixturevalue("working_plane"))


@pytest.fixture(scope="package")
def working_plane() -> Iterator[ControlPlane]:
    with control_plane(controllers=WORKERS, scheduler=True, kwok=True) as running:
        yield running


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedStore]:
    running = ServedStore(tmp_path_factory.mktemp("served"))
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with control_plane(controllers=CONTROLLERS) as running:
        install_crds(running)
        yield running


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine is run by the door it came through."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    door = pyfuncitem.funcargs.get("api") or pyfuncitem.funcargs["cluster"]
    assert isinstance(door, Door)
    door.run(pyfuncitem.obj(**arguments))
    return True
