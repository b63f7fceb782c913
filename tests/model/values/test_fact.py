"""Facts as sentences, and as much of one as an event holds."""

from __future__ import annotations

from tenure.model.values.fact import Fact, sentence, shortened


class Said(Fact, frozen=True):
    text: str

    def __str__(self) -> str:
        return self.text


FACTS = tuple(Said(f"NodePool p{n} is full") for n in range(10))


def test_what_fits_is_said_whole() -> None:
    assert shortened(FACTS, 1024) == sentence(FACTS)


def test_what_does_not_fit_is_left_out_fact_by_fact_and_counted() -> None:
    said = shortened(FACTS, 120)
    assert said.startswith("NodePool p0 is full; NodePool p1 is full; ")
    assert said.endswith("; and 7 more, which tenure explain tells")
    assert len(said) <= 120


def test_one_fact_that_is_too_long_is_cut() -> None:
    assert shortened((Said("x" * 50),), 20) == "x" * 20
    assert len(shortened((Said("x" * 50), Said("y")), 20)) == 20
