"""A word of the language."""

from __future__ import annotations

from typing import NamedTuple


class Word(NamedTuple):
    name: str
    #: A sentence without its dot.
    means: str
    #: YAML: the word and what it takes. Errors repeat it where it is one line.
    example: str = ""
    #: The fields that it takes, where these are its own.
    fields: tuple[Word, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def hint(self) -> str:
        """How an error shows it."""
        return f"For example {self.example}." if self.example and "\n" not in self.example else ""
