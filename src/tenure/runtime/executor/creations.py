"""What is being created: it cannot be seen in the cluster yet, and counts all the same.

A replacement is planned by a pass that may have begun a moment ago. So its pool's limits are asked once more
right before it is created, with everything that is being created for pending pods, and the replacements that were to be
created before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

import msgspec

from tenure.core.decision import Action, Create
from tenure.core.pool.limits import used_since
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.snapshot.snapshot import Snapshot


class Creations:
    def __init__(self) -> None:
        #: By target.
        self._creating: dict[str, Create] = {}
        #: What has been created meanwhile.
        self._created: set[str] = set()
        #: What is to be created as soon as fewer actions are under way.
        self._postponed: set[str] = set()

    def __bool__(self) -> bool:
        """Whether something is being created, or about to be, that cannot be seen yet."""
        return bool(self._creating or self._postponed)

    def __contains__(self, target: str) -> bool:
        """Whether it has been created meanwhile: its decider has not been evaluated since."""
        return target in self._created

    def begin(self) -> None:
        """Everything that is to be done is submitted once more."""
        self._postponed.clear()

    def postpone(self, target: str, action: Action) -> None:
        if isinstance(action, Create):
            self._postponed.add(target)

    def start(self, target: str, action: Action) -> None:
        if isinstance(action, Create):
            self._creating[target] = action

    def succeeded(self, target: str) -> None:
        if target in self._creating:
            self._created.add(target)

    def ended(self, target: str) -> None:
        self._creating.pop(target, None)
        if not self._creating:
            self._created.clear()

    def over_limits(self, target: str, action: Action, snapshot: Snapshot) -> str:
        """What has changed under a replacement, so that it would exceed a limit of its pool; else empty."""
        if not _is_replacement(action):
            return ""
        claim = _claim(action)
        resource = used_since(claim, snapshot, self._before(target))
        return (
            resource and f"the {resource} that the limits of NodePool {claim.pool_name} leave has"
        )

    def _before(self, target: str) -> Iterator[NodeClaim]:
        """Of two replacements the first counts for the second, so that not both are held."""
        before = True
        for other, action in self._creating.items():
            before = before and other != target
            if other != target and (before or not _is_replacement(action)):
                yield _claim(action)


def _is_replacement(action: Action) -> TypeGuard[Create]:
    if not isinstance(action, Create) or action.resource != NODE_CLAIMS:
        return False
    return bool(action.disrupts_for)


def _claim(action: Create) -> NodeClaim:
    return msgspec.convert(action.body, NodeClaim)
