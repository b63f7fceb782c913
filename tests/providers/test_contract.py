"""Every provider we ship keeps the contract; so does the embedded cloud."""

from __future__ import annotations

import pytest

from tenure.providers.contract import Bench, ProviderContract
from tests.providers.benches import EmbeddedBench, StoreBench


class TestKwok(ProviderContract):
    @pytest.fixture
    def bench(self) -> Bench:
        return StoreBench(with_images=True)


class TestKwokWhoseNodesRegisterLate(ProviderContract):
    @pytest.fixture
    def bench(self) -> Bench:
        return StoreBench(delay="90s", with_images=True)


class TestEmbeddedCloud(ProviderContract):
    @pytest.fixture
    def bench(self) -> Bench:
        return EmbeddedBench()
