"""Pairing by SPAKE2 with the typed code, bound to both certificates. The two protocol objects do no I/O.

See SAFETY.md 3. N, the newcomer, is side A. M, the member with the open window, is side B.

    A -> B  PairHello    version, certificate, name, nonce, SPAKE2 message
    B -> A  PairAnswer   name, nonce, SPAKE2 message
    A -> B  PairProof    A's tag: A knows the code
    B -> A  PairConfirm  B's tag, B's signature of the transcript under a third key
    A -> B  PairSigned   A's signature
    B -> A  PairWelcome  the household, the peer port, and how many PairOperations follow

A man in the middle with a different certificate derives another key, so every tag fails.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated

import msgspec
import spake2
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from app.core.errors import Refused
from app.core.household.operations import MAX_DER_BYTES, MAX_OPERATION_BYTES
from app.core.ids import MachineId, clean_name
from app.network.identity import BadCertificate, Identity, check_profile, verify
from app.network.messages import MAX_DEPTH, PROTOCOL, BadMessage, Code, Facts, Id, Name, are_compatible, is_too_deep
from app.network.tls import fingerprint

CONTEXT = b"poolhouse pair 1"
MAX_PAIR_BYTES = 8 << 10
NONCE_BYTES = 32
CODE_DIGITS = 6

Nonce = Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
Tag = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Small = Annotated[bytes, msgspec.Meta(max_length=256)]


class WrongProof(Exception):
    """Error for an invalid proof: the other side does not know the code, or there is a man in the middle."""


class _Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", kw_only=True):
    pass


class PairHello(_Pair, frozen=True, tag="pair_hello"):
    """The newcomer's first message."""

    version: int
    build: Name
    der: Annotated[bytes, msgspec.Meta(max_length=MAX_DER_BYTES)]
    name: Name
    nonce: Nonce
    spake: Small


class PairAnswer(_Pair, frozen=True, tag="pair_answer"):
    """The reply to PairHello, sent by the machine with the pairing window."""

    name: Name
    nonce: Nonce
    spake: Small


class PairProof(_Pair, frozen=True, tag="pair_proof"):
    """The newcomer's tag, which proves that it knows the code."""

    tag: Tag


class PairConfirm(_Pair, frozen=True, tag="pair_confirm"):
    """The tag and the sealed signature of the machine with the pairing window."""

    tag: Tag
    sealed: Small


class PairSigned(_Pair, frozen=True, tag="pair_signed"):
    """The newcomer's sealed signature."""

    sealed: Small


class PairWelcome(_Pair, frozen=True, tag="pair_welcome"):
    """The household being joined. `operations` is the number of PairOperation messages that follow."""

    household: Id
    peer_port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    operations: Annotated[int, msgspec.Meta(ge=1, le=4096)]


class PairOperation(_Pair, frozen=True, tag="pair_operation"):
    """One line of the household log."""

    operation: Annotated[str, msgspec.Meta(max_length=MAX_OPERATION_BYTES)]


class PairRefuse(_Pair, frozen=True, tag="pair_refuse"):
    """The reason for ending the exchange."""

    code: Code
    facts: Facts = {}


PairMessage = PairHello | PairAnswer | PairProof | PairConfirm | PairSigned | PairWelcome | PairOperation | PairRefuse
_DECODER: msgspec.json.Decoder[PairMessage] = msgspec.json.Decoder(PairMessage)


def encode(message: PairMessage) -> bytes:
    """Encode a message as JSON."""
    return msgspec.json.encode(message)


def decode(raw: bytes) -> PairMessage:
    """Decode a message. Raises only BadMessage."""
    if len(raw) > MAX_PAIR_BYTES or is_too_deep(raw):
        raise BadMessage(f"longer than 8 KiB or deeper than {MAX_DEPTH} levels")
    try:
        return _DECODER.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadMessage(str(error)) from error


class Newcomer:
    """Side A of the protocol. Its methods must be called once each, in the order in which they are defined."""

    def __init__(self, code: str, me: Identity, name: str, build: str, server_der: bytes, nonce: bytes) -> None:
        """Prepare side A. `server_der` is the certificate that the server presented. Raises BadCertificate."""
        check_profile(server_der)
        self._me, self._server_der = me, server_der
        ids = _ids(me.der, server_der)
        self._spake = spake2.SPAKE2_A(code.encode("ascii"), idA=ids[0], idB=ids[1])
        self._hello = PairHello(
            version=PROTOCOL, build=build, der=me.der, name=clean_name(name), nonce=nonce, spake=self._spake.start()
        )
        self._keys: _Keys | None = None

    def hello(self) -> PairHello:
        """Return the first message."""
        return self._hello

    def handle_answer(self, answer: PairAnswer) -> PairProof:
        """Process the answer, and return the proof that this side knows the code. Raises WrongProof."""
        key = _finish(self._spake, answer.spake)
        self._keys = _Keys(key, _transcript(self._hello, answer, self._server_der))
        return PairProof(tag=self._keys.tag(b"A"))

    def handle_confirm(self, confirm: PairConfirm) -> PairSigned:
        """Check the other side's proof and signature, and return our signature. Raises WrongProof."""
        keys = self._keys
        assert keys is not None
        if not hmac.compare_digest(confirm.tag, keys.tag(b"B")):
            raise WrongProof("tag")
        keys.check(b"B", confirm.sealed, self._server_der)
        return PairSigned(sealed=keys.seal(b"A", self._me))


class Doorkeeper:
    """Side B of the protocol. Its methods must be called once each, in the order in which they are defined."""

    def __init__(self, code: str, me: Identity, name: str, build: str, nonce: bytes) -> None:
        self._code, self._me, self._name = code, me, clean_name(name)
        self._build, self._nonce = build, nonce
        self._hello: PairHello | None = None
        self._keys: _Keys | None = None

    def handle_hello(self, hello: PairHello) -> PairAnswer:
        """Process the newcomer's first message, and return the answer with our SPAKE2 message.

        Raises Refused if the version is incompatible, BadMessage if the certificate cannot be pinned, and
        WrongProof if the SPAKE2 message is invalid.
        """
        if not are_compatible(hello.version, PROTOCOL):
            raise Refused("version_differs", **self._versions(hello))
        try:
            check_profile(hello.der)
        except BadCertificate as error:
            raise BadMessage(str(error)) from error
        if hello.der == self._me.der:
            raise Refused("peer_is_this", name=self._name)
        ids = _ids(hello.der, self._me.der)
        spake = spake2.SPAKE2_B(self._code.encode("ascii"), idA=ids[0], idB=ids[1])
        answer = PairAnswer(name=self._name, nonce=self._nonce, spake=spake.start())
        transcript = _transcript(hello, answer, self._me.der)
        self._hello = hello
        self._keys = _Keys(_finish(spake, hello.spake), transcript)
        return answer

    def handle_proof(self, proof: PairProof) -> PairConfirm:
        """Check the newcomer's proof, and return ours. Raises WrongProof. The caller must count the attempt first."""
        keys = self._keys
        assert keys is not None
        if not hmac.compare_digest(proof.tag, keys.tag(b"A")):
            raise WrongProof("tag")
        return PairConfirm(tag=keys.tag(b"B"), sealed=keys.seal(b"B", self._me))

    def handle_signature(self, signed: PairSigned) -> tuple[MachineId, bytes, str]:
        """Check the newcomer's signature. Return its id, certificate and name, which are now proved. Raises
        WrongProof."""
        keys, hello = self._keys, self._hello
        assert keys is not None
        assert hello is not None
        keys.check(b"A", signed.sealed, hello.der)
        return fingerprint(hello.der), hello.der, clean_name(hello.name)

    def _versions(self, hello: PairHello) -> dict[str, str]:
        theirs, mine = (clean_name(hello.name), hello.build), (self._name, self._build)
        old, new = (theirs, mine) if hello.version < PROTOCOL else (mine, theirs)
        return {"older": old[0], "older_build": old[1], "newer": new[0], "newer_build": new[1]}


class _Keys:
    """The three keys derived from a SPAKE2 result, used for one transcript."""

    def __init__(self, key: bytes, transcript: bytes) -> None:
        self._transcript = transcript
        self._tags = {side: _derive(key, CONTEXT + b" " + side) for side in (b"A", b"B")}
        self._box = ChaCha20Poly1305(_derive(key, CONTEXT + b" signatures"))

    def tag(self, side: bytes) -> bytes:
        """Return the tag of a side. Only a machine that knows the code can compute it."""
        return hmac.digest(self._tags[side], self._transcript, "sha256")

    def seal(self, side: bytes, identity: Identity) -> bytes:
        """Return our signature of the transcript, encrypted for the other side."""
        signature = identity.sign(self._to_sign(side))
        return self._box.encrypt(_nonce(side), signature, self._transcript)

    def check(self, side: bytes, sealed: bytes, der: bytes) -> None:
        """Verify the sealed signature of the owner of `der`. Raises WrongProof."""
        try:
            signature = self._box.decrypt(_nonce(side), sealed, self._transcript)
        except InvalidTag as error:
            raise WrongProof("seal") from error
        if not verify(der, self._to_sign(side), signature):
            raise WrongProof("signature")

    def _to_sign(self, side: bytes) -> bytes:
        return CONTEXT + b" " + side + b"\0" + self._transcript


def _finish(spake: spake2.SPAKE2_A | spake2.SPAKE2_B, message: bytes) -> bytes:
    try:
        key: bytes = spake.finish(message)
    except Exception as error:
        raise WrongProof("SPAKE2") from error
    return key


def _transcript(hello: PairHello, answer: PairAnswer, server_der: bytes) -> bytes:
    """Return the hash of everything that both sides sent. Each part is preceded by its length."""
    parts = (
        CONTEXT,
        str(hello.version).encode(),
        hello.der,
        server_der,
        hello.name.encode("utf-8"),
        answer.name.encode("utf-8"),
        hello.nonce,
        answer.nonce,
        hello.spake,
        answer.spake,
    )
    return hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()


def _ids(newcomer_der: bytes, server_der: bytes) -> tuple[bytes, bytes]:
    return hashlib.sha256(newcomer_der).digest(), hashlib.sha256(server_der).digest()


def _derive(key: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(key)


def _nonce(side: bytes) -> bytes:
    """Return the nonce of a side. A constant is safe, because each side encrypts only one message with the key."""
    return side.ljust(12, b"\0")
