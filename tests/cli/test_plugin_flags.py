"""``kubectl tenure`` takes the flags that users of kubectl type, or says in one line why not."""

from __future__ import annotations

import pytest

from tenure.cli.main import run
from tenure.cli.plugin import PROGRAM, in_order, plugin

WHOLE = "is left out: forecast looks at the whole cluster"


@pytest.mark.parametrize(
    ("words", "command", "known"),
    [
        ("--context staging why node/n1", "why", "--context staging node/n1"),
        ("-n team-a why pod/web-1", "why", "-n team-a pod/web-1"),
        ("why pod/web-1 -nteam-a", "why", "pod/web-1 -n team-a"),
        ("why pod/web-1 --namespace=team-a -o json", "why", "pod/web-1 --namespace team-a --json"),
        ("plan -ojson --context=c", "plan", "--json --context c"),
        ("plan --output=json -v", "plan", "--json -v"),
        ("board -o json", "board", "-o json"),
        ("forecast -A", "forecast", ""),
        ("--kubeconfig f forecast --for 3d", "forecast", "--kubeconfig f --for 3d"),
        ("--version", "", "--version"),
        ("", "", ""),
    ],
)
def test_flags_before_and_behind_the_command(words: str, command: str, known: str) -> None:
    found = in_order(words.split())
    assert (found.command, found.words, found.notes) == (command, tuple(known.split()), ())


@pytest.mark.parametrize(
    ("words", "known", "note"),
    [
        ("forecast -n x", "", f"-n x {WHOLE}"),
        ("-n x forecast --json", "--json", f"-n x {WHOLE}"),
        ("forecast --namespace=x", "", f"--namespace x {WHOLE}"),
        ("why node/n1 -A", "node/n1", "-A is left out: why is about one object; -n names its namespace"),
    ],
)  # fmt: skip
def test_what_does_not_bear_on_the_command_is_left_out_with_a_note(
    words: str, known: str, note: str
) -> None:
    found = in_order(words.split())
    assert (found.words, found.notes) == (tuple(known.split()), (note,))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("forecast --as jane", "--as: got 'jane', expected a context of the kubeconfig"),
        ("--server https://x plan", "--server: got 'https://x', expected a context"),
        ("plan -s https://x", "-s: got 'https://x', expected a context"),
        ("plan -o yaml", "-o: got 'yaml', expected json. Without it the answer is text."),
        ("plan -w", "-w: got 'plan', expected one look. kubectl tenure board shows changes"),
        ("plan -l a=b", "-l: got 'a=b', expected the name of one object"),
        ("plan --request-timeout=5s", "--request-timeout: got '5s', expected no time-out"),
        ("plan --insecure-skip-tls-verify", "expected a certificate that is verified"),
        ("nodes -n x", "got 'nodes', expected one of why, board, forecast"),
    ],
)
def test_what_cannot_be_taken_is_refused_in_one_line(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split(), plugin, PROGRAM) == 2
    (line,) = [one for one in capsys.readouterr().err.splitlines() if not one.startswith("note: ")]
    assert said in line
