"""How an action ended: one word for counting, a sentence for people."""

from __future__ import annotations

from typing import Final

import msgspec


class Outcome(msgspec.Struct, frozen=True):
    """How an action ended, in one word, with the rest of the sentence and the HTTP status."""

    word: str
    detail: str = ""
    status: int = 200

    def __str__(self) -> str:
        return f"{self.word}: {self.detail}" if self.detail else self.word


OK: Final = Outcome("ok")
NO_EFFECT: Final = Outcome("no effect", "the server had nothing to change")
