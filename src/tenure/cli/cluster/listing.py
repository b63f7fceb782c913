"""Lists every kind that deciders read. Without the lists there is no answer; a few can be done without."""

from __future__ import annotations

import asyncio
from typing import Final

from tenure.cli.cluster.greeting import advice
from tenure.core.policy.readers import READERS
from tenure.core.poolpolicy.govern import govern
from tenure.errors import Forbidden, NotFound, TenureError
from tenure.kube.cache.cache import Cache
from tenure.kube.cache.informer import in_words
from tenure.kube.client.client import Client
from tenure.model.api.resource import Resource
from tenure.model.snapshot.governed import Govern
from tenure.model.snapshot.kinds import decode_list
from tenure.runtime.observe.view import HELPFUL, SELECTORS, is_told


class CannotRead(TenureError):
    """There is no answer; ``problems`` has a sentence for each cause."""

    #: Of the command that needs the answer: its input was fine.
    exit_code: Final = 1

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "; ".join(self.problems)


async def everything(
    client: Client, kinds: tuple[Resource, ...], notes: list[str], governed_by: Govern = govern
) -> Cache:
    """``notes``: where it is said which kinds are done without."""
    cache = Cache(readers=READERS, govern=governed_by)

    async def fill(resource: Resource) -> None:
        raw, version = await client.list_all(resource, label_selector=SELECTORS.get(resource, ""))
        cache.replace(resource, decode_list(resource, raw), version)

    answers = await asyncio.gather(*map(fill, kinds), return_exceptions=True)
    unlisted: dict[Resource, str] = {}
    for resource, error in zip(kinds, answers, strict=True):
        if isinstance(error, TenureError):
            said = f"{resource} cannot be listed: {in_words(error)}"
            what = advice(error, resource)
            if isinstance(error, Forbidden | NotFound) and is_told(resource, error):
                cache.list_failed(resource, in_words(error))
            unlisted[resource] = f"{said}; {what}" if what else said
        elif error is not None:
            raise error
    missed = [kind for kind in unlisted if kind not in HELPFUL | cache.tables.unlisted.keys()]
    if missed:
        raise CannotRead(*(said for kind, said in unlisted.items() if kind not in HELPFUL))
    notes += unlisted.values()
    return cache
