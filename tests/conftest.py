"""Settings shared by all tests.

Properties are tried on the same examples every time, so that a red test is red for
everybody; ``make fuzz`` explores new ones (``TENURE_EXAMPLES=explore``).
"""

from __future__ import annotations

import os

from hypothesis import settings

from tests.contract.tally import pytest_terminal_summary as pytest_terminal_summary

settings.register_profile("repeat", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("TENURE_EXAMPLES", "repeat"))
