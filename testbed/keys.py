"""Certificates that live as long as a test: one authority and what it signs.

Made by the ``openssl`` program, with elliptic curves because they take no time.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

OPENSSL = shutil.which("openssl")
DAYS = "30"


@dataclass(frozen=True)
class Pair:
    """Where a certificate and its key lie."""

    cert: Path
    key: Path


class Authority:
    def __init__(self, folder: Path, name: str = "test-bed-ca") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.pair = Pair(folder / "ca.crt", folder / "ca.key")
        make_key(self.pair.key)
        _openssl("req -x509 -new -days", DAYS, "-key", self.pair.key, "-out", self.pair.cert,
                 "-subj", f"/CN={name}")  # fmt: skip

    @property
    def pem(self) -> str:
        return self.pair.cert.read_text()

    def server(self, name: str, *alternatives: str) -> Pair:
        """For a server; an alternative is written as in ``IP:127.0.0.1`` or ``DNS:localhost``."""
        extensions = f"extendedKeyUsage=serverAuth\nsubjectAltName={','.join(alternatives)}\n"
        return self._signed(name, f"/CN={name}", extensions)

    def client(self, user: str, *groups: str) -> Pair:
        """For a client: Kubernetes reads CN as the user and each O as a group."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        return self._signed(user, subject, "extendedKeyUsage=clientAuth\n")

    def _signed(self, name: str, subject: str, extensions: str) -> Pair:
        stem = self._folder / name.replace(":", "-")
        pair = Pair(stem.with_suffix(".crt"), stem.with_suffix(".key"))
        request, wanted = stem.with_suffix(".csr"), stem.with_suffix(".ext")
        wanted.write_text(extensions)
        make_key(pair.key)
        _openssl("req -new -key", pair.key, "-subj", subject, "-out", request)
        _openssl("x509 -req -days", DAYS, "-CAcreateserial -in", request, "-CA", self.pair.cert,
                 "-CAkey", self.pair.key, "-extfile", wanted, "-out", pair.cert)  # fmt: skip
        return pair


def make_key(path: Path, kind: str = "ecparam -name prime256v1 -genkey -noout") -> None:
    path.touch(mode=0o600)
    _openssl(kind, "-out", path)


def make_rsa_key(path: Path) -> None:
    """Service account tokens are signed with RSA."""
    make_key(path, "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -quiet")


def _openssl(*parts: str | Path) -> None:
    """Strings that are several options are split; paths and subjects never are."""
    assert OPENSSL is not None, "the openssl program is needed to make certificates"
    words: list[str] = []
    for part in parts:
        is_options = isinstance(part, str) and not part.startswith("/")
        words += part.split() if is_options and isinstance(part, str) else [str(part)]
    ended = subprocess.run(  # noqa: S603  # our own words
        [OPENSSL, *words], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise RuntimeError(f"openssl {' '.join(words)}: {ended.stderr}")
