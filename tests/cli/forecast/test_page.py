"""The page is one well-formed file that fetches nothing, whatever objects are called."""

from __future__ import annotations

import re
from datetime import timedelta
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import msgspec

from tenure.cli.forecast.forecasting import Setting
from tenure.cli.forecast.page import as_page
from tenure.cli.forecast.text import as_text
from tenure.core.facts import Quoted
from tenure.core.forecast.result import (
    BudgetForecast,
    Expiry,
    Forecast,
    Moment,
    MomentKind,
    Peak,
    PoolForecast,
    Rotation,
    Start,
    WindowForecast,
)
from tests.core.build import NOW, ahead

HOSTILE = """</title><script src='https://evil.example/x.js'>alert("&")</script>"""


def a_forecast(name: str = "general", *, days: int = 14, active: bool = False) -> Forecast:
    """One of everything, all of that name."""
    return Forecast(
        at=NOW,
        until=NOW + timedelta(days=days),
        windows=(
            WindowForecast(
                name=name,
                type="Allow",
                actions=(name,),
                nodes=3,
                active=active,
                changes=(ahead(3600), ahead(7200), ahead(90_000)),
                known_until=NOW + timedelta(days=days),
                problem=name,
            ),
        ),
        budgets=(
            BudgetForecast(pool=name, index=0, nodes=name, active=True, changes=(ahead(60),)),
        ),
        expiries=(Expiry(at=ahead(300), pool=name, claim=name),),
        moments=(
            Moment(at=ahead(30), kind=MomentKind.PROTECTION, subject=name, what=Quoted(name)),
        ),
        starts=(
            Start(
                at=ahead(3600),
                pool=name,
                reason=name,
                claim=name,
                due_at=ahead(300),
                ends_at=ahead(3700),
                replaced=True,
            ),
            Start(
                at=ahead(3601),
                pool=name,
                reason=name,
                claim=name,
                due_at=NOW,
                ends_at=None,
                replaced=True,
                approximate=True,
            ),
        ),
        pools=(
            PoolForecast(
                name=name,
                nodes=3,
                launch_takes=timedelta(seconds=40),
                peak=Peak(2, ahead(3601)),
                problem=name,
                rotations=(
                    Rotation(
                        reason=name,
                        now=1,
                        due=4,
                        started=2,
                        waiting=2,
                        never=1,
                        late=1,
                        late_by=timedelta(hours=30),
                        why=((2, Quoted(name)),),
                    ),
                ),
            ),
        ),
        peak=Peak(2, ahead(3601)),
        notes=(name,),
    )


def parsed(page: str) -> ElementTree.Element:
    assert page.startswith("<!DOCTYPE html>\n")
    return ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))  # noqa: S314  # our own


def test_it_is_well_formed_and_fetches_nothing() -> None:
    page = as_page(a_forecast(), Setting(where="staging"))
    tags = {one.tag for one in parsed(page).iter()}
    assert {"svg", "rect", "table", "h2"} <= tags
    assert not tags & {"script", "link", "img", "iframe", "object", "image", "use"}
    assert not re.findall(r"(?:src|href|url|@import)\s*[:=(]", page)


def test_hostile_names_stay_text() -> None:
    everything = a_forecast(HOSTILE)
    page = as_page(everything, Setting(where=HOSTILE, leader=HOSTILE, notes=(HOSTILE,)))
    tree = parsed(page)
    assert not [one for one in tree.iter() if one.tag == "script"]
    assert "<script" not in page
    told = "".join(tree.itertext())
    assert told.count(HOSTILE) > 10, "it is shown as it is"


def test_a_window_is_a_bar_from_opening_to_closing() -> None:
    for active, bars in ((False, 2), (True, 2)):
        tree = parsed(as_page(a_forecast(active=active), Setting(where="x")))
        (picture,) = (one for one in tree.iter("svg") if one.get("role") == "img")
        found = [one for one in picture.iter("rect") if one.get("class") == "allow"]
        assert len(found) == bars
        assert all(float(one.get("width") or 0) > 0 for one in found)


def test_a_window_that_opens_often_is_drawn_until_the_end() -> None:
    """Every five minutes for two weeks: 4,032 bars, and less than a pixel for each."""
    often = tuple(ahead(60 * minute) for minute in range(0, 14 * 24 * 60, 5))
    changes = tuple(at + timedelta(minutes=more) for at in often for more in (0, 3))
    (window,) = a_forecast().windows
    busy = msgspec.structs.replace(window, changes=changes)
    page = as_page(msgspec.structs.replace(a_forecast(), windows=(busy,)), Setting(where="x"))
    bars = [one for one in parsed(page).iter("rect") if one.get("class") == "allow often"]
    assert len(bars) == 1
    left, width = (float(bars[0].get(name) or 0) for name in ("x", "width"))
    assert left + width > 995, "the picture ends with the forecast"
    (title,) = bars[0]
    assert (title.text or "").startswith("4032 times: ")


def test_an_end_of_what_is_listed_is_said() -> None:
    (window,) = a_forecast().windows
    short = msgspec.structs.replace(window, known_until=ahead(7300))
    page = as_page(msgspec.structs.replace(a_forecast(), windows=(short,)), Setting(where="x"))
    assert "changes of MaintenanceWindow general after" in page


def test_an_empty_forecast_is_a_page_too() -> None:
    page = as_page(Forecast(at=NOW, until=ahead(60)), Setting(where="x"))
    assert "no candidate waits" in page
    parsed(page)


def test_text_and_page_have_the_days_and_clocks_of_the_zone() -> None:
    """Noon in UTC is an hour after midnight of the next day in Auckland."""
    setting = Setting(where="x", zone=ZoneInfo("Pacific/Auckland"))
    text, page = as_text(a_forecast(), setting), as_page(a_forecast(), setting)
    assert "\n2026-03-03 Tuesday (Pacific/Auckland)\n" in text
    assert "<h2>2026-03-03 Tuesday (Pacific/Auckland)</h2>" in page
    assert all("2026-03-03T01:00:00+13:00" in shown for shown in (text, page)), "where it begins"
    opens = next(line for line in text.splitlines() if "MaintenanceWindow general opens" in line)
    assert opens.strip().startswith("02:00:00")
    assert not re.search(r"\dZ\b", text + page)
    assert "2026-03-02 Monday (UTC)" in as_text(a_forecast(), Setting(where="x"))
