"""The certificate of the Chat API: kept while it fits, made again for other addresses by the same key."""

from __future__ import annotations

import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from app.lan.api_certificate import LASTS, load_or_make
from app.lan.tls import pairing_server_context, upstream_context
from app.machine.paths import write_atomically

NOW = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)


def made(path: Path, *addresses: str, now: dt.datetime = NOW, word: str = "p") -> str:
    return load_or_make(path, write_atomically, word, addresses, now)


def key_of(pem: str) -> bytes:
    public = x509.load_pem_x509_certificate(pem.encode()).public_key()
    der = serialization.Encoding.DER
    return public.public_bytes(der, serialization.PublicFormat.SubjectPublicKeyInfo)


def test_it_stays_while_it_fits_and_its_key_stays_longer(tmp_path: Path) -> None:
    path = tmp_path / "api.pem"
    first = made(path, "192.0.2.7", "fd00::7")
    assert made(path, "192.0.2.7") == first  # fewer addresses fit
    moved = made(path, "192.0.2.8")
    late = made(path, "192.0.2.8", now=NOW + LASTS)
    assert len({first, moved, late}) == 3
    assert len({key_of(one) for one in (first, moved, late)}) == 1
    assert key_of(made(path, "192.0.2.8", word="another")) != key_of(first)
    path.write_text("no certificate")
    assert "BEGIN CERTIFICATE" in made(path, "192.0.2.8")


def test_the_key_is_on_the_disk_only_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "api.pem"
    assert "PRIVATE" not in made(path, "192.0.2.7")
    assert "BEGIN ENCRYPTED PRIVATE KEY" in path.read_text()
    assert path.read_text().count("PRIVATE KEY") == 2


@pytest.mark.parametrize("strict", [ssl.VerifyFlags(0), ssl.VERIFY_X509_STRICT])
def test_a_client_that_trusts_it_alone_shakes_hands(
    tmp_path: Path, strict: ssl.VerifyFlags
) -> None:
    now = dt.datetime.now(dt.UTC)
    path = tmp_path / "api.pem"
    client = upstream_context(made(path, "127.0.0.1", now=now))
    client.verify_flags |= strict
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
