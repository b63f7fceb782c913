"""The contract that every provider keeps, as tests that it inherits.

A provider's own tests say how to set it up, and inherit the rest::

    class TestMyCloud(ProviderContract):
        @pytest.fixture
        def bench(self) -> Bench:
            return MyBench()

This package needs pytest, and nothing else of Tenure imports it. ``docs/providers.md`` has a
complete example. What a test demands is said in its name; why, in its first lines.

May import: ports, schema, model, errors.
Start reading: bench.py.
"""

from __future__ import annotations

import pytest

# Before they are imported: then a failed assert shows what was there, wherever it is run.
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in (
            "bench",
            "changes",
            "terminations",
            "launches",
            "reboots",
            "statements",
            "types",
        )
    )
)

from tenure.providers.contract.bench import Bench  # noqa: E402
from tenure.providers.contract.changes import DriftContract, NoticeContract  # noqa: E402
from tenure.providers.contract.launches import LaunchContract, RepeatContract  # noqa: E402
from tenure.providers.contract.outside import ClassesOnly, outside  # noqa: E402
from tenure.providers.contract.reboots import RebootContract  # noqa: E402
from tenure.providers.contract.statements import StatementContract  # noqa: E402
from tenure.providers.contract.terminations import RefusalContract, TerminationContract  # noqa: E402
from tenure.providers.contract.types import TypesContract  # noqa: E402

__all__ = ["Bench", "ClassesOnly", "ProviderContract", "outside"]


class ProviderContract(
    TypesContract,
    StatementContract,
    LaunchContract,
    RepeatContract,
    RefusalContract,
    RebootContract,
    DriftContract,
    NoticeContract,
    TerminationContract,
):
    """All of it. Inherit from this one, under a name that begins with ``Test``."""
