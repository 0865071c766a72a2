"""The typed code proves both machines; whoever stands between, guesses or plays with it fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from app.core.errors import Refused
from app.network.identity import BadCertificate, Identity
from app.network.membership.code_exchange import (
    Doorkeeper,
    Newcomer,
    PairAnswer,
    PairConfirm,
    PairHello,
    PairMessage,
    PairProof,
    PairSigned,
    WrongProof,
    decode,
    encode,
)
from app.network.messages import PROTOCOL, BadMessage
from tests.network.certificates import Recipe
from tests.network.nodes import an_identity

Change = Callable[[PairMessage], PairMessage]


@pytest.fixture
async def three(tmp_path: Path) -> list[Identity]:
    return [(await an_identity(tmp_path / name))[1] for name in ("new", "member", "between")]


def newcomer(me: Identity, server: Identity, code: str = "123456") -> Newcomer:
    return Newcomer(code, me, "new", "0.1", server.der, b"n" * 32)


def keeper(me: Identity, code: str = "123456") -> Doorkeeper:
    return Doorkeeper(code, me, "member", "0.1", b"m" * 32)


def run(a: Newcomer, b: Doorkeeper, change: Change = lambda message: message) -> object:
    """The whole exchange; `change` sees each message on its way."""
    hello = change(a.hello())
    assert isinstance(hello, PairHello)
    answer = change(b.handle_hello(hello))
    assert isinstance(answer, PairAnswer)
    proof = change(a.handle_answer(answer))
    assert isinstance(proof, PairProof)
    confirm = change(b.handle_proof(proof))
    assert isinstance(confirm, PairConfirm)
    signed = change(a.handle_confirm(confirm))
    assert isinstance(signed, PairSigned)
    return b.handle_signature(signed)


async def test_the_right_code_names_the_newcomer(three: list[Identity]) -> None:
    new, member, _ = three
    wired = run(newcomer(new, member), keeper(member), lambda message: decode(encode(message)))
    assert wired == (new.id, new.der, "new")


async def test_a_wrong_code_fails_at_the_member(three: list[Identity]) -> None:
    new, member, _ = three
    a, b = newcomer(new, member, "654321"), keeper(member)
    proof = a.handle_answer(b.handle_hello(a.hello()))
    with pytest.raises(WrongProof):
        b.handle_proof(proof)


async def test_the_right_code_through_a_relay_fails(three: list[Identity]) -> None:
    """N sees the relay's certificate in TLS, so both ends bind other identities."""
    new, member, between = three
    a, b = newcomer(new, between), keeper(member)
    with pytest.raises(WrongProof):
        b.handle_proof(a.handle_answer(b.handle_hello(a.hello())))


async def test_a_swapped_certificate_in_the_hello_fails(three: list[Identity]) -> None:
    new, member, between = three

    def swap(message: PairMessage) -> PairMessage:
        if isinstance(message, PairHello):
            return msgspec.structs.replace(message, der=between.der)
        return message

    with pytest.raises(WrongProof):
        run(newcomer(new, member), keeper(member), swap)


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (PairHello, "name"),
        (PairHello, "nonce"),
        (PairHello, "spake"),
        (PairAnswer, "name"),
        (PairAnswer, "nonce"),
        (PairAnswer, "spake"),
        (PairProof, "tag"),
        (PairConfirm, "tag"),
        (PairConfirm, "sealed"),
        (PairSigned, "sealed"),
    ],
)
async def test_every_changed_field_fails(three: list[Identity], kind: type[PairMessage], field: str) -> None:
    new, member, _ = three

    def change(message: PairMessage) -> PairMessage:
        if not isinstance(message, kind):
            return message
        value = getattr(message, field)
        changed = "other" if isinstance(value, str) else value[:-1] + bytes([value[-1] ^ 1])
        return msgspec.structs.replace(message, **{field: changed})

    with pytest.raises(WrongProof):
        run(newcomer(new, member), keeper(member), change)


async def test_reflection_fails(three: list[Identity]) -> None:
    new, member, _ = three
    a = newcomer(new, member)
    echo = PairAnswer(name="member", nonce=b"m" * 32, spake=a.hello().spake)
    with pytest.raises(WrongProof):
        a.handle_answer(echo)
    a, b = newcomer(new, member), keeper(member)
    proof = a.handle_answer(b.handle_hello(a.hello()))
    sealed = b.handle_proof(proof).sealed
    with pytest.raises(WrongProof):  # its own tag sent back
        a.handle_confirm(PairConfirm(tag=proof.tag, sealed=sealed))
    with pytest.raises(WrongProof):  # our signature sent back as theirs
        b.handle_signature(PairSigned(sealed=sealed))


async def test_a_replay_fails(three: list[Identity]) -> None:
    new, member, _ = three
    a, b = newcomer(new, member), keeper(member)
    hello = a.hello()
    proof = a.handle_answer(b.handle_hello(hello))
    again = keeper(member)
    again.handle_hello(hello)
    with pytest.raises(WrongProof):
        again.handle_proof(proof)


@pytest.mark.parametrize("numbers", [b"", b"A", b"A" + bytes(32), b"B" + bytes(32), b"\xff" * 99])
async def test_numbers_that_are_none_count_as_a_guess(three: list[Identity], numbers: bytes) -> None:
    new, member, _ = three
    hello = msgspec.structs.replace(newcomer(new, member).hello(), spake=numbers)
    with pytest.raises(WrongProof):
        keeper(member).handle_hello(hello)


@pytest.mark.parametrize("apart", [-2, 2, 9])
async def test_another_version_is_told_both(three: list[Identity], apart: int) -> None:
    new, member, _ = three
    hello = newcomer(new, member).hello()
    other = msgspec.structs.replace(hello, version=PROTOCOL + apart, build="9.9")
    with pytest.raises(Refused) as refused:
        keeper(member).handle_hello(other)
    facts = refused.value.reason.facts
    assert refused.value.reason.code == "version_differs"
    assert {facts["older_build"], facts["newer_build"]} == {"0.1", "9.9"}
    assert facts["older"] == ("new" if apart < 0 else "member")


async def test_odd_certificates_are_no_guess_and_get_nowhere(three: list[Identity]) -> None:
    new, member, _ = three
    hello = newcomer(new, member).hello()
    with pytest.raises(BadMessage):
        keeper(member).handle_hello(msgspec.structs.replace(hello, der=Recipe(ca=True).der()))
    with pytest.raises(Refused):
        keeper(member).handle_hello(msgspec.structs.replace(hello, der=member.der))
    with pytest.raises(BadCertificate):
        Newcomer("123456", new, "new", "0.1", Recipe(ca=True).der(), b"n" * 32)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b'{"type":"pair_proof"}',
        b'{"type":"pair_proof","tag":"AAAA"}',
        b'{"type":"pair_proof","tag":1}',
        b"[" * 9,
        b" " * 8193,
        b"\xff\xfe",
    ],
)
def test_only_our_messages_are_read(raw: bytes) -> None:
    with pytest.raises(BadMessage):
        decode(raw)
