"""What is wrong with the repair block of a pool or NodePoolPolicy, as far as no API server can say.

A policy that cannot be used is ignored, and the others count; what is wrong with the block itself
takes all of it out of use.

Which conditions the provider watches is not in the object, so it is handed in: only
with it can be said whether an entry must name the status that means unhealthy.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from typing import Final

import re2

from tenure.errors import SpecError
from tenure.model.api.nodepool import (
    REPAIR_ACTIONS,
    TERMINATION_MODES,
    NodePool,
    Repair,
    RepairPolicy,
)
from tenure.schema.semantics.disruption import choice_problems, share_problems
from tenure.schema.semantics.spans import span_problems

#: Conditions of Kubernetes itself, whose unhealthy status is known.
KNOWN_CONDITIONS: Final = (
    "Ready",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "NetworkUnavailable",
)
REASON_LENGTH: Final = 256


def repair_problems(pool: NodePool, watched: Collection[str] | None) -> Iterator[SpecError]:
    """``watched``: the condition types that the pool's provider states; None: unknown."""
    block = pool.spec.repair
    if block is None:
        return
    yield from block_problems(block)
    yield from entry_problems(block, watched)


def entry_problems(block: Repair, watched: Collection[str] | None) -> Iterator[SpecError]:
    """What takes single policies of the block out of use."""
    if watched is None:
        watched = [policy.condition_type for policy in block.policies]
    for index, policy in enumerate(block.policies):
        at = f"spec.repair.policies[{index}]"
        yield from policy_problems(policy, block.termination_mode, watched, at)


def block_problems(block: Repair) -> Iterator[SpecError]:
    """What takes the whole block out of use."""
    at = "spec.repair"
    yield from share_problems(block.max_unhealthy, f"{at}.maxUnhealthy")
    yield from choice_problems(block.termination_mode, TERMINATION_MODES, f"{at}.terminationMode")
    tolerated = block.default_toleration_duration
    yield from span_problems(tolerated, f"{at}.defaultTolerationDuration", never=True)


def policy_problems(
    policy: RepairPolicy, mode: str, watched: Collection[str], at: str = ""
) -> Iterator[SpecError]:
    """What takes this one policy out of use. ``mode``: what its block says."""
    yield from _condition_problems(policy, watched, at)
    yield from span_problems(policy.toleration, f"{at}.toleration", never=True)
    yield from choice_problems(policy.termination_mode, TERMINATION_MODES, f"{at}.terminationMode")
    yield from choice_problems(policy.action, REPAIR_ACTIONS, f"{at}.action")
    grace = policy.termination_grace_period
    yield from span_problems(grace, f"{at}.terminationGracePeriod")
    if grace is not None and (policy.termination_mode or mode) != "Graceful":
        expected = "no grace period with terminationMode Forceful, which does not drain"
        hint = "Add terminationMode: Graceful."
        yield SpecError(f"{at}.terminationGracePeriod", grace, expected, hint)


def _condition_problems(
    policy: RepairPolicy, watched: Collection[str], at: str
) -> Iterator[SpecError]:
    type_ = policy.condition_type
    if not type_:
        yield SpecError(f"{at}.conditionType", type_, "a node condition", "Use for example Ready.")
    yield from choice_problems(policy.status, ("True", "False", "Unknown"), f"{at}.status")
    if policy.status is None and type_ not in KNOWN_CONDITIONS and type_ not in watched:
        expected = f"the status that means unhealthy, because the provider does not watch {type_}"
        near = difflib.get_close_matches(type_, sorted({*KNOWN_CONDITIONS, *watched}), n=1)
        # With a status, a misspelt condition would be a policy that never applies.
        hint = f"Did you mean {near[0]}?" if near else 'Write for example status: "True".'
        yield SpecError(f"{at}.status", None, expected, hint)
    if policy.reason is not None:
        yield from _reason_problems(policy.reason, f"{at}.reason")


def _reason_problems(reason: str, at: str) -> Iterator[SpecError]:
    if len(reason) > REASON_LENGTH:
        expected = f"an expression of at most {REASON_LENGTH} characters"
        yield SpecError(at, f"{reason[:40]}…", expected, "Use a shorter one.")
        return
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(reason, options)
    except re2.error:
        yield SpecError(at, reason, "an RE2 expression", "Use for example ^Kubelet.")
