"""Texts that others write: how long they may be before they are parsed.

An annotation may have 256 KB. A value is measured before it is parsed, so that what it costs does
not grow with it.
"""

from __future__ import annotations

from typing import Final

#: Longer than any duration or schedule that a user means; nothing longer is parsed.
PARSED_MAX: Final = 512
