"""How long a Lease holds, and what the arithmetic of the fence rests on."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tenure.errors import SpecError
from tenure.kube.client.client import ANSWER_MAX
from tenure.model.settings import Settings

#: Share by which a pause varies, so that replicas do not always ask together.
JITTER: Final = 0.2
#: Karpenter goes by its own setting, not by the duration that stands in the Lease.
KARPENTERS_DURATION: Final = timedelta(seconds=15)


def check_times(settings: Settings) -> None:
    """Raises ``SpecError`` for times with which two could act at once."""
    deadline, duration = settings.lease_renew_deadline, settings.lease_duration
    if settings.lease_name == Settings().lease_name and deadline + ANSWER_MAX > KARPENTERS_DURATION:
        raise SpecError(
            "lease_renew_deadline",
            f"{deadline.total_seconds():g}s",
            f"at most {(KARPENTERS_DURATION - ANSWER_MAX).total_seconds():g}s for Karpenter's Lease, "
            "which Karpenter takes when it was not renewed for "
            f"{KARPENTERS_DURATION.total_seconds():g}s, whatever stands in it",
        )
    if deadline + ANSWER_MAX > duration:
        raise SpecError(
            "lease_renew_deadline",
            f"{deadline.total_seconds():g}s",
            f"at least {ANSWER_MAX.total_seconds():g}s less than lease_duration, "
            f"which is {duration.total_seconds():g}s",
        )
    if settings.lease_retry * (1 + JITTER) >= deadline:
        raise SpecError(
            "lease_retry",
            f"{settings.lease_retry.total_seconds():g}s",
            f"well below lease_renew_deadline, which is {deadline.total_seconds():g}s",
        )
