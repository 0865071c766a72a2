"""The passphrase: in the keyring or in a private file, never silently anywhere else."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError, NoKeyringError

from app.core.errors import BadInput, Reason, Refused
from app.core.reasons import said
from app.machine import keyring_store
from app.machine.keyring_store import FileStore, KeyringStore, in_daemon_thread, open_keystore
from app.machine.paths import Home


class Ring(KeyringBackend):
    """A keyring in memory; `fault` is raised instead."""

    priority = 1

    def __init__(self, fault: Exception | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.secrets: dict[tuple[str, str], str] = {}
        self.fault = fault

    def get_password(self, service: str, username: str) -> str | None:
        if self.fault:
            raise self.fault
        return self.secrets.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.fault:
            raise self.fault
        self.secrets[service, username] = password


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.at(tmp_path).create()


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Ring:
    made = Ring()
    monkeypatch.setattr(keyring, "get_keyring", lambda: made)
    monkeypatch.setattr(keyring, "get_password", made.get_password)
    monkeypatch.setattr(keyring, "set_password", made.set_password)
    return made


async def test_a_file_only_its_owner_can_read(home: Home) -> None:
    store = FileStore(home.identity / "passphrase")
    assert await store.read() is None
    await store.write("secret")
    assert await store.read() == "secret"
    assert stat.S_IMODE(store.path.stat().st_mode) & 0o077 == 0
    assert "only you" in said(store.where)


async def test_a_file_that_cannot_be_read_or_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(Refused) as refused:
        await FileStore(tmp_path / "directory").read()
    assert refused.value.reason.code == "secret_unread"
    assert refused.value.reason.facts["path"] == str(tmp_path / "directory")
    (tmp_path / "damaged").write_bytes(b"\xff")
    with pytest.raises(Refused) as refused:
        await FileStore(tmp_path / "damaged").read()
    assert refused.value.reason.facts["why"] == Reason("file_damaged")
    with pytest.raises(Refused) as refused:
        await FileStore(tmp_path / "nowhere" / "file").write("x")
    assert refused.value.reason.code == "secret_unwritten"
    assert refused.value.reason.facts["why"] == Reason("os_enoent")


async def test_the_keyring_keeps_homes_apart(ring: Ring, tmp_path: Path) -> None:
    stores = [
        await open_keystore(Home.at(place), {"POOLHOUSE_KEYSTORE": "keyring"})
        for place in (None, tmp_path / "a", tmp_path / "b")
    ]
    for number, store in enumerate(stores):
        await store.write(str(number))
    assert [await store.read() for store in stores] == ["0", "1", "2"]
    assert len(ring.secrets) == 3


@pytest.mark.parametrize("fault", [NoKeyringError(), KeyringError("denied"), RuntimeError("x")])
async def test_a_keyring_that_fails_is_a_locked_identity(ring: Ring, fault: Exception) -> None:
    ring.fault = fault
    for call in (KeyringStore("x").read(), KeyringStore("x").write("y")):
        with pytest.raises(Refused) as refused:
            await call
        assert refused.value.reason.code == "identity_locked"


async def test_an_unlock_dialog_has_its_time(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(keyring, "get_password", lambda *_: answered.wait(30))
    with pytest.raises(Refused):
        await KeyringStore("x", seconds=0.05).read()
    answered.set()


async def test_choosing(home: Home, ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    forced = await open_keystore(home, {"POOLHOUSE_KEYSTORE": "file"})
    assert isinstance(forced, FileStore)
    with pytest.raises(BadInput):
        await open_keystore(home, {"POOLHOUSE_KEYSTORE": "plain"})
    assert isinstance(await open_keystore(home, {}), FileStore)  # not known to encrypt
    monkeypatch.setattr(keyring_store, "SECURE_BACKENDS", (Ring.__module__,))
    assert isinstance(await open_keystore(home, {}), KeyringStore)
    await forced.write("x")
    assert isinstance(await open_keystore(home, {}), FileStore)  # used from the start


async def test_a_chain_with_one_plain_member_is_not_trusted(
    home: Home, ring: Ring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring_store, "SECURE_BACKENDS", (Ring.__module__,))
    ring.backends = [Ring(), object()]  # type: ignore[attr-defined]
    assert isinstance(await open_keystore(home, {}), FileStore)


async def test_an_identity_made_with_the_keyring_never_falls_back(home: Home, ring: Ring) -> None:
    (home.identity / "identity.pem").write_bytes(b"x")
    store = await open_keystore(home, {})
    assert isinstance(store, KeyringStore)


async def test_results_and_errors_come_back_from_the_thread() -> None:
    assert await in_daemon_thread(lambda: 7, 1) == 7

    def wrong() -> None:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        await in_daemon_thread(wrong, 1)


def test_protection_is_undone() -> None:
    assert keyring_store.unprotect(keyring_store.protect(b"secret")) == b"secret"
