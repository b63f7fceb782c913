"""Log lines: what happened, in words that can be searched for, with the rest as fields.

JSON has one object on each line; the text is for people at a terminal. What other libraries
log comes out the same way. Errors that repeat are said once and then counted: an API server
that is away for an hour is a few lines, not ten thousand.
"""

from __future__ import annotations

import errno
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, Final

import msgspec
import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from tenure.errors import EvaluationError, TenureError
from tenure.model.api.meta import format_time
from tenure.ports.clock import Clock

Log = FilteringBoundLogger

#: The disk is full, or breaks.
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
#: The same sentence is said again after this long, with how often it was true in between.
REPEAT_AFTER: Final = timedelta(minutes=5)
#: Sentences of one family in a row, before the rest of them is only counted for a minute.
FAMILY_MAX: Final = 20
FAMILY_PERIOD: Final = timedelta(minutes=1)
#: Sentences that are remembered.
REMEMBERED: Final = 1000


def make_log(
    stream: BinaryIO, clock: Clock, *, level: str, text: bool, colors: bool = False
) -> Log:
    """A logger for the whole program; there is no global one."""
    proxy: Log = structlog.wrap_logger(
        structlog.BytesLogger(_Dropping(stream)),  # type: ignore[arg-type]  # all that it uses
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            _stamp(clock),
            *(_as_text(colors) if text else (_as_json,)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
    )
    # Bound now: the proxy would bind anew for each line.
    logger: Log = proxy.bind()
    return logger


class _Dropping:
    """A stream that drops lines for which there is no room: nodes matter more than words.

    So does one that is closed: libraries may log after the program has ended. A reader that has gone
    is another matter: a broken pipe means that we should end.
    """

    name = ""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, line: bytes) -> None:
        with self._room():
            if not self._stream.closed:
                self._stream.write(line)

    def flush(self) -> None:
        with self._room():
            if not self._stream.closed:
                self._stream.flush()

    @contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise


def _stamp(clock: Clock) -> Processor:
    def stamp(_: WrappedLogger, __: str, fields: EventDict) -> EventDict:
        now = clock.now().astimezone(UTC).isoformat(timespec="milliseconds")
        return {"time": now.removesuffix("+00:00") + "Z", "level": fields.pop("level"), **fields}

    return stamp


_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)


def _as_json(_: WrappedLogger, __: str, fields: MutableMapping[str, Any]) -> bytes:
    ordered = {"time": fields.pop("time"), "level": fields.pop("level")}
    message = fields.pop("event", "")
    return _ENCODER.encode({**ordered, "message": message, **fields})


def _as_text(colors: bool) -> tuple[Processor, ...]:
    render = structlog.dev.ConsoleRenderer(
        colors=colors, timestamp_key="time", sort_keys=False, pad_event_to=0
    )

    def encode(logger: WrappedLogger, name: str, fields: EventDict) -> bytes:
        return str(render(logger, name, fields)).encode("utf-8", "replace")

    return (encode,)


class LibraryHandler(logging.Handler):
    """Takes what aiohttp and asyncio have to say into our log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        say = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        say(record.getMessage(), library=record.name, exc_info=record.exc_info or None)


@contextmanager
def library_lines(log: Log) -> Iterator[None]:
    """What libraries log in this time goes into our log."""
    handler = LibraryHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


class _Said(msgspec.Struct):
    #: On the monotonic clock.
    at: float
    unsaid: int = 0


class Sparing:
    """Whether to say something, and how often it has been left unsaid."""

    def __init__(self, clock: Clock, withheld: Callable[[], None] = lambda: None) -> None:
        self._clock = clock
        self._withheld = withheld
        self._sentences: OrderedDict[str, _Said] = OrderedDict()
        self._families: dict[str, tuple[float, int]] = {}

    def times_unsaid(self, sentence: str, family: str) -> int | None:
        """None when it is better left unsaid now."""
        now = self._clock.monotonic()
        known = self._sentences.get(sentence)
        new = known is None or now - known.at >= REPEAT_AFTER.total_seconds()
        if not new or not self._room(family, now):
            if known is not None:
                known.unsaid += 1
            self._withheld()
            return None
        self._sentences[sentence] = _Said(now)
        self._sentences.move_to_end(sentence)
        if len(self._sentences) > REMEMBERED:
            self._sentences.popitem(last=False)
        return known.unsaid if known else 0

    def _room(self, family: str, now: float) -> bool:
        began, count = self._families.get(family, (now, 0))
        if now - began >= FAMILY_PERIOD.total_seconds():
            began, count = now, 0
        self._families[family] = (began, count + 1)
        return count < FAMILY_MAX


class Complaints:
    """Where errors beside actions go: said sparingly, counted always."""

    def __init__(self, log: Log, sparing: Sparing, count: Callable[[str], None]) -> None:
        self._log = log
        self._sparing = sparing
        self._count = count

    def report(self, error: TenureError, *, sentence: str = "", advice: str = "") -> None:
        """``sentence``: better words than the error's own."""
        sentence, kind = sentence or str(error), type(error).__name__
        self._count(kind)
        unsaid = self._sparing.times_unsaid(sentence, kind)
        if unsaid is not None:
            fields = {"kind": kind, "advice": advice, "timesUnsaid": unsaid}
            # A fault of ours is an error, whatever else goes on beside it.
            say = self._log.error if isinstance(error, EvaluationError) else self._log.warning
            say(sentence, **{name: value for name, value in fields.items() if value})


def instant(at: datetime | None) -> str | None:
    return format_time(at) if at is not None else None
