"""The certificate of the Chat API: kept while it fits, made again for other addresses, by what programs trust."""

from __future__ import annotations

import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from app.machine.paths import write_atomically
from app.network.api_certificate import LASTS, STAYS, load_or_make
from app.network.tls import pairing_server_context, upstream_context

NOW = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)


def made(path: Path, *addresses: str, now: dt.datetime = NOW, word: str = "p") -> str:
    return load_or_make(path, write_atomically, word, addresses, now)


def key_of(pem: str) -> bytes:
    public = x509.load_pem_x509_certificate(pem.encode()).public_key()
    der = serialization.Encoding.DER
    return public.public_bytes(der, serialization.PublicFormat.SubjectPublicKeyInfo)


def shown(path: Path) -> bytes:
    """Return the certificate shown to a client."""
    return x509.load_pem_x509_certificate(path.read_bytes()).fingerprint(hashes.SHA256())


def test_it_stays_while_it_fits_and_what_vouches_for_it_stays_longer(tmp_path: Path) -> None:
    path = tmp_path / "api.pem"
    trusted, first = made(path, "192.0.2.7", "fd00::7"), shown(path)
    assert (made(path, "192.0.2.7"), shown(path)) == (trusted, first)  # fewer addresses fit
    moved = made(path, "192.0.2.8"), shown(path)
    late = made(path, "192.0.2.8", now=NOW + LASTS), shown(path)
    assert len({first, moved[1], late[1]}) == 3
    assert {moved[0], late[0]} == {trusted}
    assert made(path, "192.0.2.8", now=NOW + STAYS) != trusted
    assert key_of(made(path, "192.0.2.8", word="another")) != key_of(trusted)
    path.write_text("no certificate")
    assert "BEGIN CERTIFICATE" in made(path, "192.0.2.8")


@pytest.mark.parametrize("year", [1970, 2015, 2025, 2036])
def test_a_clock_that_was_wrong_for_a_while_takes_away_no_trust(tmp_path: Path, year: int) -> None:
    path = tmp_path / "api.pem"
    wrong = NOW.replace(year=year)
    trusted = made(path, "192.0.2.7")
    assert made(path, "192.0.2.7", now=wrong) == trusted
    assert made(path, "192.0.2.7") == trusted
    leaf, root = x509.load_pem_x509_certificates(path.read_bytes())
    for certificate in (leaf, root):
        assert certificate.not_valid_before_utc <= NOW <= certificate.not_valid_after_utc
    path.unlink()
    first = made(path, "192.0.2.7", now=wrong)  # installed while it was wrong
    assert made(path, "192.0.2.7") == first
    for certificate in x509.load_pem_x509_certificates(path.read_bytes()):
        assert certificate.not_valid_before_utc <= NOW <= certificate.not_valid_after_utc


def test_one_of_the_first_builds_that_nothing_vouched_for_keeps_its_key(tmp_path: Path) -> None:
    path = tmp_path / "api.pem"
    trusted = made(path, "192.0.2.7")
    path.write_text(path.read_text().removesuffix(trusted))
    again = made(path, "192.0.2.7")
    assert (again != trusted, key_of(again)) == (True, key_of(trusted))
    assert made(path, "192.0.2.9") == again


def test_who_trusts_it_trusts_no_website_by_it(tmp_path: Path) -> None:
    path = tmp_path / "api.pem"
    now = dt.datetime.now(dt.UTC)
    client = upstream_context(made(path, "127.0.0.1", now=now))
    key = serialization.load_pem_private_key(path.read_bytes(), b"p")
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    leaf, root = x509.load_pem_x509_certificates(path.read_bytes())
    names = x509.SubjectAlternativeName([x509.DNSName("bank.example")])
    forged = x509.CertificateBuilder(
        root.subject, leaf.subject, key.public_key(), 7, leaf.not_valid_before_utc,
        leaf.not_valid_after_utc, [x509.Extension(names.oid, False, names)],
    ).sign(key, hashes.SHA256())  # fmt: skip
    secret = path.read_text().partition("-----BEGIN CERTIFICATE")[0]
    path.write_text(secret + forged.public_bytes(serialization.Encoding.PEM).decode())
    with pytest.raises(ssl.SSLCertVerificationError, match="excluded subtree"):
        shake(pairing_server_context(path, "p"), client, "bank.example")


def test_the_key_is_on_the_disk_only_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "api.pem"
    assert "PRIVATE" not in made(path, "192.0.2.7")
    assert "BEGIN ENCRYPTED PRIVATE KEY" in path.read_text()
    assert path.read_text().count("PRIVATE KEY") == 2


@pytest.mark.parametrize("strict", [ssl.VerifyFlags(0), ssl.VERIFY_X509_STRICT])
def test_a_client_that_trusts_it_alone_shakes_hands(tmp_path: Path, strict: ssl.VerifyFlags) -> None:
    now = dt.datetime.now(dt.UTC)
    path = tmp_path / "api.pem"
    client = upstream_context(made(path, "127.0.0.1", now=now))
    client.verify_flags |= strict
    made(path, "127.0.0.1", "127.0.0.3", now=now)  # another address since then
    shake(pairing_server_context(path, "p"), client, "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake(pairing_server_context(path, "p"), client, "127.0.0.2")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(pairing_server_context(path, "p"), upstream_context(""), "127.0.0.1")


def shake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """A handshake in memory. Raises what the client raises."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(4):
        for end in (theirs, ours):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
