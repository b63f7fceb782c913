"""karpenter.sh/do-not-disrupt: every value has a meaning, and an invalid one protects."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tenure.core.protect.protection import Protection, protection_of
from tenure.model.api.meta import FOR_EVER
from tests.core.build import a_pod, ago, ahead

CREATED = ago(600)

TABLE = [
    ("true", FOR_EVER, False),
    ("4h", ahead(4 * 3600 - 600), False),
    ("10m", ahead(0), False),
    ("1.5h", ahead(5400 - 600), False),
    ("1h30m", ahead(5400 - 600), False),
    ("100ms", ago(599.9), False),
    ("9000h", ahead(9000 * 3600 - 600), False),
    ("True", FOR_EVER, True),
    ("yes", FOR_EVER, True),
    ("", FOR_EVER, True),
    ("1d", FOR_EVER, True),
    ("4 hours", FOR_EVER, True),
    ("3600", FOR_EVER, True),
    ("0", FOR_EVER, True),
    ("0s", FOR_EVER, True),
    ("-5m", FOR_EVER, True),
    ("Never", FOR_EVER, True),
]


@pytest.mark.parametrize(("value", "until", "unreadable"), TABLE, ids=[repr(v) for v, *_ in TABLE])
def test_the_value_says_how_long(value: str, until: datetime, unreadable: bool) -> None:
    pod = a_pod(protected=value, creation_timestamp=CREATED)
    assert protection_of(pod) == Protection(value, until, unreadable)


def test_a_protection_beyond_the_end_of_time_has_no_end() -> None:
    pod = a_pod(
        protected="2562047h", creation_timestamp=datetime.fromisoformat("9900-01-01T00:00Z")
    )
    assert protection_of(pod) == Protection("2562047h", FOR_EVER)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="a pod without the annotation"),
        pytest.param({"protected": "false"}, id="false means not protected"),
        pytest.param({"protected": "true", "phase": "Succeeded"}, id="a finished pod"),
        pytest.param({"protected": "true", "phase": "Failed"}, id="a failed pod"),
        pytest.param({"protected": "true", "deletion_timestamp": ago(1)}, id="a terminating pod"),
    ],
)
def test_nothing_is_protected_by(fields: dict[str, Any]) -> None:
    assert protection_of(a_pod(**fields)) is None
