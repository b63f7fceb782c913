"""Completes ``KIND/NAME`` and ``KIND NAME`` with the names of objects in the cluster.

Asked for by a shell while its user waits: at most two seconds, only reads, and nothing is said of what goes wrong.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

#: For connecting and listing; starting the program takes the rest of two seconds.
ANSWER_MAX: Final = timedelta(seconds=1.2)
#: A shell shows no more.
NAMES_MAX: Final = 500
KINDS: Final = ("node", "claim", "pod", "pool", "window", "policy", "pdb")


def complete_subject(
    ctx: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """For the argument of ``explain``."""
    before = [word for word in ctx.params.get("what") or () if word]
    if not before and "/" not in incomplete:
        return [CompletionItem(f"{kind}/") for kind in KINDS if kind.startswith(incomplete)]
    kind, _slash, begun = incomplete.rpartition("/") if not before else (before[0], "", incomplete)
    try:
        found = names(kind, ctx.params)
    except Exception:  # noqa: BLE001  # a shell that completes has no place for what is wrong
        return []
    front = f"{kind}/" if not before else ""
    return [CompletionItem(f"{front}{name}") for name in found if name.startswith(begun)]


def names(kind: str, given: Any) -> Sequence[str]:
    """Of the first objects of that kind, sorted. ``kind`` may have a namespace behind it: ``pod/team-a``.

    Raises ``SpecError`` for a word that is no kind.
    """
    from tenure.cli.cluster.access import find_access  # loaded only when a shell asks
    from tenure.cli.cluster.question import Question

    word, _, inside = kind.partition("/")
    resource = Question.parse([f"{word}/any"]).resource
    kubeconfig = given.get("kubeconfig") or os.environ.get("KUBECONFIG", "")
    reached = find_access(kubeconfig, given.get("context") or "", os.environ)
    usual = given.get("namespace") or reached.access.namespace or "default"
    namespace = (inside or usual) if resource.namespaced else ""
    return asyncio.run(_names(reached, resource, namespace))


async def _names(reached: Any, resource: Any, namespace: str) -> Sequence[str]:
    from tenure.kube.client.client import Client
    from tenure.kube.client.credentials import credentials_for
    from tenure.kube.client.http import HttpTransport
    from tenure.model.snapshot.kinds import decode_list
    from tenure.runtime.clock.system import SystemClock
    from tenure.runtime.readonly import LookOnlyTransport

    credentials = credentials_for(reached.access, SystemClock())
    async with (
        asyncio.timeout(ANSWER_MAX.total_seconds()),
        HttpTransport(reached.access, credentials) as transport,
    ):
        client = Client(LookOnlyTransport(transport))
        async for page in client.pages(resource, namespace):
            found = decode_list(resource, page.items or ())
            return sorted(one.name for one in found if one.name.isprintable())[:NAMES_MAX]
    return ()
