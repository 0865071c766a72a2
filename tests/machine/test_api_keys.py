"""Keys of the Chat API: made once, kept privately, compared whole, replaced and removed."""

from __future__ import annotations

import errno
import stat
import sys
from pathlib import Path

import pytest

from app.core.errors import BadInput, Reason, Refused
from app.core.reasons import said
from app.machine.paths import Home
from app.machine.secret_stores import FIRST, MAX_KEYS, ApiKeys


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.at(tmp_path).create()


async def test_the_first_key_is_made_and_stays(home: Home) -> None:
    keys = ApiKeys(home)
    assert keys.owner("") is None  # nothing is read yet, and nobody gets in
    made = await keys.all()
    assert list(made) == [FIRST]
    assert len(made[FIRST]) > 40
    assert await ApiKeys(home).all() == made
    assert keys.owner(made[FIRST]) == FIRST
    for wrong in ("", "ph-", made[FIRST][:-1], made[FIRST] + "x", "wr\u00f6ng", "\ud800"):
        assert keys.owner(wrong) is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps no modes")
async def test_the_file_is_its_owners_alone(home: Home) -> None:
    await ApiKeys(home).all()
    (file,) = [path for path in home.identity.iterdir() if path.name == "api-keys"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_keys_are_rotated_added_and_removed(home: Home) -> None:
    keys = ApiKeys(home)
    old = (await keys.all())[FIRST]
    new = await keys.make(FIRST)
    assert keys.owner(old) is None
    assert keys.owner(new) == FIRST
    editor = await keys.make("editor")
    assert keys.owner(editor) == "editor"
    await keys.remove(FIRST)
    assert keys.owner(new) is None
    with pytest.raises(BadInput) as last:
        await keys.remove("editor")
    assert last.value.reason.code == "api_key_last"
    with pytest.raises(BadInput):
        await keys.remove("nobody")
    assert await ApiKeys(home).all() == {"editor": editor}


@pytest.mark.parametrize("name", ["", "..", "a b", "x" * 33, "a/b", "\u00e4"])
async def test_a_name_is_a_plain_word(home: Home, name: str) -> None:
    with pytest.raises(BadInput):
        await ApiKeys(home).make(name)


async def test_keys_have_a_limit(home: Home) -> None:
    keys = ApiKeys(home)
    for number in range(MAX_KEYS - 1):
        await keys.make(f"k{number}")
    with pytest.raises(BadInput):
        await keys.make("one-more")
    await keys.make("k3")  # in place of itself it may


@pytest.mark.parametrize("content", ["{", "[]", '{"default": 1}', "[" * 100_000])
async def test_a_damaged_store_opens_to_nobody_and_is_never_overwritten(home: Home, content: str) -> None:
    """A copy of the file brings all keys back."""
    file = home.identity / "api-keys"
    old = (await ApiKeys(home).all())[FIRST]
    copy = file.read_bytes()
    file.write_text(content)
    again = ApiKeys(home)
    for change in (again.all, lambda: again.make("chat"), lambda: again.remove(FIRST)):
        with pytest.raises(Refused) as refused:
            await change()
        assert refused.value.reason.code == "secret_unread"
        assert str(file) in said(refused.value)
    assert again.owner(old) is None
    assert file.read_text() == content
    file.write_bytes(copy)
    assert (await again.all())[FIRST] == old


async def test_a_store_that_cannot_be_read_is_named(home: Home) -> None:
    """No keyring is blamed for a file."""
    (home.identity / "api-keys").mkdir()
    with pytest.raises(Refused) as refused:
        await ApiKeys(home).all()
    assert refused.value.reason.code == "secret_unread"


async def test_a_full_disk_is_said(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("app.machine.keyring_store.write_atomically", full)
    with pytest.raises(Refused) as refused:
        await ApiKeys(home).all()
    assert refused.value.reason.code == "secret_unwritten"
    assert refused.value.reason.facts["why"] == Reason("os_enospc")
