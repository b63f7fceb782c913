"""Questions from another thread: asked there, answered in the source's own, between two steps of its work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, Final, TypeVar

from tenure.errors import Unavailable

T = TypeVar("T")

#: A question waits for a step of an evaluation, or of a scenario.
ANSWER_MAX: Final = timedelta(seconds=60)


class Questions:
    def __init__(self, wake: Callable[[], None]) -> None:
        """``wake`` is called from the thread that asks."""
        self._wake = wake
        self._asked: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._lock = threading.Lock()
        self._closed = False

    def ask(self, question: Callable[[], T]) -> T:
        """Its answer, or what it raises. Raises ``Unavailable`` where there is none in time."""
        answer: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise Unavailable("the board ends")
            self._asked.append((answer, question))
        self._wake()
        try:
            return answer.result(ANSWER_MAX.total_seconds())
        except TimeoutError:
            raise Unavailable(
                f"no answer within {ANSWER_MAX.seconds} s: the cluster is still being read"
            ) from None

    def answer(self) -> None:
        """All that were asked so far."""
        while True:
            with self._lock:
                if not self._asked:
                    return
                answer, question = self._asked.popleft()
            try:
                answer.set_result(question())
            except Exception as error:  # noqa: BLE001  # it belongs to the question
                answer.set_exception(error)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            while self._asked:
                self._asked.popleft()[0].set_exception(Unavailable("the board ends"))
