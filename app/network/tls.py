"""TLS contexts, built nowhere else: TLS 1.3, trusting exactly the pinned certificates.

SAFETY.md 2. Each line prevents a pitfall from the table there; tests/network/test_tls.py demonstrates them all.
"""

from __future__ import annotations

import hashlib
import logging
import ssl
import traceback
from collections.abc import Sequence
from pathlib import Path

from app.core.ids import MachineId

log = logging.getLogger(__name__)

# openssl/x509_vfy.h: X509_V_FLAG_NO_CHECK_TIME, which Python does not define. The profile fixes the dates of every
# pinned certificate (app/network/identity.py), so checking them proves nothing, and a clock before 2020 would lock
# everyone out.
NO_CHECK_TIME = 0x200000


def peer_context(purpose: ssl.Purpose, cert: Path, passphrase: str, pins: Sequence[bytes]) -> ssl.SSLContext:
    """Return a context for links between members: CLIENT_AUTH to accept them, SERVER_AUTH to dial.

    `cert`: PEM file with our certificate and its encrypted key. `pins`: the certificates of the admitted machines,
    as DER. They must meet the profile.
    """
    server = purpose is ssl.Purpose.CLIENT_AUTH
    context = _bare(server)
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags |= NO_CHECK_TIME
    context.load_cert_chain(cert, password=lambda: passphrase)
    for pin in pins:  # one by one, so that an unreadable certificate excludes only its own machine
        try:
            context.load_verify_locations(cadata=pin)
        except (ssl.SSLError, ValueError) as error:
            log.warning("the certificate of %s cannot be used: %s", fingerprint(pin)[:16], error)
    return context


def pairing_server_context(cert: Path, passphrase: str) -> ssl.SSLContext:
    """Return a server context that requests no certificate: the newcomer sends its own, and the code proves it."""
    context = _bare(server=True)
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(cert, password=lambda: passphrase)
    return context


def pairing_client_context() -> ssl.SSLContext:
    """Return a client context that does not verify the server's certificate: the code proves it (SPAKE2)."""
    context = _bare(server=False)
    context.verify_mode = ssl.CERT_NONE
    return context


def upstream_context(certificate: str) -> ssl.SSLContext:
    """Return a context for a server outside the household that the user named.

    Trusts `certificate` (PEM) alone, or the public authorities if it is empty. Raises ssl.SSLError if it cannot be
    read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # requires a certificate and checks its name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate:
        context.load_verify_locations(cadata=certificate)
    else:
        context.load_default_certs()
    return context


def peer_der(link: object) -> bytes | None:
    """Return the certificate that the other side of a handshake presented, or None."""
    if not isinstance(link, ssl.SSLObject | ssl.SSLSocket):
        return None
    return link.getpeercert(binary_form=True)


def let_go(error: Exception) -> None:
    """Release the memory of a handshake that failed with `error`: 256 KiB of buffers, in a reference cycle.

    The error refers to asyncio's frames, and these to the future that contains the error. Hundreds of such cycles
    would remain until the next full collection, so failed connection attempts would make the node grow.
    """
    traceback.clear_frames(error.__traceback__)


def fingerprint(der: bytes) -> MachineId:
    """Return the id of the machine with this certificate."""
    return MachineId(hashlib.sha256(der).hexdigest())


def _bare(server: bool) -> ssl.SSLContext:
    """Return a context without any CAs. (`create_default_context` loads the public ones.)"""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the fingerprint is the identity
    if server:
        context.num_tickets = 0  # otherwise a removed peer could resume an old session
    return context
