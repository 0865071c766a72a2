"""The access token: kept like the key's passphrase, forgotten when asked, never half right."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from app.core.errors import BadInput, Reason, Refused
from app.machine.keyring_store import FileStore
from app.machine.paths import Home
from app.machine.secret_stores import TokenStore


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "file")
    return Home.at(tmp_path).create()


async def test_a_token_is_kept_and_forgotten(home: Home) -> None:
    tokens = TokenStore(home)
    assert await tokens.get() is None
    assert await tokens.where() == Reason("kept_in_file")
    await tokens.set(" hf_abcdefgh12345678 \n")
    assert await tokens.get() == "hf_abcdefgh12345678"
    assert await TokenStore(home).get() == "hf_abcdefgh12345678"
    await tokens.clear()
    await tokens.clear()
    assert await tokens.get() is None
    assert await TokenStore(home).get() is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
async def test_its_file_is_private(home: Home) -> None:
    await TokenStore(home).set("hf_abcdefgh12345678")
    files = [path for path in home.identity.iterdir() if b"hf_abc" in path.read_bytes()]
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o600]


@pytest.mark.parametrize("token", ["", "x", "two words", "hf_" + "x" * 300, "hf_ä" * 5, "a\nb: c"])
async def test_what_is_no_token_is_refused(home: Home, token: str) -> None:
    with pytest.raises(BadInput):
        await TokenStore(home).set(token)
    assert await TokenStore(home).get() is None


async def test_a_file_that_cannot_be_read_is_named(home: Home) -> None:
    (home.identity / "hub-token").mkdir()
    with pytest.raises(Refused) as caught:
        await TokenStore(home).get()
    assert caught.value.reason.code == "secret_unread"


async def test_a_locked_keyring_is_said(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    async def locked(self: FileStore) -> str | None:
        raise Refused("identity_locked")

    monkeypatch.setattr(FileStore, "read", locked)
    with pytest.raises(Refused) as caught:
        await TokenStore(home).get()
    assert caught.value.reason.code == "token_locked"
