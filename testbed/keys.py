"""Certificates that live as long as a test: one authority and what it signs, as files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tenure.kube import certs

VALID: Final = timedelta(days=30)
RSA_BITS: Final = 2048


@dataclass(frozen=True)
class Pair:
    """Where a certificate and its key lie."""

    cert: Path
    key: Path


class Authority:
    def __init__(self, folder: Path, name: str = "test-bed-ca") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._made = certs.make_authority(name, now=_now(), valid=VALID)
        self.pair = self._kept("ca", self._made)

    @property
    def pem(self) -> str:
        return self._made.cert

    def server(self, name: str, *alternatives: str) -> Pair:
        """For a server; an alternative is written as in ``IP:127.0.0.1`` or ``DNS:localhost``."""
        by_kind: dict[str, list[str]] = {"DNS": [], "IP": []}
        for alternative in alternatives:
            kind, _, value = alternative.partition(":")
            by_kind[kind].append(value)
        dns, ips = by_kind["DNS"], by_kind["IP"]
        return self._kept(
            name, certs.issue(self._made, name, dns=dns, ips=ips, now=_now(), valid=VALID)
        )

    def client(self, user: str, *groups: str) -> Pair:
        """For a client: Kubernetes reads CN as the user and each O as a group."""
        return self._kept(
            user, certs.issue_client(self._made, user, groups, now=_now(), valid=VALID)
        )

    def _kept(self, name: str, made: certs.Pair) -> Pair:
        stem = self._folder / name.replace(":", "-")
        pair = Pair(stem.with_suffix(".crt"), stem.with_suffix(".key"))
        pair.cert.write_text(made.cert)
        _write_key(pair.key, made.key)
        return pair


def make_rsa_key(path: Path) -> None:
    """Service account tokens are signed with RSA."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    _write_key(path, pem.decode())


def _write_key(path: Path, pem: str) -> None:
    path.touch(mode=0o600)
    path.write_text(pem)


def _now() -> datetime:
    """What the processes of the test bed compare with."""
    return datetime.now(UTC)
