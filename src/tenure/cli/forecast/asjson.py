"""A forecast as JSON: one object, whose fields ``docs/forecast.md`` lists."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from tenure.cli.forecast.forecasting import Setting
from tenure.core.forecast.result import Forecast, Peak, PoolForecast, Rotation
from tenure.model.api.meta import format_time


def to_json(forecast: Forecast, setting: Setting) -> str:
    shown = {
        "at": format_time(forecast.at),
        "until": format_time(forecast.until),
        "where": setting.where,
        "leader": setting.leader or None,
        "windows": [_plain(one) for one in forecast.windows],
        "budgets": [_plain(one) for one in forecast.budgets],
        "expiries": [_plain(one) for one in forecast.expiries],
        "moments": [
            {
                "at": format_time(one.at),
                "kind": one.kind,
                "subject": one.subject,
                "message": str(one.what),
            }
            for one in forecast.moments
        ],
        "starts": [_plain(one) for one in forecast.starts],
        "pools": [_pool(one) for one in forecast.pools],
        "peak": _peak(forecast.peak),
        "notes": [*forecast.notes, *setting.notes],
    }
    return msgspec.json.encode(shown).decode()


def _pool(pool: PoolForecast) -> dict[str, Any]:
    takes = pool.launch_takes
    return {
        "name": pool.name,
        "nodes": pool.nodes,
        "launchSeconds": None if takes is None else _seconds(takes),
        "peak": _peak(pool.peak),
        "rotations": [_rotation(one) for one in pool.rotations],
        "expiredByForce": pool.expired_by_force,
        "problem": pool.problem or None,
    }


def _rotation(rotation: Rotation) -> dict[str, Any]:
    last = rotation.last_start
    return {
        "reason": rotation.reason,
        "now": rotation.now,
        "due": rotation.due,
        "again": rotation.again,
        "started": rotation.started,
        "late": rotation.late,
        "lateBySeconds": _seconds(rotation.late_by),
        "waiting": rotation.waiting,
        "never": rotation.never,
        "otherwise": rotation.otherwise,
        "overdue": rotation.overdue,
        "longestWaitSeconds": _seconds(rotation.longest),
        "lastStart": None if last is None else format_time(last),
        "why": [{"nodes": count, "message": str(fact)} for count, fact in rotation.why],
    }


def _peak(peak: Peak) -> dict[str, Any]:
    return {"nodes": peak.nodes, "at": None if peak.at is None else format_time(peak.at)}


def _seconds(span: timedelta) -> int:
    return round(span.total_seconds())


def _plain(thing: msgspec.Struct) -> dict[str, Any]:
    """Its fields by their names in JSON; instants to the second."""
    return {_camel(name): _value(getattr(thing, name)) for name in thing.__struct_fields__}


def _value(value: object) -> object:
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, tuple):
        return [_value(one) for one in value]
    return None if value == "" else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(one.title() for one in others)
