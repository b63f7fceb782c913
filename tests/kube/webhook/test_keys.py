"""The life of the webhook's certificates: no client meets one that it cannot trust."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from hypothesis import given
from hypothesis import strategies as st

from tenure.kube.certfacts import facts_of, split
from tenure.kube.certs import Pair, issue, make_authority
from tenure.kube.webhook.keys import SETTLE, Keys, Lives, renewed

MAY_DAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
NAME = "tenure-webhook.tenure.svc"
SHORT = Lives(authority=timedelta(days=30), server=timedelta(days=9))


def at(days: float) -> datetime:
    return MAY_DAY + days * DAY


def fresh(*names: str, lives: Lives = SHORT) -> Keys:
    return renewed(None, names or (NAME,), MAY_DAY, lives)


def is_believed(server: Pair, bundle: str, now: datetime, name: str = NAME) -> bool:
    """As a strict verifier answers that knows the bundle alone."""
    store = Store(x509.load_pem_x509_certificates(bundle.encode()))
    verifier = PolicyBuilder().store(store).time(now).build_server_verifier(x509.DNSName(name))
    try:
        verifier.verify(x509.load_pem_x509_certificate(server.cert.encode()), [])
    except VerificationError:
        return False
    return True


def test_new_keys_are_believed_at_once() -> None:
    keys = fresh()
    assert is_believed(keys.server, keys.bundle, MAY_DAY)
    assert is_believed(keys.server, keys.bundle, MAY_DAY - timedelta(minutes=4)), "a clock behind"


def test_nothing_is_touched_before_it_is_due() -> None:
    keys = fresh()
    assert renewed(keys, [NAME], at(5.9), SHORT) == keys


def test_a_server_with_a_third_of_its_life_left_is_signed_anew_by_the_same_authority() -> None:
    keys = fresh()
    later = renewed(keys, [NAME], at(6.1), SHORT)
    assert later.server != keys.server
    assert (later.authority, later.bundle) == (keys.authority, keys.bundle)


def test_a_new_authority_is_made_known_first_and_signs_later() -> None:
    keys = fresh()
    keys = renewed(keys, [NAME], at(18), SHORT)
    known = renewed(keys, [NAME], at(20.1), SHORT)
    assert split(known.bundle) == [known.authority.cert, keys.authority.cert]
    assert known.server == keys.server
    soon, settled = at(20.1) + SETTLE / 2, at(20.1) + SETTLE
    assert renewed(known, [NAME], soon, SHORT) == known
    signed = renewed(known, [NAME], settled, SHORT)
    assert facts_of(signed.server.cert).issuer_key_id == facts_of(known.authority.cert).key_id


def test_an_authority_that_has_run_out_leaves_the_bundle() -> None:
    keys = fresh()
    keys = renewed(keys, [NAME], at(20.1), SHORT)
    keys = renewed(keys, [NAME], at(26), SHORT)
    assert len(split(keys.bundle)) == 2
    keys = renewed(keys, [NAME], at(30.1), SHORT)
    assert split(keys.bundle) == [keys.authority.cert]


@given(pauses=st.lists(st.integers(1, 3 * 24 * 60), min_size=5, max_size=60))
def test_a_replica_that_is_one_read_behind_is_never_without_trust(pauses: list[int]) -> None:
    """A replica that still presents what was, an API server that still trusts what was; looks
    come every few minutes, or not for three days."""
    now, before = MAY_DAY, fresh()
    for minutes in pauses:
        looks = (now := now + timedelta(minutes=minutes), now := now + SETTLE)
        for moment in looks:
            keys = renewed(before, [NAME], moment, SHORT)
            assert is_believed(keys.server, keys.bundle, moment)
            assert is_believed(before.server, keys.bundle, moment), "another replica's old one"
            assert is_believed(keys.server, before.bundle, moment), "an API server's old trust"
            before = keys


def test_other_names_are_signed_for_at_once() -> None:
    before = fresh()
    keys = renewed(before, ["other.tenure.svc", "10.0.0.1"], at(1), SHORT)
    assert is_believed(keys.server, keys.bundle, at(1), "other.tenure.svc")
    assert facts_of(keys.server.cert).names == {"other.tenure.svc", "10.0.0.1"}
    assert keys.bundle == before.bundle


def test_keys_that_were_made_by_a_clock_far_ahead_are_made_anew() -> None:
    keys = renewed(None, [NAME], at(400), SHORT)
    mended = renewed(keys, [NAME], MAY_DAY, SHORT)
    assert is_believed(mended.server, mended.bundle, MAY_DAY)


def test_keys_that_have_all_run_out_are_made_anew() -> None:
    mended = renewed(fresh(), [NAME], at(100), SHORT)
    assert is_believed(mended.server, mended.bundle, at(100))


# Another client has put something else in.


def _rsa(keys: Keys) -> Keys:
    """Another program's authority, as it likes them."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "theirs")])
    public = key.public_key()
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(7)
        .not_valid_before(MAY_DAY - DAY)
        .not_valid_after(MAY_DAY + 1000 * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    theirs = Pair(cert.public_bytes(pem).decode(), secret.decode())
    return msgspec.structs.replace(keys, bundle=theirs.cert, authority=theirs)


def _locked(keys: Keys) -> Keys:
    key = serialization.load_pem_private_key(keys.authority.key.encode(), password=None)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    locked = key.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"x")).decode()
    return msgspec.structs.replace(keys, authority=Pair(keys.authority.cert, locked))


def _no_authority(keys: Keys) -> Keys:
    return msgspec.structs.replace(keys, bundle=keys.server.cert, authority=keys.server)


def _mixed(keys: Keys) -> Keys:
    other = make_authority("other", now=MAY_DAY, valid=DAY)
    return msgspec.structs.replace(keys, authority=Pair(keys.authority.cert, other.key))


def _stranger(keys: Keys) -> Keys:
    other = make_authority("other", now=MAY_DAY, valid=30 * DAY)
    server = issue(other, NAME, now=MAY_DAY, valid=9 * DAY)
    return msgspec.structs.replace(keys, server=server)


def _nonsense(keys: Keys) -> Keys:
    return msgspec.structs.replace(keys, server=Pair("no", "no"))


BROKEN: list[tuple[str, Callable[[Keys], Keys]]] = [
    ("an RSA authority", _rsa),
    ("a key behind a password", _locked),
    ("an authority that may not sign", _no_authority),
    ("a foreign key", _mixed),
    ("a server signed by a stranger", _stranger),
    ("a server that is no certificate", _nonsense),
]


@pytest.mark.parametrize("broken", [pytest.param(b, id=says) for says, b in BROKEN])
def test_what_cannot_be_used_is_made_anew(broken: Callable[[Keys], Keys]) -> None:
    mended = renewed(broken(fresh()), [NAME], at(1), SHORT)
    assert is_believed(mended.server, mended.bundle, at(1))


FIELDS = ("bundle", "authority.cert", "authority.key", "server.cert", "server.key")
KEPT = fresh()


@given(field=st.sampled_from(FIELDS), place=st.integers(0, 2000), text=st.text(max_size=8))
def test_whatever_is_scribbled_into_them_ends_in_good_keys(
    field: str, place: int, text: str
) -> None:
    outer, _, inner = field.partition(".")
    scribbled: Keys
    if inner:
        pair: Pair = getattr(KEPT, outer)
        pair = msgspec.structs.replace(pair, **{inner: _over(getattr(pair, inner), place, text)})
        scribbled = msgspec.structs.replace(KEPT, **{outer: pair})
    else:
        scribbled = msgspec.structs.replace(KEPT, bundle=_over(KEPT.bundle, place, text))
    mended = renewed(scribbled, [NAME], at(1), SHORT)
    assert is_believed(mended.server, mended.bundle, at(1))


def _over(whole: str, place: int, text: str) -> str:
    place %= len(whole)
    return whole[:place] + text + whole[place + len(text) :]


def test_no_key_is_shown_where_keys_are_shown() -> None:
    keys = fresh()
    assert "PRIVATE" not in f"{keys!r} {keys.server!r} {keys} {[keys]}"
