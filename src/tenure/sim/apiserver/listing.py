"""Lists as the API serves them: selected, in the order of keys, page by page.

All pages of one list show the same instant: the token remembers the version of the first
page, and later pages undo what has happened since. A token older than the history is 410,
as after a compaction of a real server.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Mapping
from datetime import timedelta

import msgspec

from tenure.errors import ApiError, Cause, Gone, shown
from tenure.model.api.resource import Resource
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.sim.apiserver.objects.numbers import is_number
from tenure.sim.apiserver.objects.refusals import bad_request
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.kindstore import Shelf
from tenure.sim.apiserver.store.selection import selected
from tenure.sim.apiserver.store.watch import Record

_encode = msgspec.json.encode


class _Token(msgspec.Struct):
    """Where the next page begins: after ``start``, as things were at version ``rv``."""

    rv: int
    start: str


def list_body(shelf: Shelf, namespace: str, query: Mapping[str, str], version: int) -> bytes:
    """The list that this query asks for, as JSON."""
    token = _read_token(query)
    wanted = token.rv if token else _exact_version(query, version)
    if wanted == version:
        items = shelf.listed(namespace)
    else:
        items = [item for item in _past(shelf, wanted) if _inside(shelf, item[0], namespace)]
    if token:
        items = items[bisect_right(items, token.start, key=lambda item: item[0]) :]
    matches = selected(shelf.kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    if matches is not None:
        items = [(key, r) for key, r in items if matches(shelf.as_read(r).obj)]
    metadata: Obj = {"resourceVersion": str(wanted)}
    limit = number(query, "limit")
    if limit > 0 and len(items) > limit:
        metadata["continue"] = _token(wanted, items[limit - 1][0])
        if matches is None:
            metadata["remainingItemCount"] = len(items) - limit
        items = items[:limit]
    return _body(shelf, [record for _, record in items], metadata)


def _past(shelf: Shelf, version: int) -> list[tuple[str, Record]]:
    try:
        return shelf.at_version(version)
    except Gone as error:
        message = "The provided continue parameter is too old to display a consistent list result."
        raise Gone(message) from error


def _inside(shelf: Shelf, key: str, namespace: str) -> bool:
    return not namespace or not shelf.kind.resource.namespaced or key.startswith(f"{namespace}/")


def _exact_version(query: Mapping[str, str], version: int) -> int:
    """The version to show: the present one, unless an exact past one is asked for."""
    asked = number(query, "resourceVersion")
    if asked > version:
        raise ApiError(
            f"Too large resource version: {asked}, current: {version}",
            status=504,
            reason="Timeout",
            causes=[Cause("ResourceVersionTooLarge", "Too large resource version")],
            retry_after=timedelta(seconds=1),
        )
    return asked if query.get("resourceVersionMatch") == "Exact" else version


def number(query: Mapping[str, str], name: str) -> int:
    """A whole number of the query; 0 when it is not there. Raises 400 for anything else."""
    text = query.get(name, "") or "0"
    if not is_number(text.removeprefix("-")):
        raise bad_request(f"{name}: invalid number {shown(text)!r}")
    return int(text)


def _read_token(query: Mapping[str, str]) -> _Token | None:
    text = query.get("continue", "")
    if not text:
        return None
    try:
        return msgspec.json.decode(urlsafe_b64decode(text), type=_Token)
    except (ValueError, *DECODE_ERRORS):
        raise bad_request("continue key is not valid") from None


def _token(version: int, last: str) -> str:
    return urlsafe_b64encode(_encode(_Token(version, last))).decode()


def _body(shelf: Shelf, records: list[Record], metadata: Obj) -> bytes:
    resource = shelf.kind.resource
    # Items of a built-in kind do not repeat apiVersion and kind; custom ones do.
    skipped = 0 if shelf.kind.custom else len(type_prefix(resource))
    opening = b"" if shelf.kind.custom else b"{"
    items = b",".join(opening + shelf.as_read(record).raw[skipped:] for record in records)
    return b'{"kind":"%bList","apiVersion":"%b","metadata":%b,"items":[%b]}' % (
        resource.kind.encode(),
        resource.api_version.encode(),
        _encode(metadata),
        items,
    )


def type_prefix(resource: Resource) -> bytes:
    """How the JSON of every stored object of that kind begins."""
    return b'{"apiVersion":"%b","kind":"%b",' % (
        resource.api_version.encode(),
        resource.kind.encode(),
    )
