"""What our certificates are believed for, by whom, and when."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, ServerVerifier, Store

from tenure.kube.certs import SKEW, Pair, issue, issue_client, make_authority

MAY_DAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
YEARS = timedelta(days=365 * 60)
NAME = "tenure-webhook.tenure.svc"


@pytest.fixture(scope="module")
def authority() -> Pair:
    return make_authority("tenure-ca", now=MAY_DAY, valid=YEARS)


def _read(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.cert.encode())


def _verifier(authority: Pair, at: datetime, host: x509.GeneralName) -> ServerVerifier:
    store = Store([_read(authority)])
    assert isinstance(host, x509.DNSName | x509.IPAddress)
    return PolicyBuilder().store(store).time(at).build_server_verifier(host)


class Handshake:
    """Both ends of one TLS connection, in memory, as strict as Python can be told to be."""

    def __init__(self, folder: Path, authority: Pair, server: Pair, client: Pair | None = None):
        self.at_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.at_server.load_cert_chain(*_written(folder, "server", server))
        self.at_client = ssl.create_default_context(cadata=authority.cert)
        self.at_client.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
        if client is not None:
            self.at_server.verify_mode = ssl.CERT_REQUIRED
            self.at_server.verify_flags |= ssl.VERIFY_X509_STRICT
            self.at_server.load_verify_locations(cadata=authority.cert)
            self.at_client.load_cert_chain(*_written(folder, "client", client))

    def shake(self, host: str) -> ssl.SSLObject:
        """The server's end once both agree."""
        up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
        server = self.at_server.wrap_bio(up, down, server_side=True)
        client = self.at_client.wrap_bio(down, up, server_hostname=host)
        ends = [client, server]
        while ends:
            for end in list(ends):
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                ends.remove(end)
        return server


def _written(folder: Path, name: str, pair: Pair) -> tuple[Path, Path]:
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    cert.write_text(pair.cert)
    key.write_text(pair.key)
    return cert, key


def test_a_handshake_succeeds_for_each_name_and_address(tmp_path: Path, authority: Pair) -> None:
    server = issue(authority, NAME, dns=[NAME, "localhost"], ips=["127.0.0.1", "::1"],
                   now=MAY_DAY, valid=YEARS)  # fmt: skip
    handshake = Handshake(tmp_path, authority, server)
    for host in (NAME, "localhost", "127.0.0.1", "::1"):
        assert handshake.shake(host).version() == "TLSv1.3"


def test_a_server_of_another_name_is_refused(tmp_path: Path, authority: Pair) -> None:
    server = issue(authority, NAME, dns=[NAME], now=MAY_DAY, valid=YEARS)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        Handshake(tmp_path, authority, server).shake("elsewhere.tenure.svc")


def test_a_server_signed_by_another_authority_is_refused(tmp_path: Path, authority: Pair) -> None:
    stranger = make_authority("tenure-ca", now=MAY_DAY, valid=YEARS)
    server = issue(stranger, NAME, now=MAY_DAY, valid=YEARS)
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
        Handshake(tmp_path, authority, server).shake(NAME)


def test_an_expired_server_is_refused(tmp_path: Path) -> None:
    long_ago = MAY_DAY.replace(year=2020)
    authority = make_authority("tenure-ca", now=long_ago, valid=YEARS)
    server = issue(authority, NAME, now=long_ago, valid=HOUR)
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"):
        Handshake(tmp_path, authority, server).shake(NAME)


def test_a_client_is_known_by_its_user_and_groups(tmp_path: Path, authority: Pair) -> None:
    server = issue(authority, NAME, now=MAY_DAY, valid=YEARS)
    client = issue_client(authority, "jane", ["system:masters", "ops"], now=MAY_DAY, valid=YEARS)
    seen = Handshake(tmp_path, authority, server, client).shake(NAME).getpeercert()
    assert seen is not None
    assert seen["subject"] == (
        (("organizationName", "system:masters"),),
        (("organizationName", "ops"),),
        (("commonName", "jane"),),
    )


def test_a_client_certificate_does_not_serve(tmp_path: Path, authority: Pair) -> None:
    client = issue_client(authority, "jane", now=MAY_DAY, valid=YEARS)
    with pytest.raises(ssl.SSLCertVerificationError, match="unsuitable certificate purpose"):
        Handshake(tmp_path, authority, client).shake("jane")


@pytest.mark.parametrize(
    ("at", "believed"),
    [
        pytest.param(MAY_DAY - SKEW, True, id="by a clock that is a little behind"),
        pytest.param(MAY_DAY - SKEW - HOUR, False, id="not by a clock that is an hour behind"),
        pytest.param(MAY_DAY + HOUR, True, id="until its last second"),
        pytest.param(MAY_DAY + HOUR * 2, False, id="not after it"),
    ],
)
def test_a_certificate_is_believed_for_its_time(
    authority: Pair, at: datetime, *, believed: bool
) -> None:
    server = issue(authority, NAME, now=MAY_DAY, valid=HOUR)
    verifier = _verifier(authority, at, x509.DNSName(NAME))
    if believed:
        assert len(verifier.verify(_read(server), [])) == 2
    else:
        with pytest.raises(x509.verification.VerificationError, match="not valid at validation"):
            verifier.verify(_read(server), [])


def test_an_address_is_verified_as_an_address(authority: Pair) -> None:
    server = issue(authority, "apiserver", ips=["127.0.0.1"], now=MAY_DAY, valid=HOUR)
    host = x509.IPAddress(ip_address("127.0.0.1"))
    assert _verifier(authority, MAY_DAY, host).verify(_read(server), [])


def test_nothing_outlives_its_authority() -> None:
    authority = make_authority("tenure-ca", now=MAY_DAY, valid=HOUR)
    server = issue(authority, NAME, now=MAY_DAY, valid=YEARS)
    assert _read(server).not_valid_after_utc == MAY_DAY + HOUR


def test_a_service_with_a_long_name_is_named_whole_among_the_alternatives(authority: Pair) -> None:
    long = f"{'w' * 63}.{'n' * 63}.svc"
    server = _read(issue(authority, long, now=MAY_DAY, valid=HOUR))
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [long]


def test_two_certificates_never_share_a_key_or_a_number(authority: Pair) -> None:
    one, other = (issue(authority, NAME, now=MAY_DAY, valid=HOUR) for _ in range(2))
    assert one.key != other.key
    assert _read(one).serial_number != _read(other).serial_number


def test_a_pair_does_not_show_its_key(authority: Pair) -> None:
    assert repr(authority) == "Pair(…)"
