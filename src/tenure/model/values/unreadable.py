"""The fact that an object exists and cannot be used: which one, which field, and what is wrong there."""

from __future__ import annotations

from tenure.model.values.fact import Fact


class UnreadableObject(Fact, frozen=True):
    """Other facts have it as a part: what is (not) done because of it is theirs to say."""

    kind: str
    #: With its namespace.
    name: str
    #: Empty where it is not known.
    field: str = ""
    #: The types of the field as the decoder names them; empty where the type is not what is wrong.
    expected: str = ""
    got: str = ""
    #: What is wrong where it is not the type: in the words of the decoder, or of the error that a
    #: decider failed with.
    error: str = ""
    #: It can be read, but a decider failed on it.
    decoded: bool = False

    def __str__(self) -> str:
        wrong = self.error or f"Expected `{self.expected}`, got `{self.got}`"
        at = f" at {self.field}" if self.field else ""
        verb = "evaluated" if self.decoded else "read"
        return f"{self.kind} {self.name} cannot be {verb}: {wrong}{at}"
