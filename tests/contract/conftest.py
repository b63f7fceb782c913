"""Runs the contract suite through every backend there is.

The real backend needs the binaries of the test bed (``make bed``); ``make test-real`` goes
through it alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from testbed.controlplane import ControlPlane, control_plane
from tests import bed
from tests.contract.backends import Backend, RealBackend, ServedBackend, ServedStore, StoreBackend
from tests.contract.clusters import Cluster, EmbeddedCluster, RealCluster
from tests.real.cluster import install_crds

#: What the embedded store does by itself, and no more: other controllers would write to
#: the objects that tests are about.
CONTROLLERS = ("garbage-collector-controller", "namespace-controller")
REAL = pytest.param(RealBackend.name, marks=pytest.mark.real)
EMBEDDED = [StoreBackend.name, ServedBackend.name]
#: What a test of workloads needs beside them; no controller creates service accounts, so no pod needs one.
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
BACKENDS = EMBEDDED if bed.missing() else [*EMBEDDED, REAL]


@pytest.fixture(params=BACKENDS, ids=lambda name: f"on the {name} API server")
def api(request: pytest.FixtureRequest) -> Backend:
    if request.param == StoreBackend.name:
        return StoreBackend()
    if request.param == ServedBackend.name:
        return ServedBackend(request.getfixturevalue("served"))
    return RealBackend(request.getfixturevalue("plane"))


@pytest.fixture(
    params=[name for name in BACKENDS if name != ServedBackend.name],
    ids=lambda name: f"on the {name} API server",
)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    if request.param == StoreBackend.name:
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
    """A test that is a coroutine is run by the backend it came through."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    backend = pyfuncitem.funcargs.get("api") or pyfuncitem.funcargs["cluster"]
    assert isinstance(backend, Backend)
    backend.run(pyfuncitem.obj(**arguments))
    return True
