"""Certificates of our own: an authority, and what it signs for servers and for clients.

Elliptic curves (P-256), because they take no time. Every certificate carries what the
strictest verifiers ask for (Python 3.13 and Go among them): its own key's identifier, its
issuer's, critical basic constraints and key usage, and the names of a server as alternatives,
never as its subject alone.

A certificate begins a little before it is made, so that a machine whose clock is behind believes
it at once; and it never outlives the authority that signed it.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tenure.kube.client.keyfile import as_file

#: How far the clocks of two machines may lie apart before a fresh certificate is refused.
SKEW: Final = timedelta(minutes=5)
#: X.509 allows a common name no more characters than these.
_COMMON_NAME_MAX: Final = 64


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its private key, both as PEM."""

    cert: str
    key: str

    def __repr__(self) -> str:
        return "Pair(…)"  # Secrets do not belong in a log.


def make_authority(name: str, *, now: datetime, valid: timedelta) -> Pair:
    """A new authority that signs for itself and may sign for others, but no further authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name)
    builder = _begun(subject, subject, key.public_key(), _instant(now), _instant(now + valid))
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(_identifier_of(key.public_key()), critical=False)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def issue(
    authority: Pair,
    name: str,
    *,
    dns: Sequence[str] = (),
    ips: Sequence[str] = (),
    now: datetime,
    valid: timedelta,
) -> Pair:
    """A server's certificate for these names and addresses; for ``name`` where none is given."""
    names = [x509.DNSName(each) for each in dns or (() if ips else (name,))]
    addresses = [x509.IPAddress(ipaddress.ip_address(each)) for each in ips]
    # The names that count are the alternatives: a service's long name may be cut here.
    return _signed(
        authority,
        _subject(name[:_COMMON_NAME_MAX]),
        ExtendedKeyUsageOID.SERVER_AUTH,
        x509.SubjectAlternativeName([*names, *addresses]),
        now=now,
        valid=valid,
    )


def issue_client(
    authority: Pair,
    user: str,
    groups: Sequence[str] = (),
    *,
    now: datetime,
    valid: timedelta,
) -> Pair:
    """A client's certificate: Kubernetes reads its common name as the user, each O as a group."""
    subject = _subject(user, groups)
    return _signed(authority, subject, ExtendedKeyUsageOID.CLIENT_AUTH, None, now=now, valid=valid)


def load_into(context: ssl.SSLContext, pair: Pair) -> None:
    """From here on the context presents this pair; connections that are open stay as they are."""
    with as_file(f"{pair.cert}\n{pair.key}\n".encode()) as path:
        context.load_cert_chain(path, password="")


def _signed(
    authority: Pair,
    subject: x509.Name,
    purpose: x509.ObjectIdentifier,
    names: x509.SubjectAlternativeName | None,
    *,
    now: datetime,
    valid: timedelta,
) -> Pair:
    issuer = x509.load_pem_x509_certificate(authority.cert.encode())
    issuer_key = serialization.load_pem_private_key(authority.key.encode(), password=None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey), "our authorities have such keys only"
    key = ec.generate_private_key(ec.SECP256R1())
    end = min(_instant(now + valid), issuer.not_valid_after_utc)
    builder = _begun(subject, issuer.subject, key.public_key(), _instant(now), end)
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(_identifier_of(key.public_key()), critical=False)
        .add_extension(_identifier_of_issuer(issuer), critical=False)
    )
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return _pair(builder.sign(issuer_key, hashes.SHA256()), key)


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    start: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - SKEW)
        .not_valid_after(end)
    )


def _subject(name: str, groups: Sequence[str] = ()) -> x509.Name:
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _identifier_of(key: ec.EllipticCurvePublicKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key)


def _identifier_of_issuer(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate.public_bytes(pem).decode(), secret.decode())


def _instant(moment: datetime) -> datetime:
    """In UTC and whole seconds: a certificate knows no finer time."""
    return moment.astimezone(UTC).replace(microsecond=0)
