"""What certificates and keys say of themselves.

They come out of an object that any client with the right may have changed, so every way in which they
cannot be read is one of ``UNREADABLE``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tenure.kube.certs import Pair

#: What reading a foreign certificate or key can raise.
UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
    x509.InvalidVersion,
)


class Facts(msgspec.Struct, frozen=True):
    """What a certificate says of itself."""

    starts_at: datetime
    ends_at: datetime
    #: Host names and addresses that it serves.
    names: frozenset[str]
    #: Its own key, and the key it was signed with.
    key_id: bytes
    issuer_key_id: bytes
    #: Whether it may sign others.
    signs: bool

    def holds_at(self, now: datetime) -> bool:
        return self.starts_at <= now < self.ends_at

    @property
    def renew_at(self) -> datetime:
        """When a third of its life is left: time enough for an operator to notice that renewal fails."""
        return self.ends_at - (self.ends_at - self.starts_at) / 3


def facts_of(pem: str) -> Facts:
    """Raises one of ``UNREADABLE`` for what is not a certificate of ours."""
    certificate = x509.load_pem_x509_certificate(pem.encode())
    try:
        key_id = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except x509.ExtensionNotFound as error:
        raise ValueError(str(error)) from error
    return Facts(
        starts_at=certificate.not_valid_before_utc,
        ends_at=certificate.not_valid_after_utc,
        names=frozenset(_names(certificate)),
        key_id=key_id.value.digest,
        issuer_key_id=_issuer_key_id(certificate) or key_id.value.digest,
        signs=_signs(certificate),
    )


def is_whole(pair: Pair) -> bool:
    """Whether the key is the certificate's, and of the sort that we make. Raises ``UNREADABLE``."""
    certificate = x509.load_pem_x509_certificate(pair.cert.encode())
    key = serialization.load_pem_private_key(pair.key.encode(), password=None)
    is_ours = isinstance(key, ec.EllipticCurvePrivateKey)
    return is_ours and certificate.public_key() == key.public_key()


def split(bundle: str) -> list[str]:
    """The certificates of a bundle, each as PEM. Raises ``UNREADABLE``."""
    return [
        certificate.public_bytes(serialization.Encoding.PEM).decode()
        for certificate in x509.load_pem_x509_certificates(bundle.encode())
    ]


def _names(certificate: x509.Certificate) -> Iterator[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return
    yield from extension.value.get_values_for_type(x509.DNSName)
    yield from map(str, extension.value.get_values_for_type(x509.IPAddress))


def _signs(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _issuer_key_id(certificate: x509.Certificate) -> bytes | None:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
    except x509.ExtensionNotFound:
        return None
    return extension.value.key_identifier
