"""The objects that can be asked about, each with what governs it and the command that asks."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.cluster.question import EXPLAINED
from tenure.cli.explain.alike import SETTLED
from tenure.cli.view.columns import hanging, rows
from tenure.cli.view.instants import with_relative
from tenure.core.reasons import Reason
from tenure.model.api import resource as r
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.resource import Resource

#: The word for each kind that is the easiest to type.
WORDS: Final = {
    r.NODE_POOLS: "pool",
    r.NODE_POOL_POLICIES: "policy",
    r.MAINTENANCE_WINDOWS: "window",
    r.NODE_CLAIMS: "claim",
    r.NODES: "node",
    r.PODS: "pod",
    r.POD_DISRUPTION_BUDGETS: "pdb",
}
assert set(WORDS) == set(EXPLAINED)


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """One object, as ``tenure explain`` takes it."""

    what: str
    #: Of the verdict that governs it; empty where there is none.
    reason: str
    message: str
    #: Asks why.
    explain: str

    @property
    def news(self) -> bool:
        return not self.reason or Reason(self.reason) not in SETTLED


class Played(msgspec.Struct, frozen=True):
    """Which scenario was played to which moment, as options say it."""

    file: Path
    at: str
    seed: int | None

    def command(self, what: str) -> str:
        seed = "" if self.seed is None else f" --seed {self.seed}"
        return f"tenure explain {what} --in {shlex.quote(str(self.file))} --at {self.at}{seed}"


def named_objects(evaluated: EvaluatedCluster, played: Played) -> list[Named]:
    return [
        _named(resource, item, evaluated, played)
        for resource in WORDS
        for item in sorted(
            evaluated.snapshot.objects(resource).values(), key=lambda one: (one.namespace, one.name)
        )
    ]


def _named(
    resource: Resource, item: ApiObject, evaluated: EvaluatedCluster, played: Played
) -> Named:
    what = "/".join(part for part in (WORDS[resource], item.namespace, item.name) if part)
    verdict = next(iter(evaluated.about(resource, item)), None)
    return Named(
        what=what,
        reason="" if verdict is None else verdict.reason,
        message="" if verdict is None else verdict.message,
        explain=played.command(what),
    )


def listed(
    objects: list[Named],
    evaluated: EvaluatedCluster,
    width: int | None,
    *,
    verbose: bool = False,
) -> Iterator[str]:
    """How many there are, the objects, and how to ask about one of them.

    What is as it should be has no sentence: of a hundred nodes in service all say the same. ``verbose``: it has.
    """
    counts = Counter(one.what.partition("/")[0] for one in objects)
    said = ", ".join(_many(counts[word], word) for word in WORDS.values() if counts[word])
    instant = format_time(evaluated.at)
    yield f"{said or 'no objects'} at {evaluated.also_at} ({instant})"
    if not objects:
        return
    yield ""
    cells = [
        (
            one.what,
            one.reason or "–",
            "".join(with_relative([one.message if verbose or one.news else ""], evaluated.at)),
        )
        for one in objects
    ]
    yield from rows(cells, width)
    yield ""
    # What comes and goes is what is asked about.
    example = next((one for one in objects if one.what.startswith("claim/")), objects[0])
    yield from hanging("Ask why: ", example.explain, width)


def _many(count: int, word: str) -> str:
    if count == 1:
        return f"1 {word}"
    return f"{count} policies" if word == "policy" else f"{count} {word}s"
