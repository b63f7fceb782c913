"""A connection to the control plane of the test bed, and Tenure's kinds in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec
import yaml

from tenure.errors import NotFound
from tenure.kube.client.client import Client
from tenure.kube.client.credentials import credentials_for
from tenure.kube.client.http import HttpTransport, Limits
from tenure.kube.client.kubeconfig import load_access
from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_CLAIMS, NODE_POOLS, Resource
from tenure.ports.transport import Request
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.runtime.clock.system import SystemClock
from tenure.schema.structure.crd import dump
from tenure.sim.apiserver.objects.customkinds import OWN_KINDS
from testbed.controlplane import ControlPlane

CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)
SERVICE_ACCOUNTS: Final = Resource("", "v1", "ServiceAccount", "serviceaccounts", True)
#: Seconds between two looks at something that has no watch.
LOOK_EVERY: Final = 0.05
#: Seconds after which what has to happen counts as never happening; an idle machine needs a tenth.
PATIENCE: Final = 240.0
#: For one answer. A controller has a Lease to lose, and gives up after five seconds; people wait.
ANSWER: Final = timedelta(seconds=60)


@asynccontextmanager
async def connected(kubeconfig: Path, limits: Limits | None = None) -> AsyncIterator[HttpTransport]:
    access = load_access(kubeconfig)
    credentials = credentials_for(access, SystemClock())
    # What observers see is compared with what was asked for: nothing is gathered for them.
    limits = msgspec.structs.replace(limits or Limits(), gather=timedelta())
    async with HttpTransport(access, credentials, limits=limits) as transport:
        yield transport


class PatientClient(Client):
    async def _call(self, request: Request, *, within: timedelta = ANSWER, harmless: bool) -> bytes:
        return await super()._call(request, within=max(within, ANSWER), harmless=harmless)


@asynccontextmanager
async def patient(kubeconfig: Path) -> AsyncIterator[Client]:
    """What people have who set a story up, look on, or clear away behind it."""
    async with connected(kubeconfig, Limits(answer=ANSWER)) as transport:
        yield PatientClient(transport)


def install_crds(plane: ControlPlane) -> None:
    """Returns when the API server serves all of them."""
    asyncio.run(asyncio.wait_for(_install(plane.kubeconfig), PATIENCE))


async def _install(kubeconfig: Path) -> None:
    async with patient(kubeconfig) as client:
        for crd in yaml.safe_load_all(dump(OWN_KINDS)):
            await client.create(CRDS, crd)
        for resource in (NODE_POOLS, NODE_CLAIMS, MAINTENANCE_WINDOWS, KWOK_NODE_CLASSES):
            await _served(client, resource)


async def admits_pods(plane: ControlPlane, client: Client, namespace: str) -> None:
    """Until pods can be created there: each needs an account, which a controller makes in time."""
    async with asyncio.timeout(PATIENCE):
        while plane.accounts:
            try:
                await client.get(SERVICE_ACCOUNTS, "default", namespace)
            except NotFound:
                await asyncio.sleep(LOOK_EVERY)
            else:
                return


async def _served(client: Client, resource: Resource) -> None:
    while True:
        try:
            await client.list_page(resource)
        except NotFound:
            await asyncio.sleep(LOOK_EVERY)
        else:
            return
