"""``# tenure: ignore CODE because …``: a comment of a manifest takes findings back, with a reason.

In order: a comment that is incomplete, or names no code that exists, does nothing and is a finding. A comment covers the line
that it is about: its own, or the next one with a value where it stands alone. Where an object begins on that line, it
covers the whole object. One that has hit nothing is a finding, too: what it was written for is gone, and it
would hide the next one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final

import msgspec

from tenure.cli.lint.remarks import Ignored, Remark
from tenure.cli.lint.source import Source
from tenure.errors import shown
from tenure.parse.comments import Comment, comments_in
from tenure.schema.findings import Code, Finding

#: One code or several with commas, and why.
_IGNORE: Final = re.compile(r"ignore\s+(?P<codes>\w+(?:\s*,\s*\w+)*)\s+because\s+(?P<why>\S.*)")
_KNOWN: Final = frozenset(map(str, Code))
_EXAMPLE: Final = "# tenure: ignore RepairByForce because this pool has no state"


class Ignore(msgspec.Struct, frozen=True):
    """One code of one comment."""

    comment: Comment
    file: str
    code: Code
    because: str
    #: The objects that begin where the comment is about, by their place among all.
    objects: tuple[int, ...]


class _Files:
    """Which objects a file has, and on which lines they begin."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._begins: dict[str, list[tuple[int, int]]] = {}
        for index, source in enumerate(sources):
            begin = (source.position("").line, index)
            self._begins.setdefault(source.document.file, []).append(begin)
        for begins in self._begins.values():
            begins.sort()

    def comments(self) -> Iterator[tuple[str, Comment]]:
        for file, begins in self._begins.items():
            for comment in comments_in(self._sources[begins[0][1]].document.text):
                yield file, comment

    def length(self, file: str) -> int:
        """How many lines it has."""
        document = self._sources[self._begins[file][0][1]].document
        return len(document.text.splitlines())

    def beginning_at(self, file: str, line: int) -> tuple[int, ...]:
        begins = self._begins[file]
        first, last = bisect_left(begins, (line, -1)), bisect_left(begins, (line + 1, -1))
        return tuple(index for _, index in begins[first:last])

    def remark(self, file: str, comment: Comment, finding: Finding) -> tuple[int, Remark]:
        """Told with the object that the comment is about: the last that begins there or before."""
        begins = self._begins[file]
        _, owner = begins[max(bisect_left(begins, (comment.about + 1, -1)) - 1, 0)]
        return owner, Remark(
            about=self._sources[owner].name,
            finding=finding,
            file=file,
            line=comment.line,
            column=comment.column,
        )


def without_ignored(
    sources: Sequence[Source], remarks: Sequence[tuple[int, Remark]]
) -> tuple[list[Remark], list[Ignored]]:
    """What is left, in order, with what is wrong with the comments themselves; and what was taken back.

    ``remarks``: each with the place of its object among the sources.
    """
    files = _Files(sources)
    ignores, left = _read(files)
    by_line = {(one.file, one.comment.about, one.code): one for one in ignores}
    by_object = {(index, one.code): one for one in ignores for index in one.objects}
    ignored: list[Ignored] = []
    used: set[int] = set()
    for owner, remark in remarks:
        code = remark.finding.code
        hit = by_line.get((remark.file, remark.line, code)) or by_object.get((owner, code))
        if hit is None:
            left.append((owner, remark))
        else:
            used.add(id(hit))
            ignored.append(Ignored(remark=remark, because=hit.because))
    left += (_unused(one, files) for one in ignores if id(one) not in used)
    left.sort(key=lambda one: (one[0], one[1].line))
    return [remark for _, remark in left], ignored


def _read(files: _Files) -> tuple[list[Ignore], list[tuple[int, Remark]]]:
    """The comments that are complete, and what is wrong with the others."""
    ignores: list[Ignore] = []
    wrong: list[tuple[int, Remark]] = []
    for file, comment in files.comments():
        match = _IGNORE.fullmatch(comment.said)
        codes = [code.strip() for code in match["codes"].split(",")] if match else []
        for problem in _problems(comment, codes):
            finding = Finding(Code.INVALID_IGNORE, "", problem)
            wrong.append(files.remark(file, comment, finding))
        objects = files.beginning_at(file, comment.about)
        ignores += (
            Ignore(comment, file, Code(code), match["why"], objects)
            for code in codes
            if match and code in _KNOWN
        )
    return ignores, wrong


def _problems(comment: Comment, codes: Sequence[str]) -> Iterator[str]:
    if not codes:
        yield (
            f'got "{shown(comment.said)}", expected ignore CODE because and a reason; for example '
            f"{_EXAMPLE}"
        )
    for code in codes:
        if code not in _KNOWN:
            close = get_close_matches(code, _KNOWN, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            yield f"there is no code {shown(code)}{hint}"


def _unused(ignore: Ignore, files: _Files) -> tuple[int, Remark]:
    message = f"line {ignore.comment.about}: there is no {ignore.code} on "
    message += "the object that begins there" if ignore.objects else "that line"
    if ignore.comment.about > files.length(ignore.file):
        message = f"nothing stands below the comment, so it ignores no {ignore.code}"
    return files.remark(ignore.file, ignore.comment, Finding(Code.UNUSED_IGNORE, "", message))
