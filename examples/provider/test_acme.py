"""The provider keeps the contract."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import pytest
from acme import ACME_CLASSES, Acme, AcmeProvider

from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.nodeclass import NodeClass
from tenure.model.cloud.instance import Instance
from tenure.ports.cloud import Cloud
from tenure.providers.contract import Bench, ClassesOnly, ProviderContract, outside


class AcmeBench(Bench):
    broken_class = NodeClassRef(group="acme.example.com", kind="AcmeNodeClass", name="offline")
    look_every = 0.01

    def __init__(self) -> None:
        super().__init__()
        self.acme = Acme()
        self.classes = ClassesOnly(
            ACME_CLASSES, {"default": {"network": "n-1"}, self.broken_class.name: {}}
        )

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        asyncio.run(story)

    def opened(self, cluster: str) -> AbstractAsyncContextManager[Cloud]:
        return AcmeProvider(self.acme).open(outside(cluster, self.classes))

    @property
    def class_ref(self) -> NodeClassRef:
        return NodeClassRef(group="acme.example.com", kind="AcmeNodeClass", name="default")

    async def node_class(self) -> NodeClass:
        return self.classes.read("default")

    async def changed_class(self) -> NodeClass:
        return msgspec.structs.replace(self.classes.read("default"), spec={"network": "n-2"})

    async def boot_of(self, instance: Instance) -> str:
        return str(self.acme.restarts.get(instance.provider_id))


class TestAcme(ProviderContract):
    @pytest.fixture
    def bench(self) -> Bench:
        return AcmeBench()
