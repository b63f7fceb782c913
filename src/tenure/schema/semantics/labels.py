"""Names and values of labels and taints, checked as Kubernetes checks them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from tenure.errors import SpecError
from tenure.model.api.names import GROUP, HOSTNAME, NODEPOOL, WELL_KNOWN_LABELS

_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PREFIX_LENGTH: Final = 253
#: How alike two keys must be: their domain is most of them.
_CLOSE: Final = 0.9
_NAME_LENGTH: Final = 63


def is_qualified_name(text: str) -> bool:
    """A name of at most 63 characters, behind a DNS domain and a slash or alone."""
    prefix, slash, name = text.rpartition("/")
    if slash and (len(prefix) > _PREFIX_LENGTH or not _PREFIX.fullmatch(prefix)):
        return False
    return len(name) <= _NAME_LENGTH and _NAME.fullmatch(name) is not None


def is_object_name(text: str) -> bool:
    """A DNS subdomain."""
    return len(text) <= _PREFIX_LENGTH and _PREFIX.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    return not text or (len(text) <= _NAME_LENGTH and _NAME.fullmatch(text) is not None)


def key_problems(key: str, at: str) -> Iterator[SpecError]:
    """What is wrong with a label key that a pool sets or constrains."""
    if not is_qualified_name(key):
        yield SpecError(at, key, "a label key", "Use for example example.com/team.")
    if key == NODEPOOL:
        yield SpecError(at, key, "a label that is yours", "The pool itself sets this one.")
    elif key == HOSTNAME:
        yield SpecError(at, key, "a label that nodes share", "This one differs from node to node.")
    elif key not in WELL_KNOWN_LABELS and _is_reserved(key):
        close = get_close_matches(key, sorted(WELL_KNOWN_LABELS), n=1, cutoff=_CLOSE)
        hint = f"Did you mean {close[0]}? Else use" if close else "Use"
        hint += " a domain of your own, for example example.com/team."
        yield SpecError(at, key, f"a label outside the domain {GROUP}", hint)


def _is_reserved(key: str) -> bool:
    domain = key.rpartition("/")[0]
    return domain == GROUP or domain.endswith(f".{GROUP}")


def value_problems(value: str, at: str) -> Iterator[SpecError]:
    if not is_label_value(value):
        expected = "a label value of at most 63 letters, digits, '-', '_' and '.'"
        yield SpecError(at, value, expected, "Use for example team-a.")
