"""Certificates good and bad, and handshakes in memory."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from app.network import identity
from app.network.identity import NOT_AFTER, NOT_BEFORE, make_certificate

PASSPHRASE = "opensesame"


@dataclass
class Recipe:
    """A certificate of the profile, but for what is changed."""

    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    name: str | None = None
    issuer: str | None = None
    issuer_key: Ed25519PrivateKey | None = None
    ca: bool = False
    uses: Sequence[x509.ObjectIdentifier] = identity.BOTH_USES
    not_before: dt.datetime = NOT_BEFORE
    not_after: dt.datetime = NOT_AFTER
    usage_critical: bool = True
    signs_certificates: bool = False
    san: str = "x.poolhouse"
    without: str = ""

    def der(self) -> bytes:
        name = self.name or identity._label(self.key.public_key())
        issuer_key = self.issuer_key or self.key
        builder = x509.CertificateBuilder(
            _name(self.issuer or name), _name(name), self.key.public_key(), 7, self.not_before, self.not_after
        )
        ski = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        aki = x509.SubjectKeyIdentifier.from_public_key(issuer_key.public_key())
        usage = x509.KeyUsage(True, False, False, False, False, self.signs_certificates, False, False, False)
        extensions: list[tuple[str, x509.ExtensionType, bool]] = [
            ("bc", x509.BasicConstraints(self.ca, None), True),
            ("ku", usage, self.usage_critical),
            ("eku", x509.ExtendedKeyUsage(self.uses), False),
            ("ski", ski, False),
            ("aki", x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(aki), False),
            ("san", x509.SubjectAlternativeName([x509.DNSName(self.san)]), False),
        ]
        for label, extension, critical in extensions:
            if label != self.without:
                builder = builder.add_extension(extension, critical)
        return builder.sign(issuer_key, None).public_bytes(serialization.Encoding.DER)

    def save(self, path: Path) -> bytes:
        """Write key and certificate as an identity file; the DER."""
        der = self.der()
        write_identity(path, self.key, der)
        return der


def good() -> tuple[Ed25519PrivateKey, bytes]:
    key = Ed25519PrivateKey.generate()
    return key, make_certificate(key)


def write_identity(path: Path, key: Ed25519PrivateKey, der: bytes) -> None:
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSPHRASE.encode()),
    )
    certificate = x509.load_der_x509_certificate(der)
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))


def elliptic() -> bytes:
    """A P-256 certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateBuilder(_name("x"), _name("x"), key.public_key(), 7, NOT_BEFORE, NOT_AFTER)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def loaded(context: ssl.SSLContext, path: Path) -> ssl.SSLContext:
    context.load_cert_chain(path, password=PASSPHRASE)
    return context


@dataclass
class Outcome:
    """The outcome of a handshake: the errors of each side, and the identity that the server saw."""

    client_error: str | None
    server_error: str | None
    server_saw: bytes | None = None
    client_saw: bytes | None = None

    @property
    def up(self) -> bool:
        return self.client_error is None and self.server_error is None


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> Outcome:
    """Both ends in memory, then one byte from the server, where TLS 1.3 shows a refusal."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    there = server.wrap_bio(to_server, to_client, server_side=True)
    here = client.wrap_bio(to_client, to_server, server_hostname="peer")
    errors: dict[str, str | None] = {"client": None, "server": None}
    done: set[str] = set()
    for _ in range(6):
        for side, link in (("client", here), ("server", there)):
            if side in done:
                continue
            try:
                link.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                errors[side] = error.reason
                done.add(side)
    if errors["server"] is None and "server" in done:
        there.write(b"x")
    try:
        here.read(1)
    except ssl.SSLWantReadError:
        errors["client"] = errors["client"] or "nothing came"
    except ssl.SSLError as error:
        errors["client"] = errors["client"] or error.reason
    saw = there.getpeercert(True) if errors["server"] is None and "server" in done else None
    seen = here.getpeercert(True) if "client" in done and not errors["client"] else None
    return Outcome(errors["client"], errors["server"], saw, seen)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


SERVER_ONLY = (ExtendedKeyUsageOID.SERVER_AUTH,)
