"""The schemas of what is served, for ``kubectl explain`` and ``kubectl apply``."""

from __future__ import annotations


def documents() -> dict[str, bytes]:
    return {}
