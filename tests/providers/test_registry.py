"""Providers are found by entry point; a broken one does not disturb the others."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tenure.errors import SpecError
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.providers.kwok.provider import KWOK
from tenure.providers.registry import GROUP, find, names, usable


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=GROUP)


OURS = point("kwok", "tenure.providers.kwok.provider:KWOK")


def test_ours_is_installed_and_says_what_it_serves() -> None:
    assert "kwok" in names()
    provider = find("kwok")
    assert provider is KWOK
    assert provider.name == "kwok"
    assert provider.node_classes == (KWOK_NODE_CLASSES,)
    assert [option.name for option in provider.options] == ["instance-types-file"]


def test_an_unknown_name_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(SpecError) as refusal:
        find("kwik", [OURS, point("aws", "nowhere:PROVIDER")])
    assert str(refusal.value) == (
        "--provider: got 'kwik', expected one of the providers that are installed: aws, kwok"
    )


def test_without_any_provider_it_says_so() -> None:
    with pytest.raises(SpecError, match="none is installed"):
        find("kwok", [])


def test_a_plugin_that_cannot_be_imported_is_told_of_when_it_is_asked_for_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brittle.py").write_text("raise RuntimeError('two\\nlines')")
    monkeypatch.syspath_prepend(tmp_path)
    found = [OURS, point("brittle", "brittle:PROVIDER"), point("absent", "not_there:PROVIDER")]
    assert names(found) == ("absent", "brittle", "kwok")
    assert find("kwok", found) is KWOK
    with pytest.raises(SpecError, match="ModuleNotFoundError: No module named 'not_there'"):
        find("absent", found)
    with pytest.raises(SpecError) as refusal:
        find("brittle", found)
    assert str(refusal.value) == (
        "--provider: got 'brittle', expected a provider that can be imported from "
        "brittle:PROVIDER; RuntimeError: two. Is its SDK installed?"
    )


@pytest.mark.parametrize(
    "value",
    ["tenure.providers.kwok.provider:KwokProvider", "tenure.providers.kwok.provider:TYPES_FILE"],
    ids=["a class", "something else"],
)
def test_what_is_no_provider_is_refused_with_what_one_has(value: str) -> None:
    with pytest.raises(SpecError, match=r"an object with name, node_classes, kinds, .*, open"):
        find("odd", [point("odd", value)])


def test_a_plugin_whose_declaration_cannot_be_read_is_refused_and_disturbs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every provider's options are read for the help of ``tenure run``."""
    (tmp_path / "dated.py").write_text(
        "from tenure.providers.kwok.provider import KwokProvider\n"
        "class Dated(KwokProvider):\n"
        "    options = {'region': 'where instances are'}\n"
        "PROVIDER = Dated()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = [OURS, point("dated", "dated:PROVIDER"), point("absent", "not_there:PROVIDER")]
    with pytest.raises(SpecError, match="whose options are Option objects"):
        find("dated", found)
    assert usable(found) == (KWOK,)


def test_two_plugins_of_one_name_are_not_chosen_between() -> None:
    other = point("kwok", "elsewhere:KWOK")
    with pytest.raises(SpecError, match=r"not elsewhere:KWOK and tenure\.providers\.kwok"):
        find("kwok", [OURS, other])
    assert find("kwok", [OURS, OURS]) is KWOK, "found twice, but it is the same"


def test_what_runs_in_production_needs_nothing_that_only_tests_need() -> None:
    """The contract needs pytest, so nothing else may import it."""
    modules = "tenure.cli.main, tenure.cli.replica.replica, tenure.providers.registry"
    found = "tenure.providers.registry.find('kwok')"
    code = f"import sys, {modules}; {found}; print('pytest' in sys.modules)"
    ended = subprocess.run(  # noqa: S603  # our own words
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "False"
