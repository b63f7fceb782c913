"""The built page: loaded into memory at the start, each file with its type and hash as the manifest lists them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

import msgspec

from tenure.errors import TenureError

_FOLDER: Final = "tenure.dashboard.web"


class PageMissing(TenureError):
    """The package has no built page, or not the one of its manifest."""


class _Listed(msgspec.Struct, frozen=True):
    type: str
    sha256: str


class _Manifest(msgspec.Struct, frozen=True):
    files: Mapping[str, _Listed]


class File(msgspec.Struct, frozen=True):
    body: bytes
    type: str
    tag: str


Files = Mapping[str, File]


def built_page() -> Files:
    """By path: ``/assets/page.js``. Raises ``PageMissing``."""
    folder = files(_FOLDER) / "static"
    try:
        manifest = msgspec.json.decode((folder / "manifest.json").read_bytes(), type=_Manifest)
        found = {name: (folder / name).read_bytes() for name in manifest.files}
    except (OSError, msgspec.MsgspecError) as error:
        raise PageMissing(f"the built page cannot be read: {error}") from None
    for name, body in found.items():
        if hashlib.sha256(body).hexdigest() != manifest.files[name].sha256:
            raise PageMissing(f"the built page is not the one of its manifest: {name} differs")
    made = {
        f"/{name}": File(body, manifest.files[name].type, f'"{manifest.files[name].sha256}"')
        for name, body in found.items()
    }
    if "/index.html" not in made:
        raise PageMissing("the built page has no index.html")
    return {**made, "/": made["/index.html"]}
