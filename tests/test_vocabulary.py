"""Names, and the texts of scenarios, have no word that the project gave up: ``docs/glossary.md``.

``LEFT`` lists the names that keep one, and why. It only ever gets shorter.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tenure.cli.view.story import BEATS

ROOT: Final = Path(__file__).parent.parent
#: In no name at all. A PDB that is called a budget cannot be told from the budget of a NodePool here.
#: Joined, so that a search for one of these words finds only where it is used.
_NOT_SAID: Final = (
    "judge_judges_judged_judging_judgement_judgements_peer_peers_sick_ill_ills_illness_nobody_"
    "nobodys_somebody_whoever_machine_machines_contender_contenders_exchange_exchanges_mover_"
    "movers_obstacle_obstacles_witness_witnesses_census_memoir_manners_pulse_knowledge_shop_"
    "shops_filling_fillings_telling_saying_standing_standings_"
)
NOT_SAID: Final = frozenset(filter(None, _NOT_SAID.split("_")))
#: Not in the name of a class or a function; a sentence that names a test may have them.
NOT_A_NAME: Final = frozenset({"hold", "held"})
WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

#: JudgementFailed is a reason code that alerts may name. A Lease has a holder, which holds it, and the
#: metric tenure_held_back tells of a replica that another one's Lease holds back.
_LEFT: Final = """
    JUDGEMENT_FAILED
    _held
    _hold
    _hold_back
    held_back
    held_last_by_tenure
    was_never_held
"""
LEFT: Final = frozenset(_LEFT.split())

#: Not in what a scenario or an example says to its reader. A name of a field may have them.
_NOT_TOLD: Final = (
    "hold_holds_held_told_machine_machines_well_tried_who_whom_asked_given up_gives up_at work_"
    "goes away"
)
NOT_TOLD: Final = re.compile(
    rf"\b({'|'.join(sorted(NOT_SAID) + _NOT_TOLD.split('_'))})\b(?!:)", re.IGNORECASE
)
STORIES: Final = ("examples", "tests/scenarios/cases")


def names_of(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Each name that the module gives, and whether a class or a function has it."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name):
                yield name, True
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, not name.startswith("test_")
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name, False
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.alias(asname=str(name)):
                yield name, False


def given_up(name: str, *, is_definition: bool) -> bool:
    words = {word.lower() for word in WORD.findall(name)}
    return bool(words & (NOT_SAID | NOT_A_NAME if is_definition else NOT_SAID))


def found() -> dict[str, str]:
    """Names with a word that was given up, and a file that has them."""
    where = {}
    for folder in ("src", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            names = [(path.stem, False), *names_of(ast.parse(path.read_text()))]
            for name, is_definition in names:
                if given_up(name, is_definition=is_definition):
                    where[name] = str(path.relative_to(ROOT))
    return where


def test_a_name_is_split_into_words() -> None:
    assert given_up("ManifestJudge", is_definition=True)
    assert given_up("PEERS_DURATION", is_definition=False)
    assert given_up("_is_held", is_definition=True)
    assert not given_up("held", is_definition=False)
    assert not given_up("illegal_workshop", is_definition=True)


def test_no_name_has_a_word_that_was_given_up() -> None:
    new = {name: file for name, file in found().items() if name not in LEFT}
    assert not new, "say it in the words of docs/glossary.md"


def test_the_list_of_what_is_left_has_nothing_that_is_done() -> None:
    assert sorted(LEFT - found().keys()) == [], "take these out of LEFT"


@pytest.mark.parametrize("folder", STORIES)
def test_no_text_of_a_scenario_has_a_word_that_was_given_up(folder: str) -> None:
    lines = {
        f"{path.relative_to(ROOT)}:{number}": line
        for path in sorted((ROOT / folder).rglob("*.yaml"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
    }
    assert lines
    assert {at: line for at, line in lines.items() if NOT_TOLD.search(line)} == {}


def test_the_demo_says_no_word_that_was_given_up() -> None:
    assert [beat.say for beat in BEATS if NOT_TOLD.search(beat.say)] == []
