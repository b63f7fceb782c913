"""The contract's asserts explain themselves, as those of our own tests do."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tenure.providers.contract")
