"""What ``tenure explain`` and ``tenure forecast`` say, for the page."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.cluster.question import EXPLAINED, Question
from tenure.cli.explain import asjson
from tenure.cli.explain.explanation import explanation
from tenure.cli.explain.text import as_text
from tenure.cli.forecast.asjson import to_json
from tenure.cli.forecast.forecasting import Setting, forecast_of
from tenure.dashboard.web.source import NotThere
from tenure.errors import SpecError
from tenure.model.values.printable import clean_lines

SPAN: Final = timedelta(days=14)
_WIDTH: Final = 100


def why(evaluated: EvaluatedCluster, subject: str) -> bytes:
    """``subject`` as in messages: ``Pod/default/web-1``. Raises ``NotThere``."""
    kind = subject.partition("/")[0]
    try:
        question = Question.parse([subject])
    except SpecError:
        raise NotThere(
            f"{kind} has no explanation of its own; these have: {', '.join(one.kind for one in EXPLAINED)}"
        ) from None
    if question.resource.namespaced and not question.namespace:
        raise NotThere(f"a {question.resource.kind} is named with its namespace")
    answer = explanation(question, evaluated)
    if answer is None:
        raise NotThere(question.not_found(evaluated))
    text = clean_lines(as_text(answer, _WIDTH, verbose=False))
    return msgspec.json.encode({**asjson.to_value(answer), "text": text})


def calendar(evaluated: EvaluatedCluster, where: str, notes: tuple[str, ...]) -> bytes:
    setting = Setting(
        where=where,
        leader=evaluated.leader,
        clock=evaluated.clock,
        also_at=evaluated.also_at,
        notes=notes,
    )
    return to_json(forecast_of(evaluated, SPAN, None), setting).encode()
