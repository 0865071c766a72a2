"""The certificate that other computers see at the Chat API: of this machine's addresses, made again when those change.

Its key is on the disk only encrypted, by the same passphrase as the machine's own (SAFETY.md 2), and stays when the
certificate is made again.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from app.lan.place import Write

log = logging.getLogger(__name__)

FILE = "api.pem"
LASTS = dt.timedelta(days=820)  # Apple's systems take none that lasts longer than 825
RENEWED_BEFORE = dt.timedelta(days=30)
NAME = "Poolhouse"


def load_or_make(
    path: Path, write: Write, passphrase: str, addresses: Sequence[str], now: dt.datetime
) -> str:
    """The certificate as PEM, which programs are told to trust. `path` has it, with its key. Raises OSError."""
    key, known = _load(path, passphrase)
    if key is None:
        key = ec.generate_private_key(ec.SECP256R1())
    elif known is not None and _fits(known, addresses, now):
        return _pem(known)
    made = _made(key, addresses, now)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase.encode()),
    )
    write(path, secret + _pem(made).encode())
    return _pem(made)


def _load(
    path: Path, passphrase: str
) -> tuple[ec.EllipticCurvePrivateKey | None, x509.Certificate | None]:
    """What is there; a key that cannot be read is made again: no pairing hangs on it."""
    try:
        content = path.read_bytes()
        key = serialization.load_pem_private_key(content, passphrase.encode())
        known = x509.load_pem_x509_certificate(content)
    except FileNotFoundError:
        return None, None
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        log.warning("the certificate of the Chat API is made anew: %s", error)
        return None, None
    return (key, known) if isinstance(key, ec.EllipticCurvePrivateKey) else (None, None)


def _fits(known: x509.Certificate, addresses: Iterable[str], now: dt.datetime) -> bool:
    if not known.not_valid_before_utc <= now <= known.not_valid_after_utc - RENEWED_BEFORE:
        return False
    names = known.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    has = set(names.get_values_for_type(x509.IPAddress))
    return has >= {ipaddress.ip_address(address) for address in addresses}


def _made(
    key: ec.EllipticCurvePrivateKey, addresses: Iterable[str], now: dt.datetime
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    public = key.public_key()
    ski = x509.SubjectKeyIdentifier.from_public_key(public)
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=public,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - dt.timedelta(days=1),  # clocks differ
        not_valid_after=now + LASTS,
    )
    alternatives = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    for extension, critical in (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.SubjectAlternativeName(alternatives), False),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (ski, False),
        (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ski), False),
    ):
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
