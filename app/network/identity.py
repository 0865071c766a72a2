"""The identity of this machine, which is never replaced by accident, and the profile that all certificates must meet.

See SAFETY.md 2. The private key is stored only in encrypted form, and its passphrase is in the keystore. A machine
that leaves its household sets its identity aside and starts over as a new machine.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import logging
import secrets
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import psutil
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from app.core.errors import Damaged, Refused
from app.core.household.operations import MAX_DER_BYTES
from app.core.ids import MachineId
from app.network.tls import fingerprint

log = logging.getLogger(__name__)

LEAVE_REQUEST = "leave"
LEAVING_NODE_SECONDS = 10.0  # a node that is told to stop is killed after eight seconds (app/node/start.py)
LOOK_SECONDS = 0.1

Write = Callable[[Path, bytes], None]
"""Replace a file atomically, with private permissions, and flush it to disk. Raises OSError."""
PEM_NAME, HOUSEHOLD_NAME = "identity.pem", "household.json"
PENDING = "identity.pem.new"  # name of the file until its passphrase is stored
ANEW = "anew"  # name of the file which shows that the user requested a new identity
PASSPHRASE_BYTES = 32  # 43 characters of URL-safe base64
NOT_BEFORE = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
NOT_AFTER = dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
BOTH_USES = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
SIGNATURE_TAIL = b"\x03\x41\x00"  # DER: a BIT STRING of 65 bytes, no unused bits; 64 bytes follow
EXTENSIONS = {  # extension -> whether it is critical
    ExtensionOID.BASIC_CONSTRAINTS: True,
    ExtensionOID.KEY_USAGE: True,
    ExtensionOID.EXTENDED_KEY_USAGE: False,
    ExtensionOID.SUBJECT_KEY_IDENTIFIER: False,
    ExtensionOID.AUTHORITY_KEY_IDENTIFIER: False,
    ExtensionOID.SUBJECT_ALTERNATIVE_NAME: False,
}
_WARNINGS = threading.Lock()  # the warning filter is shared by all threads


def request_leave(home: NodeHome, pid: int | None) -> None:
    """Request a new identity for the next start. Call this only if the user asked for it. Raises OSError.

    pid: the process ID of the node that is still running under the old identity.
    """
    home.write(home.identity / LEAVE_REQUEST, str(pid or "").encode())


async def leave_if_requested(home: NodeHome, late_s: float = LEAVING_NODE_SECONDS) -> None:
    """Set the identity and the household aside if the user requested it. Call this before the node reads its identity.

    Waits up to `late_s` for the old node to exit, because it might write to the new home. Raises OSError or
    BadInput.
    """
    try:
        text = await asyncio.to_thread((home.identity / LEAVE_REQUEST).read_text)
    except FileNotFoundError:
        return
    for _ in range(round(late_s / LOOK_SECONDS)):
        if not _runs(text):
            break
        await asyncio.sleep(LOOK_SECONDS)
    await reset(home)
    log.info("this machine left its household, and has a new identity")


def _runs(pid: str) -> bool:
    """Return whether the process is running. A process that has exited may stay listed until its parent reaps it."""
    try:
        return pid.isdecimal() and psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class NodeHome(Protocol):
    """The part of a node's home that the network uses (app/machine/paths.py)."""

    @property
    def identity(self) -> Path: ...
    @property
    def household(self) -> Path: ...
    def create(self) -> object: ...
    def write(self, path: Path, content: bytes) -> None:
        """Write a file; see `Write`."""


class Keystore(Protocol):
    """The store of the key's passphrase (app/machine/keyring_store.py)."""

    async def read(self) -> str | None:
        """Return the secret, or None if there is none. Raises Refused("identity_locked")."""

    async def write(self, secret: str) -> None:
        """Store `secret`, replacing any previous one. Raises Refused."""

    def lost(self) -> Refused:
        """Return the error to raise when the secret is missing or wrong."""


class BadCertificate(ValueError):
    """Error for a certificate that does not meet the profile, and therefore must not be pinned."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of this machine, including the key that proves it."""

    id: MachineId
    der: bytes
    pem: Path
    passphrase: str = field(repr=False)
    key: Ed25519PrivateKey = field(repr=False)

    def sign(self, payload: bytes) -> bytes:
        """Return the Ed25519 signature of `payload` (64 bytes)."""
        return self.key.sign(payload)


def own_id(home: NodeHome) -> str:
    """Return the ID of the machine with this home, or "" if it has none yet. Needs no passphrase."""
    try:
        certificate = x509.load_pem_x509_certificate((home.identity / PEM_NAME).read_bytes())
    except (OSError, ValueError):
        return ""
    return fingerprint(certificate.public_bytes(serialization.Encoding.DER))


async def load_or_create(home: NodeHome, keystore: Keystore) -> Identity:
    """Return the identity in `home`, or create one if there never was one. Raises the errors of `load`."""
    there = await load(home, keystore)
    return there or await _create(home, keystore)


async def load(home: NodeHome, keystore: Keystore) -> Identity | None:
    """Return the identity in `home`, or None if there is none. Writes only to finish an interrupted `_create`.

    Raises Refused if the passphrase is unavailable or wrong. Also raises Refused if the file is missing but its
    passphrase or household is present, as with an unmounted disk or an incomplete copy. Raises Damaged if the file
    is corrupt. Only the user may request a new identity, because it would lose every pairing, and its passphrase
    would replace the old one.
    """
    pem = home.identity / PEM_NAME
    try:
        content = await asyncio.to_thread(pem.read_bytes)
    except FileNotFoundError:
        return await _resume_creation(home, keystore)
    except OSError as error:
        raise Refused("identity_unreadable", path=str(pem)) from error
    passphrase = await keystore.read()
    if not passphrase:
        raise keystore.lost()
    return await asyncio.to_thread(_load, pem, content, passphrase, keystore)


async def _resume_creation(home: NodeHome, keystore: Keystore) -> Identity | None:
    """Finish an interrupted creation and return the identity, or return None if none was ever created.

    Raises Refused("identity_missing").
    """
    if await asyncio.to_thread((home.identity / ANEW).exists):
        return None  # the user requested a new identity
    pem, pending = home.identity / PEM_NAME, home.identity / PENDING
    passphrase = await keystore.read()
    begun = await asyncio.to_thread(pending.exists)
    is_member = await asyncio.to_thread((home.household / HOUSEHOLD_NAME).exists)
    if passphrase and begun:
        with suppress(Damaged, Refused):
            content = await asyncio.to_thread(pending.read_bytes)
            whole = await asyncio.to_thread(_load, pem, content, passphrase, keystore)
            await asyncio.to_thread(pending.replace, pem)
            return whole
    if passphrase or is_member:
        raise Refused("identity_missing", path=str(pem))
    return None


async def reset(home: NodeHome) -> None:
    """Set the identity and the household aside. The next start creates new ones.

    Call this only if the user asked for it. Raises OSError or BadInput.
    """
    suffix = secrets.token_hex(4)

    def put_aside() -> None:
        for directory in (home.identity, home.household):
            if directory.exists():
                directory.rename(directory.with_name(f"{directory.name}.old-{suffix}"))
        home.create()
        home.write(home.identity / ANEW, b"")  # because the keyring still holds the old passphrase

    await asyncio.to_thread(put_aside)


def make_certificate(key: Ed25519PrivateKey) -> bytes:
    """Create the certificate of `key`, as DER. The profile determines all of its content except the serial number."""
    public = key.public_key()
    label = _label(public)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, label)])
    ski = x509.SubjectKeyIdentifier.from_public_key(public)
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=public,
        serial_number=x509.random_serial_number(),
        not_valid_before=NOT_BEFORE,
        not_valid_after=NOT_AFTER,
    )
    extensions: tuple[x509.ExtensionType, ...] = (
        x509.BasicConstraints(ca=False, path_length=None),
        _signing_only(),
        x509.ExtendedKeyUsage(BOTH_USES),
        ski,
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ski),
        x509.SubjectAlternativeName([x509.DNSName(f"{label}.poolhouse")]),
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=EXTENSIONS[extension.oid])
    return builder.sign(key, None).public_bytes(serialization.Encoding.DER)


def check_profile(der: bytes) -> Ed25519PublicKey:
    """Return the public key of a certificate. Raises BadCertificate if the certificate does not meet the profile."""
    if len(der) > MAX_DER_BYTES:
        raise BadCertificate("longer than 2 KiB")
    try:
        certificate = _parsed(der)
        key = certificate.public_key()
        if not isinstance(key, Ed25519PublicKey):
            raise BadCertificate("not Ed25519")
        _check_fields(certificate, key)
        _check_extensions(certificate.extensions, key)
        if not der.endswith(SIGNATURE_TAIL + certificate.signature):
            raise BadCertificate(
                "signature is not in canonical form"
            )  # a second encoding would give one certificate two ids
        key.verify(certificate.signature, certificate.tbs_certificate_bytes)
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature) as error:
        raise BadCertificate(str(error)) from error
    except (x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise BadCertificate(str(error)) from error
    return key


def is_fit(der: bytes) -> bool:
    """Return whether a certificate meets the profile and may be pinned."""
    try:
        _key_of(der)
    except BadCertificate:
        return False
    return True


def verify(der: bytes, payload: bytes, signature: bytes) -> bool:
    """Return whether the owner of this certificate signed `payload`. The certificate must meet the profile."""
    try:
        _key_of(der).verify(signature, payload)
    except (BadCertificate, InvalidSignature):
        return False
    return True


@lru_cache(maxsize=256)
def _key_of(der: bytes) -> Ed25519PublicKey:
    """Return the result of `check_profile`, cached because the same few certificates sign all lines of a household."""
    return check_profile(der)


async def _create(home: NodeHome, keystore: Keystore) -> Identity:
    """Create an identity.

    The file is renamed to its final name only after the passphrase is stored, since it could never be read without
    it.
    """
    pem, pending = home.identity / PEM_NAME, home.identity / PENDING
    passphrase = secrets.token_urlsafe(PASSPHRASE_BYTES)
    key = Ed25519PrivateKey.generate()
    der = make_certificate(key)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase.encode("ascii")),
    )
    certificate = x509.load_der_x509_certificate(der)
    content = private + certificate.public_bytes(serialization.Encoding.PEM)
    try:
        await asyncio.to_thread(home.write, pending, content)
        await keystore.write(passphrase)
        await asyncio.to_thread(pending.replace, pem)
        await asyncio.to_thread((home.identity / ANEW).unlink, missing_ok=True)
    except OSError as error:
        raise Refused("identity_unwritten", path=str(pem)) from error
    return Identity(fingerprint(der), der, pem, passphrase, key)


def _load(pem: Path, content: bytes, passphrase: str, keystore: Keystore) -> Identity:
    try:
        certificate = x509.load_pem_x509_certificate(content)
        der = certificate.public_bytes(serialization.Encoding.DER)
        public = check_profile(der)
    except ValueError as error:
        raise Damaged("identity_damaged", path=str(pem)) from error
    try:
        key = serialization.load_pem_private_key(content, passphrase.encode("utf-8"))
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise keystore.lost() from error  # most likely, the passphrase is wrong
    if not isinstance(key, Ed25519PrivateKey) or key.public_key() != public:
        raise Damaged("identity_damaged", path=str(pem))
    return Identity(fingerprint(der), der, pem, passphrase, key)


def _parsed(der: bytes) -> x509.Certificate:
    """Parse a certificate. Raises BadCertificate even for a warning, such as about an odd serial number."""
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("error", CryptographyDeprecationWarning)
        try:
            certificate = x509.load_der_x509_certificate(der)
            if certificate.serial_number <= 0 or not certificate.extensions:
                raise BadCertificate("serial number or extensions")
        except CryptographyDeprecationWarning as warning:
            raise BadCertificate(str(warning)) from warning
    return certificate


def _check_fields(certificate: x509.Certificate, key: Ed25519PublicKey) -> None:
    if certificate.version is not x509.Version.v3:
        raise BadCertificate("not X.509 v3")
    expected = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _label(key))])
    if certificate.subject != expected or certificate.issuer != expected:
        raise BadCertificate("subject or issuer does not match the key")
    if certificate.signature_algorithm_oid != x509.oid.SignatureAlgorithmOID.ED25519:
        raise BadCertificate("not signed with Ed25519")
    valid = (certificate.not_valid_before_utc, certificate.not_valid_after_utc)
    if valid != (NOT_BEFORE, NOT_AFTER):
        raise BadCertificate("dates")


def _check_extensions(extensions: x509.Extensions, key: Ed25519PublicKey) -> None:
    if {extension.oid: extension.critical for extension in extensions} != EXTENSIONS:
        raise BadCertificate("extensions")
    basic = extensions.get_extension_for_class(x509.BasicConstraints).value
    if basic.ca or basic.path_length is not None:
        raise BadCertificate("a certificate authority")
    if extensions.get_extension_for_class(x509.KeyUsage).value != _signing_only():
        raise BadCertificate("key usage")
    uses = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    if len(list(uses)) != len(BOTH_USES) or set(uses) != set(BOTH_USES):
        raise BadCertificate("extended key usage")
    ski = x509.SubjectKeyIdentifier.from_public_key(key)
    if extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value != ski:
        raise BadCertificate("subject key identifier")
    aki = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    if aki != x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ski):
        raise BadCertificate("authority key identifier")


def _label(key: Ed25519PublicKey) -> str:
    """Return a unique common name for a key. It prevents building a chain to the wrong certificate."""
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()[:16]


def _signing_only() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
