"""When the pods that need new nodes get them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tenure.core.provision.batch import Batch, arriving_until
from tenure.core.provision.demand import Demand
from tenure.model.api.meta import later
from tenure.model.settings import Settings
from tests.core.build import a_pending_pod, ago, ahead

SETTINGS = Settings()


def came(*seconds: float) -> list[Demand]:
    """Pods that arrived that many seconds ago."""
    return [Demand(a_pending_pod(f"p{i}"), ago(s)) for i, s in enumerate(seconds)]


def seen(*seconds: float) -> list[Demand]:
    """Pods that we first saw that many seconds ago, with much older timestamps."""
    return [Demand(a_pending_pod(f"p{i}"), ago(60), seen_at=ago(s)) for i, s in enumerate(seconds)]


def closes_at(batch: Batch, decided: float | None = None) -> datetime | None:
    return batch.closes_at(None if decided is None else ago(decided), SETTINGS)


def test_without_a_pod_that_needs_a_node_there_is_no_batch() -> None:
    assert closes_at(Batch(coming=came(1))) is None


@pytest.mark.parametrize(
    ("batch", "decided", "closes"),
    [
        pytest.param(Batch(needing=came(5, 1)), None, ahead(1), id="an idle second after the last"),
        pytest.param(Batch(needing=came(9, 0)), None, ahead(1), id="ten seconds after the first"),
        pytest.param(
            Batch(needing=came(5), coming=came(0)),
            None,
            ahead(2),
            id="a pod that fits a node on its way is of the same stream",
        ),
        pytest.param(Batch(needing=came(3)), 60, ago(1), id="a decision long ago does not matter"),
        pytest.param(
            Batch(needing=came(2, 1)),
            4,
            ahead(6),
            id="in a stream: ten seconds after the last decision",
        ),
        pytest.param(
            Batch(needing=came(300)),
            4,
            ahead(6),
            id="an old pod that lost its place belongs to the batch after the last decision",
        ),
        pytest.param(
            Batch(needing=came(300), sold_out_at=ago(0.5)),
            4,
            ahead(0.5),
            id="once a claim could not be had: an idle second after that",
        ),
        pytest.param(
            Batch(needing=came(300), sold_out_at=ago(90)),
            4,
            ahead(6),
            id="what was sold out before the last decision is known to it",
        ),
    ],
)
def test_a_batch_closes(batch: Batch, decided: float | None, closes: datetime) -> None:
    assert closes_at(batch, decided) == closes


@pytest.mark.parametrize(
    ("until", "closes"),
    [
        pytest.param(ahead(6), ahead(6), id="then it is known that no pod arrives any more"),
        pytest.param(ahead(9), ahead(9), id="three seconds at the most"),
        pytest.param(ahead(9.5), ahead(6), id="pods arrive without a pause"),
        pytest.param(ahead(2), ahead(6), id="the stream was over before"),
    ],
)
def test_in_a_pause_of_the_stream_a_batch_stays_open(until: datetime, closes: datetime) -> None:
    """Decided before, it would get larger nodes, for pods that do not come any more."""
    batch = Batch(needing=came(2, 1))
    assert batch.closes_at(ago(4), SETTINGS, until) == closes


def test_while_pods_keep_arriving_decisions_are_ten_seconds_apart() -> None:
    """By the age of the oldest pod, every evaluation would launch nodes for the newest pods."""
    decisions: list[datetime] = []
    left: list[Demand] = []
    for tick in range(1200):
        now = ahead(tick / 10)
        if tick < 1000:
            left.append(Demand(a_pending_pod(f"p{tick}"), now))
        closes = Batch(needing=left).closes_at(decisions[-1] if decisions else None, SETTINGS)
        if closes is not None and closes <= now:
            decisions.append(now)
            left = []
    assert 10 <= len(decisions) <= 11


@pytest.mark.parametrize(
    ("demands", "until"),
    [
        pytest.param([], None, id="no pod"),
        pytest.param(seen(9, 3), ago(2), id="an idle second after we saw the last"),
        pytest.param(came(0), None, id="a pod that we did not see arrive tells nothing"),
    ],
)
def test_a_next_pod_is_expected(demands: list[Demand], until: datetime | None) -> None:
    assert arriving_until(demands, SETTINGS, None) == until


@pytest.mark.parametrize(
    ("decided", "until"),
    [
        pytest.param(8, ahead(1), id="it has outlasted a decision"),
        pytest.param(25, ago(2), id="that was long ago"),
        pytest.param(3, ago(2), id="no pod has come since"),
    ],
)
def test_a_stream_of_pods_may_pause_for_half_a_batch(decided: float, until: datetime) -> None:
    assert arriving_until(seen(9, 3), SETTINGS, ago(decided)) == until


def test_a_pod_that_the_scheduler_has_not_tried_yet_shows_that_more_arrive() -> None:
    assert arriving_until(seen(9, 3), SETTINGS, None, ago(1)) == ago(0)
    assert arriving_until(seen(9, 3), SETTINGS, None, ago(8)) == ago(2)
    assert arriving_until([], SETTINGS, None, ago(1)) is None


def test_a_burst_is_over_when_its_batch_closes() -> None:
    """The watch shows pods some hundredths of a second after they were created."""
    shown = later(ago(0), timedelta(milliseconds=50))
    burst = [Demand(a_pending_pod("p"), ago(0), seen_at=shown)]
    closes = Batch(needing=burst).closes_at(None, SETTINGS)
    assert closes is not None
    assert arriving_until(burst, SETTINGS, None, shown) == closes
