"""What the page is told has no characters that turn the writing round, hide in it, or move a cursor: a � stands for each.

Names, annotations and messages come from users who may write objects. Here it is done once, in the JSON of every
answer, and not at each place that shows a text.
"""

from __future__ import annotations

import re
from typing import Final

_HIDDEN: Final = "�".encode()
#: In UTF-8: controls above ASCII, and formats: bidirectional ones, of no width, tags.
_UNSEEN: Final = re.compile(
    rb"\x7f|\xc2[\x80-\x9f\xad]|\xd8\x9c|\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xaf]"
    rb"|\xef\xbb\xbf|\xf3\xa0[\x80\x81][\x80-\xbf]"
)
#: An escape of JSON, so that an escaped backslash does not count; the group: a control.
_ESCAPE: Final = re.compile(rb"\\(?:(u00[01][0-9a-f])|.)")


def visible(body: bytes) -> bytes:
    """``body``: JSON as our encoder writes it."""
    if not body.isascii() or b"\x7f" in body:
        body = _UNSEEN.sub(_HIDDEN, body)
    if b"\\u00" in body:
        body = _ESCAPE.sub(lambda found: _HIDDEN if found[1] else found[0], body)
    return body
