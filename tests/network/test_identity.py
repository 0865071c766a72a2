"""The identity is made once and never replaced by accident; only its profile is ever pinned."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from app.core.errors import AppError, Damaged, Refused
from app.machine.keyring_store import FileStore
from app.machine.paths import Home
from app.network import identity
from app.network.identity import BadCertificate, check_profile, load_or_create, make_certificate, own_id, verify
from app.network.tls import fingerprint
from tests.network.certificates import SERVER_ONLY, Recipe, elliptic, good


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.at(tmp_path).create()


def store(home: Home) -> FileStore:
    return FileStore(home.identity / "passphrase")


def test_our_own_certificate_meets_the_profile() -> None:
    key, der = good()
    assert check_profile(der) == key.public_key()
    check_profile(Recipe().der())
    assert len(der) <= 2048
    assert make_certificate(key) != der  # another serial: another id, another machine


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(ca=True),
        Recipe(signs_certificates=True),
        Recipe(name="0123456789abcdef"),
        Recipe(issuer="0123456789abcdef"),
        Recipe(uses=SERVER_ONLY),
        Recipe(uses=(*identity.BOTH_USES, ExtendedKeyUsageOID.CODE_SIGNING)),
        Recipe(usage_critical=False),
        Recipe(not_after=dt.datetime(2030, 1, 1, tzinfo=dt.UTC)),
        Recipe(not_before=dt.datetime(2020, 1, 2, tzinfo=dt.UTC)),
        Recipe(without="bc"),
        Recipe(without="ku"),
        Recipe(without="eku"),
        Recipe(without="ski"),
        Recipe(without="aki"),
        Recipe(without="san"),
        Recipe(issuer_key=good()[0]),
        Recipe(san=".".join(["x" * 60] * 30)),
    ],
)
def test_any_other_certificate_is_refused(recipe: Recipe) -> None:
    with pytest.raises(BadCertificate):
        check_profile(recipe.der())


@pytest.mark.parametrize("der", [b"", b"x" * 100, b"x" * 3000, good()[1][:-1], good()[1] + b"x"])
def test_what_is_no_certificate_is_refused(der: bytes) -> None:
    with pytest.raises(BadCertificate):
        check_profile(der)


def test_another_kind_of_key_or_a_changed_byte_is_refused() -> None:
    with pytest.raises(BadCertificate):
        check_profile(elliptic())
    der = good()[1]
    for place in range(len(der)):
        for bit in (1, 128):
            broken = der[:place] + bytes([der[place] ^ bit]) + der[place + 1 :]
            with pytest.raises(BadCertificate):
                check_profile(broken)


def test_signatures() -> None:
    key, der = good()
    assert verify(der, b"payload", key.sign(b"payload"))
    assert not verify(der, b"other", key.sign(b"payload"))
    assert not verify(good()[1], b"payload", key.sign(b"payload"))
    assert not verify(b"no certificate", b"payload", key.sign(b"payload"))


async def test_made_once_then_read(home: Home) -> None:
    assert own_id(home) == ""
    made = await load_or_create(home, store(home))
    again = await load_or_create(home, store(home))
    assert own_id(home) == made.id  # which needs no passphrase
    assert made.id == again.id == fingerprint(made.der)
    assert len(made.passphrase) == 43
    assert verify(made.der, b"x", again.sign(b"x"))
    assert made.passphrase not in repr(made)
    assert (home.identity / "identity.pem").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("damage", "error", "code"),
    [
        (lambda pem, secret: secret.unlink(), Refused, "passphrase_lost"),
        (lambda pem, secret: secret.write_text(""), Refused, "passphrase_lost"),
        (lambda pem, secret: secret.write_text("wrong"), Refused, "passphrase_lost"),
        (lambda pem, secret: secret.write_bytes(b"\xff"), Refused, "secret_unread"),
        (lambda pem, secret: pem.write_bytes(b""), Damaged, "identity_damaged"),
        (lambda pem, secret: pem.write_bytes(b"\xff" * 99), Damaged, "identity_damaged"),
    ],
)
async def test_never_replaced_because_a_read_failed(  # type: ignore[no-untyped-def]
    home: Home, damage, error: type[AppError], code: str
) -> None:
    await load_or_create(home, store(home))
    pem, secret = home.identity / "identity.pem", home.identity / "passphrase"
    damage(pem, secret)
    before = pem.read_bytes()
    for _ in range(2):
        with pytest.raises(error) as raised:
            await load_or_create(home, store(home))
        assert raised.value.reason.code == code
    assert pem.read_bytes() == before


@pytest.mark.parametrize("left", ["passphrase", "household"])
async def test_a_lost_identity_is_never_replaced_by_a_new_one(home: Home, left: str) -> None:
    """Its passphrase would be overwritten, and a copy of the file could be opened no more."""
    made = await load_or_create(home, store(home))
    pem, secret = home.identity / "identity.pem", home.identity / "passphrase"
    copy, passphrase = pem.read_bytes(), secret.read_bytes()
    pem.unlink()
    if left == "household":
        secret.unlink()
        (home.household / "household.json").write_text("{}")
    for _ in range(2):
        with pytest.raises(Refused) as raised:
            await load_or_create(home, store(home))
        assert raised.value.reason.code == "identity_missing"
    assert not pem.exists()
    pem.write_bytes(copy)
    secret.write_bytes(passphrase)
    assert (await load_or_create(home, store(home))).id == made.id


async def test_what_was_interrupted_is_finished_or_begun_again(home: Home) -> None:
    class Interrupted(FileStore):
        async def write(self, secret: str) -> None:
            raise Refused("identity_locked")

    with pytest.raises(Refused):  # before the passphrase was kept
        await load_or_create(home, Interrupted(home.identity / "passphrase"))
    made = await load_or_create(home, store(home))
    (home.identity / "identity.pem").rename(home.identity / "identity.pem.new")  # and after that
    assert (await load_or_create(home, store(home))).id == made.id
    assert not (home.identity / "identity.pem.new").exists()


async def test_a_reset_begins_anew_where_a_keyring_keeps_the_old_passphrase(home: Home) -> None:
    ring = FileStore(home.root / "ring")
    made = await load_or_create(home, ring)
    await identity.reset(home)
    new = await load_or_create(home, ring)
    assert new.id != made.id
    (home.identity / "identity.pem").unlink()
    with pytest.raises(Refused):  # the user's word was for one new identity
        await load_or_create(home, ring)


async def test_a_key_and_a_certificate_that_do_not_belong_together(home: Home) -> None:
    made = await load_or_create(home, store(home))
    pem = home.identity / "identity.pem"
    key_part = pem.read_text().split("-----BEGIN CERTIFICATE")[0]
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    other = x509.load_der_x509_certificate(good()[1]).public_bytes(Encoding.PEM).decode()
    pem.write_text(key_part + other)
    with pytest.raises(Damaged):
        await load_or_create(home, store(home))
    assert made.pem == pem


async def test_reset_puts_aside_and_starts_anew(home: Home) -> None:
    made = await load_or_create(home, store(home))
    await identity.reset(home)
    new = await load_or_create(home, store(home))
    assert new.id != made.id
    assert any(path.name.startswith("identity.old-") for path in home.root.iterdir())
