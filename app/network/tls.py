"""All TLS contexts of the program. Contexts for other machines require TLS 1.3 and trust only pinned certificates.

See SAFETY.md 2. Each setting avoids a pitfall listed there. tests/network/test_tls.py demonstrates each pitfall.
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
# pinned certificate (app/network/identity.py), so checking them proves nothing, whereas a clock before 2020 would lock
# everyone out.
NO_CHECK_TIME = 0x200000


def peer_context(purpose: ssl.Purpose, cert: Path, passphrase: str, pins: Sequence[bytes]) -> ssl.SSLContext:
    """Return a context for links between members: CLIENT_AUTH for accepting, SERVER_AUTH for dialing.

    cert: the PEM file with our certificate and its encrypted key.
    pins: the certificates of the admitted machines as DER, which must meet the profile.
    """
    server = purpose is ssl.Purpose.CLIENT_AUTH
    context = _bare(server)
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags |= NO_CHECK_TIME
    context.load_cert_chain(cert, password=lambda: passphrase)
    for pin in pins:  # one at a time, so that an unreadable certificate excludes only its own machine
        try:
            context.load_verify_locations(cadata=pin)
        except (ssl.SSLError, ValueError) as error:
            log.warning("the certificate of %s cannot be used: %s", fingerprint(pin)[:16], error)
    return context


def pairing_server_context(cert: Path, passphrase: str) -> ssl.SSLContext:
    """Return the server context for pairing, which does not request a certificate.

    The newcomer sends its certificate in a message instead, and the pairing code authenticates it.
    """
    context = _bare(server=True)
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(cert, password=lambda: passphrase)
    return context


def pairing_client_context() -> ssl.SSLContext:
    """Return the client context for pairing, which does not verify the server's certificate.

    The pairing code authenticates it instead (SPAKE2).
    """
    context = _bare(server=False)
    context.verify_mode = ssl.CERT_NONE
    return context


def upstream_context(certificate: str) -> ssl.SSLContext:
    """Return a context for an upstream server that the user configured.

    It trusts only `certificate` (PEM), or the public authorities if none is given. Raises ssl.SSLError if the
    certificate is invalid.
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


def free_handshake_memory(error: Exception) -> None:
    """Free the memory of a handshake that failed with `error`: 256 KiB of buffers in a reference cycle.

    The error's traceback refers to asyncio's frames, which refer to the future that contains the error. Without
    this, hundreds of such cycles could accumulate until the next full garbage collection.
    """
    traceback.clear_frames(error.__traceback__)


def fingerprint(der: bytes) -> MachineId:
    """Return the id of the machine with this certificate, which is the certificate's SHA-256."""
    return MachineId(hashlib.sha256(der).hexdigest())


def _bare(server: bool) -> ssl.SSLContext:
    """Return a TLS 1.3 context without any CAs. (`create_default_context` would load the public ones.)"""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the fingerprint is the identity
    if server:
        context.num_tickets = 0  # otherwise a removed peer could resume an old session
    return context
