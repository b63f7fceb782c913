"""Finds what there is to say about an object: its verdicts, and those that bear on it.

A pod that runs has no verdict of its own; then what is said about its node counts, and a
node is explained together with its claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Final

import msgspec

from tenure.core.decision import Verdict
from tenure.errors import SpecError
from tenure.model import resource as r
from tenure.model.resource import Resource
from tenure.sim.scenario.kindwords import resource_called
from tenure.sim.scenario.stage import clock, span
from tenure.sim.tree import Obj, dig
from tenure.sim.world import World

EXPLAINED: Final = (r.NODES, r.NODE_CLAIMS, r.PODS, r.NODE_POOLS, r.MAINTENANCE_WINDOWS)
_WORDS: Final = "node, claim, pod, pool or window"
_HINT: Final = "For example claim/general-x7k2p or pod team-a/web-1."


class Question(msgspec.Struct, frozen=True):
    resource: Resource
    name: str
    namespace: str = ""

    @classmethod
    def parse(cls, words: Sequence[str], namespace: str = "") -> Question:
        """``KIND/NAME``, ``KIND NAME``, and for pods also ``KIND/NAMESPACE/NAME``."""
        said = "/".join(words)
        kind, _, rest = said.partition("/")
        resource = resource_called(kind)
        if resource not in EXPLAINED or len(words) > 2:
            raise SpecError("KIND", " ".join(words), _WORDS, _HINT)
        assert resource is not None
        before, _, name = rest.rpartition("/")
        if not name or (before and not resource.namespaced):
            raise SpecError("NAME", rest, f"the name of a {resource.kind}", _HINT)
        given = before or namespace or "default"
        return cls(resource, name, given if resource.namespaced else "")

    def __str__(self) -> str:
        return "/".join(part for part in (self.resource.kind, self.namespace, self.name) if part)

    def not_found(self, world: World) -> str:
        """That it is not there, when it was last heard of, and what is there instead."""
        when = f"at {span(world.elapsed)}"
        last = [e for e in world.history.entries if e.subject == str(self) and not e.outcome]
        names = [obj["metadata"]["name"] for obj in world.store.list(self.resource, self.namespace)]
        if last:
            entry = last[-1]
            said = f"last heard of at {clock(entry.at)}: {entry.reason} {entry.message}".rstrip()
            return f"{self} is not there {when}; {said}"
        if not names:
            return f"there is no {self} {when}, and no other {self.resource.kind}"
        close = get_close_matches(self.name, names, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {_some(names)}"
        return f"there is no {self} {when}; {hint}"


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    subject: str
    at: datetime
    #: What a person sees of the object, in one sentence.
    state: str
    #: On the object itself, the governing one first.
    verdicts: tuple[Verdict, ...]
    #: On what it stands on: a pod's node, a node's claim, a claim's node.
    around: tuple[Verdict, ...]


def explanation(question: Question, world: World) -> Explanation | None:
    """None when there is no such object now."""
    obj = world.store.find(question.resource, question.namespace, question.name)
    if obj is None:
        return None
    return Explanation(
        subject=str(question),
        at=world.now,
        state=_state(question.resource, obj),
        verdicts=tuple(_about(world, obj)),
        around=tuple(
            v for other in _around(world, question.resource, obj) for v in _about(world, other)
        ),
    )


def _about(world: World, obj: Obj) -> list[Verdict]:
    metadata = obj["metadata"]
    judge = world.controller.judge
    return judge.about(obj["kind"], metadata["name"], metadata.get("namespace", ""))


def _around(world: World, resource: Resource, obj: Obj) -> list[Obj]:
    if resource == r.PODS:
        node = world.store.find(r.NODES, "", obj["spec"].get("nodeName", ""))
        return [] if node is None else [node, *_around(world, r.NODES, node)]
    if resource == r.NODES:
        wanted = obj["spec"].get("providerID")
        claims = world.store.list(r.NODE_CLAIMS)
        return [c for c in claims if wanted and dig(c, "status", "providerID") == wanted]
    if resource == r.NODE_CLAIMS:
        node = world.store.find(r.NODES, "", dig(obj, "status", "nodeName") or "")
        return [] if node is None else [node]
    return []


def _state(resource: Resource, obj: Obj) -> str:
    leaving = "deletionTimestamp" in obj["metadata"]
    words = [f"being deleted since {obj['metadata']['deletionTimestamp']}"] if leaving else []
    if resource == r.PODS:
        node = obj["spec"].get("nodeName")
        words.append(f"{dig(obj, 'status', 'phase') or 'Pending'} on {node or 'no node'}")
    conditions = dig(obj, "status", "conditions") or ()
    shown = [f"{one['type']}={one['status']}" for one in conditions if resource != r.PODS]
    words += [", ".join(shown)] if shown else []
    return "; ".join(words) or "no status yet"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
