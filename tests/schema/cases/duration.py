"""Every duration field, in Go's language or in Karpenter's narrower one."""

from __future__ import annotations

from tests.schema.cases.case import NO_DAYS, Case, pool_case


def _durations(kind: str, path: str, good: str, bad: str, message: str = NO_DAYS) -> list[Case]:
    fine = [Case(f"{path} of {text}", kind, {path: text}) for text in good.split()]
    wrong = [Case(f"{path} of {text}", kind, {path: text}, path, message) for text in bad.split()]
    return fine + wrong


PLAIN, GO = "0s 90s 1h30m 48h0m0s", "90s 1.5h 1h30m 5µs .5s 300ms"
DURATIONS = [
    *[
        case
        for kind, at in (("NodePool", "spec.template.spec"), ("NodeClaim", "spec"))
        for case in (
            *_durations(kind, f"{at}.terminationGracePeriod", PLAIN, "1d Never 1.5h -1h 5ms"),
            *_durations(kind, f"{at}.expireAfter", f"{PLAIN} Never", "1d never 1.5h -1h"),
            *_durations(kind, f"{at}.readinessTTL", f"{GO} +1h", "1d Never 0 0s -1h 1h30 h"),
            *_durations(kind, f"{at}.initializationTTL", f"{GO} Never", "1d 0s -1h never"),
        )
    ],
    *_durations("NodePool", "spec.disruption.consolidateAfter", f"{PLAIN} Never", "1d 1.5h"),
    *_durations("NodePool", "spec.disruption.maxPodProtection", GO, "1d 0s Never"),
    *_durations(
        "NodePool", "spec.repair.defaultTolerationDuration", f"{GO} 0 0s Never", "1d -5m 10"
    ),
    *_durations("KWOKNodeClass", "spec.nodeRegistrationDelay", PLAIN, "1d 1.5h"),
    pool_case(
        "a duration of a hundred digits",
        "spec.disruption.consolidateAfter",
        "1" * 100 + "h",
        "spec.disruption.consolidateAfter",
        "more than 64",
    ),
]
