"""The key of the chats: made once, the same ever after, and nothing else is taken for it or put in its place."""

from __future__ import annotations

import asyncio
import base64
import stat
import sys
from pathlib import Path

import keyring
import pytest
from keyring.errors import KeyringLocked

from app.core.errors import Reason, Refused
from app.core.reasons import said
from app.machine.paths import Home
from app.machine.secret_stores import ChatKey
from app.network.identity import reset


class Ring:
    """A keyring in memory, which may be locked, or forget what it is given."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = self.forgets = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise KeyringLocked
        if not self.forgets:
            self.kept[service, username] = password


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "file")
    return Home.at(tmp_path).create()


@pytest.fixture
def ring(home: Home, monkeypatch: pytest.MonkeyPatch) -> Ring:
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "keyring")
    made = Ring()
    monkeypatch.setattr(keyring, "get_password", made.get_password)
    monkeypatch.setattr(keyring, "set_password", made.set_password)
    return made


async def test_it_is_made_once(home: Home) -> None:
    assert await ChatKey(home).read() is None
    key = ChatKey(home)
    first, second = await asyncio.gather(key.make(), key.make())
    assert first == second == await ChatKey(home).make() == await ChatKey(home).read()
    assert len(base64.b64decode(first)) == 32
    assert await key.where() == Reason("kept_in_file")


async def test_each_home_has_its_own(home: Home, tmp_path: Path) -> None:
    other = Home.at(tmp_path / "other").create()
    assert await ChatKey(home).make() != await ChatKey(other).make()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
async def test_its_file_is_private(home: Home) -> None:
    await ChatKey(home).make()
    assert stat.S_IMODE((home.root / "chat-key").stat().st_mode) == 0o600


async def test_in_a_keyring_it_is_beside_the_passphrase(home: Home, ring: Ring) -> None:
    made = await ChatKey(home).make()
    assert [(name.split()[-2:], key) for (_, name), key in ring.kept.items()] == [(["chat", "key"], made)]
    assert await ChatKey(home).read() == made


async def test_a_new_identity_leaves_it(home: Home, ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it matter where the new one keeps its own passphrase."""
    made = await ChatKey(home).make()
    await reset(home)
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "file")
    assert await ChatKey(home).read() == made
    ring.kept.clear()
    assert await ChatKey(home).read() is None


async def test_a_locked_keyring_is_no_missing_key(home: Home, ring: Ring) -> None:
    made = await ChatKey(home).make()
    ring.locked = True
    with pytest.raises(Refused) as caught:
        await ChatKey(home).read()
    assert caught.value.reason.code == "history_locked"
    with pytest.raises(Refused):
        await ChatKey(home).make()
    assert "system keyring, which is locked" in said(caught.value)
    ring.locked = False
    assert said(await ChatKey(home).place()).endswith("chat key in the system keyring")
    assert await ChatKey(home).make() == made


async def test_a_keyring_that_forgets_is_not_relied_on(home: Home, ring: Ring) -> None:
    ring.forgets = True
    with pytest.raises(Refused) as caught:
        await ChatKey(home).make()
    assert caught.value.reason.code == "history_key_unkept"


async def test_a_file_that_cannot_be_read_is_named(home: Home) -> None:
    (home.root / "chat-key").mkdir()  # as one of another user would be: no file to be read
    with pytest.raises(Refused) as caught:
        await ChatKey(home).read()
    assert caught.value.reason.code == "history_key_unreadable"
    assert f"the file with their key, {home.root / 'chat-key'}, cannot be read" in said(caught.value)


@pytest.mark.parametrize("odd", ["", "no key", "AAAA"])
async def test_what_is_no_key_is_not_used_and_not_replaced(home: Home, odd: str) -> None:
    (home.root / "chat-key").write_text(odd, encoding="ascii")
    assert await ChatKey(home).read() is None
    with pytest.raises(Refused) as caught:
        await ChatKey(home).make()
    assert caught.value.reason.code == "history_key_unkept"
    assert (home.root / "chat-key").read_text("ascii") == odd
