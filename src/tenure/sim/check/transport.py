"""The API that shows every write of Tenure to the checkers.

It is inside the transport, behind its delays and faults, so that a request is evaluated
at the instant at which the store carries it out.
"""

from __future__ import annotations

from typing import Any, Final

from tenure.errors import SpecError
from tenure.parse import jsontext
from tenure.ports.transport import Request, Response
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.routes import route
from tenure.sim.apiserver.store.store import Store
from tenure.sim.check.checkers import Checkers

_READING: Final = ("GET", "HEAD")


class CheckedApi(Api):
    def __init__(self, store: Store, checkers: Checkers) -> None:
        super().__init__(store)
        self._seen = store
        self._checkers = checkers

    def handle(self, request: Request) -> Response:
        target = route(request.path)
        if request.method in _READING or target is None:
            return super().handle(request)
        before = self._seen.find(target.resource, target.namespace, target.name)
        self._checkers.will_write(request.method, target, _body(request))
        response = super().handle(request)
        self._checkers.has_written(target, before)
        return response


def _body(request: Request) -> Any:
    try:
        return jsontext.body(request.body) if request.body else {}
    except SpecError:
        return {}  # The API refuses it; there is nothing to evaluate.
