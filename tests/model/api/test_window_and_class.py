"""How maintenance windows and node classes are read."""

from __future__ import annotations

import msgspec
import pytest

from tenure.model.api.window import MaintenanceWindow
from tenure.providers.kwok.nodeclass import KWOKNodeClass


def test_a_window_reads_its_times_actions_and_nodes() -> None:
    text = """{"spec": {
        "schedules": [{"cron": "0 22 * * 1-5", "duration": "8h", "timeZone": "Europe/Berlin"}],
        "dates": [{"from": "2026-12-24T00:00:00Z", "until": "2026-12-27T00:00:00Z"}],
        "actions": ["Drift"],
        "selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}}}"""
    spec = msgspec.json.decode(text, type=MaintenanceWindow).spec
    assert spec.schedules[0].time_zone == "Europe/Berlin"
    assert spec.dates[0].from_ == "2026-12-24T00:00:00Z"
    assert spec.actions == ("Drift",)
    assert spec.selector.match_expressions[0].values == ("b",)


@pytest.mark.parametrize(
    ("written", "blocks"),
    [
        ("{}", True),
        ('{"type": "Block"}', True),
        ('{"type": "?"}', True),
        ('{"type": "Allow"}', False),
    ],
    ids=["nothing said", "Block", "something unreadable", "Allow"],
)
def test_a_window_blocks_unless_it_plainly_allows(written: str, blocks: bool) -> None:
    window = msgspec.json.decode(f'{{"spec": {written}}}', type=MaintenanceWindow)
    assert window.blocks is blocks


@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_windows_and_classes_say_whether_they_can_be_used(status: str) -> None:
    def text(type_: str) -> str:
        return f'{{"status": {{"conditions": [{{"type": "{type_}", "status": "{status}"}}]}}}}'

    usable = status == "True"
    assert msgspec.json.decode(text("Valid"), type=MaintenanceWindow).valid is usable
    assert msgspec.json.decode(text("Ready"), type=KWOKNodeClass).ready is usable
