"""The server certificate of the Chat API, reissued when this machine's addresses change.

It is signed by a separate root certificate, which client programs trust and which stays the same. Otherwise, each
VPN, dock or new address of this computer would lock programs out until their users installed a new certificate.
Both certificates share one key. It is stored on disk, encrypted with the passphrase of the machine's own key
(SAFETY.md 2).
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

from app.network.identity import Write

log = logging.getLogger(__name__)

FILE = "api.pem"
LASTS = dt.timedelta(days=820)  # lifetime of the server certificate; Apple's systems accept at most 825 days
STAYS = dt.timedelta(days=7300)  # lifetime of the root certificate
RENEWED_BEFORE = dt.timedelta(days=30)
EARLIEST = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)  # an earlier time means that the clock has lost its battery
NAME = "Poolhouse"


def load_or_make(path: Path, write: Write, passphrase: str, addresses: Sequence[str], now: dt.datetime) -> str:
    """Return the root certificate that client programs must trust, as PEM. Reissue the server certificate if needed.

    The file at `path` contains the key and both certificates. Setting the clock back does not cause a new root
    certificate, because programs would no longer trust this computer once the clock is right again. Raises OSError.
    """
    now = max(now, EARLIEST)
    key, known = _load(path, passphrase)
    if key is None:
        key = ec.generate_private_key(ec.SECP256R1())
    match known:
        case [shown, root] if _is_good_long(root, now):
            if _fits(shown, addresses, now):
                return _pem(root)
        case _:  # there is no certificate yet, or only one without a root, made by the first builds
            root = _root(key, now)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase.encode()),
    )
    shown = _shown(key, root, addresses, now)
    write(path, secret + (_pem(shown) + _pem(root)).encode())
    return _pem(root)


def shown_fingerprint(path: Path) -> str:
    """Return the SHA-256 fingerprint of the server certificate as browsers write it, or "" if there is none."""
    try:
        shown = x509.load_pem_x509_certificates(path.read_bytes())[0]
    except (OSError, ValueError):
        return ""
    return shown.fingerprint(hashes.SHA256()).hex(":").upper()


def _load(path: Path, passphrase: str) -> tuple[ec.EllipticCurvePrivateKey | None, list[x509.Certificate]]:
    """Return the stored key and certificates. An unreadable key counts as missing, since no pairing depends on it."""
    try:
        content = path.read_bytes()
        key = serialization.load_pem_private_key(content, passphrase.encode())
        known = x509.load_pem_x509_certificates(content)
    except FileNotFoundError:
        return None, []
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        log.warning("the certificate of the Chat API is unreadable and will be replaced: %s", error)
        return None, []
    return (key, known) if isinstance(key, ec.EllipticCurvePrivateKey) else (None, [])


def _is_good_long(known: x509.Certificate, now: dt.datetime) -> bool:
    return now <= known.not_valid_after_utc - RENEWED_BEFORE


def _fits(known: x509.Certificate, addresses: Iterable[str], now: dt.datetime) -> bool:
    if now < known.not_valid_before_utc or not _is_good_long(known, now):
        return False
    names = known.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    has = set(names.get_values_for_type(x509.IPAddress))
    return has >= {ipaddress.ip_address(address) for address in addresses}


def _root(key: ec.EllipticCurvePrivateKey, now: dt.datetime) -> x509.Certificate:
    """Create a root certificate that is valid only for IP addresses. Trusting it affects no website."""
    ski = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    name = _name(f"{NAME} {ski.digest.hex()[:16]}")
    anywhere = [x509.IPAddress(ipaddress.ip_network(text)) for text in ("0.0.0.0/0", "::/0")]
    bounds = x509.NameConstraints(anywhere, excluded_subtrees=[x509.DNSName("")])
    return _signed(
        key,
        name,
        name,
        EARLIEST,
        now + STAYS,
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (_usage(vouches=True), True),
        (bounds, True),
    )


def _shown(
    key: ec.EllipticCurvePrivateKey, root: x509.Certificate, addresses: Iterable[str], now: dt.datetime
) -> x509.Certificate:
    alternatives = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    return _signed(
        key,
        root.subject,
        _name(NAME),
        now,
        now + LASTS,
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_usage(vouches=False), True),
        (x509.SubjectAlternativeName(alternatives), False),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
    )


def _signed(
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    subject: x509.Name,
    since: dt.datetime,
    until: dt.datetime,
    *extensions: tuple[x509.ExtensionType, bool],
) -> x509.Certificate:
    public = key.public_key()
    ski = x509.SubjectKeyIdentifier.from_public_key(public)
    builder = x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=public,
        serial_number=x509.random_serial_number(),
        not_valid_before=since - dt.timedelta(days=1),  # clocks of other computers may be slow
        not_valid_after=until,
    )
    own = (ski, False), (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ski), False)
    for extension, critical in (*extensions, *own):
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(key, hashes.SHA256())


def _name(words: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, words)])


def _usage(*, vouches: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not vouches,
        key_cert_sign=vouches,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
