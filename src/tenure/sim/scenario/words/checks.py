"""What may be expected, and when."""

from __future__ import annotations

from typing import Final

from tenure.sim.scenario.words.word import Word

_OBJECT: Final = Word(
    "node, claim, pod, pool, …",
    "the object, a target under the word for its kind; other kinds as `kind` beside the target's fields",
)
_FILTER: Final = Word("name, namespace, pool, app, labels", "which are counted")


def _states(what: str) -> tuple[Word, ...]:
    means = {
        "pods": (
            ("count", "all"),
            ("running", "phase Running, not terminating"),
            ("ready", "running, and Ready"),
            ("pending", "phase Pending, not terminating"),
            ("terminating", "deleted, not yet stopped"),
            ("finished", "Succeeded or Failed"),
        ),
        "nodes": (
            ("count", "all"),
            ("ready", "Ready is True"),
            ("not-ready", "Ready is False, Unknown or missing"),
            ("cordoned", "closed for new pods"),
            ("leaving", "deleted, not yet gone"),
        ),
        "claims": (
            ("count", "all"),
            ("launched", "with an instance"),
            ("registered", "with a Node"),
            ("in-service", "initialized, and not deleted"),
            ("leaving", "deleted, not yet gone"),
        ),
        "instances": (
            ("count", "all"),
            ("running", "billed"),
            ("terminating", "until the cloud has forgotten them"),
            ("unclaimed", "running without a NodeClaim"),
        ),
    }[what]
    return tuple(Word(name, said) for name, said in means)


TIMES: Final = (
    Word(
        "at",
        "at that instant, before what happens then; `end` is the end of the run",
        "at: end\npods: {app: web, running: 4}",
    ),
    Word(
        "by",
        "at some instant until then; from `after` on, where that is there",
        "by: 4m\npods: {app: web, running: 3}",
    ),
    Word(
        "within",
        "at some instant of the span that begins with `after`",
        "after: 1m\nwithin: 3m\nnodes: {ready: {min: 1}}",
    ),
    Word(
        "always",
        "at every instant; from `after`, until `until`, where these are there",
        "always: {pods: {app: web, running: {min: 3}}}\nafter: 4m\nuntil: 12m",
    ),
    Word(
        "never",
        "at no instant; from `after`, until `until`, where these are there",
        "never: {nodes: {count: {min: 9}}}",
    ),
    Word("after", "where the time begins", "after: 2m\nby: 6m\npods: {app: web, ready: 3}"),
    Word(
        "until",
        "where the time of `always` and `never` ends",
        "never: {reason: Draining}\nuntil: 5m",
    ),
    Word(
        "name",
        "what the result calls the expectation",
        "name: all pods run\nby: 4m\npods: {running: {min: 3}}",
    ),
)

CHECKS: Final = (
    Word(
        "pods",
        "counts pods",
        "pods: {app: web, running: 3, pending: 0}",
        (*_states("pods"), _FILTER),
    ),
    Word(
        "nodes",
        "counts Nodes; those of an `app` run its pods",
        "nodes: {pool: general, ready: {min: 1}, not-ready: 0}",
        (*_states("nodes"), _FILTER),
    ),
    Word(
        "claims",
        "counts NodeClaims",
        "claims: {pool: general, in-service: {min: 1, max: 5}}",
        (*_states("claims"), _FILTER),
    ),
    Word(
        "instances",
        "counts instances of the cloud",
        "instances: {capacity-type: on-demand, unclaimed: 0}",
        (*_states("instances"), Word("instance-type, zone, capacity-type", "which are counted")),
    ),
    Word(
        "objects",
        "counts objects of any kind",
        "objects: {kind: Deployment, count: 1}",
        (
            Word("kind", "a kind, or a short word for it: `pdb`, `np`"),
            Word("count", "how many; else at least one"),
            _FILTER,
        ),
    ),
    Word(
        "condition",
        "compares a condition of an object",
        "condition: {node: {app: web}, type: Ready, status: True}",
        (
            _OBJECT,
            Word("type", "such as `Ready`"),
            Word("status", "`True`, `False` or `Unknown`; else `True`"),
            Word("reason", "the condition's reason, where it matters"),
        ),
    ),
    Word(
        "reason",
        "Tenure gave a [reason](reasons.md), since `after` or the start; `reason: Launched` alone will do",
        'reason: {is: Launched, of: "NodeClaim/general-*", subjects: {min: 1}}',
        (
            Word("is", "the code"),
            Word("of", 'the object, a glob such as `"Node/*"`; else any'),
            Word("subjects", "of how many objects; else at least one"),
        ),
    ),
    Word(
        "verdict",
        "compares the reason that governs an object now",
        "verdict: {claim: {app: web}, reason: InService}",
        (_OBJECT, Word("reason", "the code")),
    ),
    Word(
        "cost",
        "compares what the instances cost, in dollars",
        "cost: {total: {max: 1.5}, hourly: {max: 2}}",
        (Word("total", "so far"), Word("hourly", "now, for an hour")),
    ),
)
