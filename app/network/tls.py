"""The only place that builds TLS contexts: TLS 1.3, trusting exactly the pinned certificates.

SAFETY.md 2. Each line answers a pitfall of the table there; tests/network/test_tls.py shows them all.
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

# openssl/x509_vfy.h: X509_V_FLAG_NO_CHECK_TIME, which Python has no name for. Each pin is one certificate whose dates
# the profile fixes (app/network/identity.py): there is nothing to learn from them; a clock before 2020 would lock out.
NO_CHECK_TIME = 0x200000


def peer_context(purpose: ssl.Purpose, cert: Path, passphrase: str, pins: Sequence[bytes]) -> ssl.SSLContext:
    """A context for links between members. CLIENT_AUTH: we accept; SERVER_AUTH: we dial.

    `cert`: PEM with our certificate and its encrypted key; `pins`: DER of those let in, which meet the profile.
    """
    server = purpose is ssl.Purpose.CLIENT_AUTH
    context = _bare(server)
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags |= NO_CHECK_TIME
    context.load_cert_chain(cert, password=lambda: passphrase)
    for pin in pins:  # one by one: whose certificate cannot be read stays out, alone
        try:
            context.load_verify_locations(cadata=pin)
        except (ssl.SSLError, ValueError) as error:
            log.warning("the certificate of %s cannot be used: %s", fingerprint(pin)[:16], error)
    return context


def pairing_server_context(cert: Path, passphrase: str) -> ssl.SSLContext:
    """Asks for no certificate: the newcomer names its own inside, and the code proves it."""
    context = _bare(server=True)
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(cert, password=lambda: passphrase)
    return context


def pairing_client_context() -> ssl.SSLContext:
    """Reads the server's certificate without trusting it: the code proves it (SPAKE2)."""
    context = _bare(server=False)
    context.verify_mode = ssl.CERT_NONE
    return context


def upstream_context(certificate: str) -> ssl.SSLContext:
    """Return a context for servers outside the household that the user named. Raises ssl.SSLError.

    The public authorities vouch for them, or `certificate` (PEM) alone is trusted; SSLError is for one that cannot be
    read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # asks for a certificate, and for its name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate:
        context.load_verify_locations(cadata=certificate)
    else:
        context.load_default_certs()
    return context


def peer_der(link: object) -> bytes | None:
    """The certificate the other side of a handshake showed, whatever the transport calls it."""
    if not isinstance(link, ssl.SSLObject | ssl.SSLSocket):
        return None
    return link.getpeercert(binary_form=True)


def let_go(error: Exception) -> None:
    """Release what a handshake held that ended with `error`: 256 KiB of buffers, in a reference cycle.

    The error holds asyncio's frames, and these the future that holds the error. Until the next full collection hundreds
    of such cycles would remain, so failed connection attempts would make the node grow.
    """
    traceback.clear_frames(error.__traceback__)


def fingerprint(der: bytes) -> MachineId:
    """The id of the machine whose certificate this is."""
    return MachineId(hashlib.sha256(der).hexdigest())


def _bare(server: bool) -> ssl.SSLContext:
    """Built from nothing: `create_default_context` keeps the public CAs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # identity is the fingerprint
    if server:
        context.num_tickets = 0  # a removed peer could resume an old session
    return context
