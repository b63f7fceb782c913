"""The contract that every provider keeps, as tests that it inherits.

A provider's own tests say how to set it up, and inherit the rest::

    class TestMyCloud(ProviderContract):
        @pytest.fixture
        def bench(self) -> Bench:
            return MyBench()

This package needs pytest, and nothing else of Tenure imports it. ``docs/providers.md`` has a
complete example. What a test demands is said in its name; why, in its first lines.
"""

from __future__ import annotations

from tenure.providers.contract.bench import Bench
from tenure.providers.contract.ends import EndContract, RefusalContract
from tenure.providers.contract.launches import LaunchContract, RepeatContract
from tenure.providers.contract.types import TypesContract

__all__ = ["Bench", "ProviderContract"]


class ProviderContract(TypesContract, LaunchContract, RepeatContract, RefusalContract, EndContract):
    """All of it. Inherit from this one, under a name that begins with ``Test``."""
