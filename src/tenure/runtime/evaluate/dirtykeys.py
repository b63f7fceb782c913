"""Which keys have to be evaluated: those that a change, an observation or the start concerns.

Asking a decider for its keys may fail, which is a fault of ours. The object that it fails on is set
aside (``isolation``), and all known keys of that decider are evaluated, to be on the safe side. If
it fails all the same, a verdict says so, and the decider is asked again after a while.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from msgspec.structs import replace

from tenure.core.decider import AnyDecider
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.provision.placement import CLUSTER
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODES, PODS, Resource
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import UNKNOWN, is_unreadable
from tenure.runtime.evaluate.blame import described
from tenure.runtime.evaluate.deferral import Deferrals
from tenure.runtime.evaluate.facts import KeysUnknown
from tenure.runtime.evaluate.failures import failed_verdicts
from tenure.runtime.evaluate.isolation import Isolation
from tenure.runtime.evaluate.results import Results
from tenure.runtime.evaluate.verdicts import VerdictsInForce

#: Stands for asking a decider for its keys; no key has such a name.
_KEYS: Final = "(keys)"

#: Keys by the position of their decider; a dict keeps their order and has each once.
Dirty = list[dict[str, None]]

#: The position of a decider, the decider, and which changes it may leave for a moment.
_Concerned = tuple[int, AnyDecider, Callable[[Change], bool] | None]


class DirtyKeys:
    def __init__(
        self,
        deciders: Sequence[AnyDecider],
        unmoved: Mapping[Resource, Collection[Concern]],
        *,
        results: Results,
        deferrals: Deferrals,
        isolation: Isolation,
        verdicts: VerdictsInForce,
    ) -> None:
        """``unmoved``: by kind, the concerns to which its changes make no difference."""
        self._deciders = deciders
        self._unmoved = unmoved
        self._results = results
        self._deferrals = deferrals
        self._isolation = isolation
        self._verdicts = verdicts
        self._asked: dict[Resource, tuple[_Concerned, ...]] = {}
        #: Deciders that could not list their keys, and the verdicts that say so.
        self._failed: dict[int, tuple[Verdict, ...]] = {}
        self._news: list[Verdict] = []

    def take_news(self) -> list[Verdict]:
        """New verdicts that say that a decider could not list its keys."""
        news, self._news = self._news, []
        return news

    def failing(self) -> list[Verdict]:
        return [verdicts[0] for verdicts in self._failed.values()]

    def next_at(self) -> datetime | None:
        """When a decider that failed is asked again."""
        instants = (verdicts[0].recheck_at for verdicts in self._failed.values())
        return min((at for at in instants if at is not None), default=None)

    def everything(self, snapshot: Snapshot, now: datetime) -> Dirty:
        return [self._all_keys(at, snapshot, now) for at in range(len(self._deciders))]

    def found(
        self,
        snapshot: Snapshot,
        changes: Iterable[Change],
        observed: Iterable[Subject],
        now: datetime,
    ) -> Dirty:
        dirty = self.changed(snapshot, changes, now)
        for position, keys in enumerate(dirty):
            if position in self._failed and _is_over(self._failed[position], now):
                keys |= self._all_keys(position, snapshot, now)  # noqa: PLW2901  # in place
        for subject in observed:
            for position, decider in enumerate(self._deciders):
                ask = partial(decider.observed, subject, snapshot)
                try:
                    found = dict.fromkeys(ask())
                except Exception:  # noqa: BLE001  # a fault of ours
                    found = self._found_anyway(position, ask, snapshot, now)
                if found and self._deferrals.observation_may_wait(position, subject):
                    found = dict.fromkeys(self._not_deferred(position, found, now))
                dirty[position] |= found
        return dirty

    def changed(self, snapshot: Snapshot, changes: Iterable[Change], now: datetime) -> Dirty:
        dirty: Dirty = [{} for _ in self._deciders]
        for change in [told for one in changes for told in _as_told(one, snapshot)]:
            for position, decider, may_wait in self._concerned(change.resource):
                try:
                    found = list(decider.touched(change, snapshot))
                except Exception:  # noqa: BLE001  # a fault of ours
                    ask = partial(_touched_by, decider, change, snapshot)
                    found = list(self._found_anyway(position, ask, snapshot, now))
                if may_wait is not None and may_wait(change):
                    found = self._not_deferred(position, found, now, change)
                for key in found:
                    dirty[position][key] = None
        return dirty

    def _not_deferred(
        self, position: int, keys: Iterable[str], now: datetime, change: Change | None = None
    ) -> list[str]:
        found = []
        for key in keys:
            if not self._deferrals.defers((position, key), now):
                found.append(key)
            elif change is not None:
                self._deferrals.prolong((position, key), change)
        return found

    def _concerned(self, resource: Resource) -> tuple[_Concerned, ...]:
        """The deciders whose keys a change of this kind may touch."""
        asked = self._asked.get(resource)
        if asked is None:
            unmoved = self._unmoved.get(resource, ())
            asked = self._asked[resource] = tuple(
                (position, decider, self._deferrals.may_wait(position))
                for position, decider in enumerate(self._deciders)
                if decider.concern not in unmoved
            )
        return asked

    def _all_keys(self, position: int, snapshot: Snapshot, now: datetime) -> dict[str, None]:
        """The keys that exist, and those that existed."""
        decider = self._deciders[position]
        found, error = self._ask(position, lambda: decider.keys(snapshot), snapshot, now)
        if error is not None:
            return self._not_found(position, error, snapshot, now, again=True)
        self._verdicts.replace(self._failed.pop(position, ()), ())
        return dict.fromkeys(sorted({*found, *self._results.keys_of(position)}))

    def _found_anyway(
        self, position: int, ask: Callable[[], Iterable[str]], snapshot: Snapshot, now: datetime
    ) -> dict[str, None]:
        """What it answers with the bad object set aside; and all known keys."""
        found, error = self._ask(position, ask, snapshot, now)
        if error is not None:
            return self._not_found(position, error, snapshot, now)
        return dict.fromkeys([*found, *self._results.keys_of(position)])

    def _ask(
        self, position: int, ask: Callable[[], Iterable[str]], snapshot: Snapshot, now: datetime
    ) -> tuple[list[str], Exception | None]:
        """The keys, with bad objects set aside, or what is raised all the same."""
        work, raised = (position, _KEYS), None
        while True:
            try:
                found = list(ask())
            except Exception as error:  # noqa: BLE001  # one bad object must not stop the others
                if self._isolation.failed(work, error, snapshot, now):
                    continue
                found, raised = [], error
            self._isolation.ended(work, lambda _, __: list(ask()), now)
            return found, raised

    def _not_found(
        self,
        position: int,
        error: Exception,
        snapshot: Snapshot,
        now: datetime,
        *,
        again: bool = False,
    ) -> dict[str, None]:
        """All known keys, and a verdict that there may be others."""
        known = self._failed.get(position, ())
        if not known or again:
            concern = self._deciders[position].concern
            unknown = KeysUnknown(concern, described(error))
            said = tuple(failed_verdicts(concern, CLUSTER, _KEYS, unknown, snapshot, now))
            # A pool that has a verdict of this concern keeps it.
            others = self._verdicts.without_any(said[1:])
            self._failed[position] = (said[0], *others)
            self._news += self._verdicts.replace(known, self._failed[position])
        return dict.fromkeys(self._results.keys_of(position))


def _is_over(verdicts: Sequence[Verdict], now: datetime) -> bool:
    return verdicts[0].recheck_at is not None and verdicts[0].recheck_at <= now


def _as_told(change: Change, snapshot: Snapshot) -> Iterator[Change]:
    """The changes that deciders are told of. When a pod becomes unreadable, or readable again, that
    makes a difference to everything about its Node, so the Node counts as changed as well."""
    yield change
    if change.resource != PODS or not any(map(is_unreadable, change.versions())):
        return
    for pod in change.versions():
        assert isinstance(pod, Pod)
        name = pod.spec.node_name
        nodes = snapshot.nodes.values() if name == UNKNOWN else [snapshot.nodes.get(name)]
        yield from (Change(NODES, one.name, one, one) for one in nodes if one is not None)


def _touched_by(decider: AnyDecider, change: Change, snapshot: Snapshot) -> Iterable[str]:
    """With the object as it is now: it may have been set aside. Its old version fails then, too."""
    if change.new is not None:
        new = snapshot.objects(change.resource).get(change.key)
        change = replace(change, old=None if is_unreadable(new) else change.old, new=new)
    return decider.touched(change, snapshot)
