"""One-time codes, kept devices, and which addresses count as local."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from app.core.errors import BadInput, Reason
from app.core.reasons import said
from app.gateway.phones.device_store import MAX_DEVICES, MAX_NAME_CHARS, DeviceStore, plain_name
from app.gateway.phones.phone_auth import is_local
from app.gateway.phones.phone_service import CODE_SECONDS, DIGITS, MAX_WRONG_TRIES, JoinCode


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_code_is_valid_for_five_minutes_and_once() -> None:
    clock = Clock()
    code = JoinCode(clock)
    assert not code.use("")  # there is none yet
    text = code.make()
    assert (len(text), text.isdecimal(), code.seconds_left()) == (DIGITS, True, CODE_SECONDS)
    clock.now += CODE_SECONDS - 1
    assert code.use(text)
    assert not code.use(text)
    text = code.make()
    clock.now += CODE_SECONDS
    assert code.seconds_left() == 0
    assert not code.use(text)


def test_wrong_tries_are_counted_for_each_code() -> None:
    code = JoinCode(Clock())
    for _ in range(2):
        text = code.make()
        for _ in range(MAX_WRONG_TRIES - 1):
            assert not code.use("x" * DIGITS)
        assert code.use(text)
    text = code.make()
    for tried in ("", "é", text[:-1], text + "0", " "):
        assert not code.use(tried)
    assert not code.use(text)


async def test_devices_are_kept_and_a_removed_one_is_unknown(tmp_path: Path) -> None:
    file = tmp_path / "phones.json"
    store = DeviceStore(file, Clock())
    tokens = [await store.add("Anna's phone") for _ in range(2)]
    first, second = store.all()
    assert [known.name for known in store.all().values()] == ["Anna's phone", "Anna's phone 2"]
    again = DeviceStore(file, Clock())
    assert [again.owner(token) for token in tokens] == [first, second]
    assert await again.remove("Anna's phone") == first
    assert [again.owner(token) for token in (*tokens, "", "pd-")] == [None, second, None, None]
    assert DeviceStore(file, Clock()).owner(tokens[0]) is None
    with pytest.raises(BadInput, match="phone_unknown"):
        await again.remove("Anna's phone")
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_there_are_only_so_many_devices(tmp_path: Path) -> None:
    store = DeviceStore(tmp_path / "phones.json", Clock())
    for _ in range(MAX_DEVICES):
        store.require_room()
        await store.add("phone")
    with pytest.raises(BadInput, match="phones_many"):
        store.require_room()
    with pytest.raises(BadInput, match="phones_many"):
        await store.add("phone")


async def test_no_device_takes_another_s_place_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "phones.json"
    known = {"name": "tablet", "token_sha256": "", "added_at": 1}
    file.write_text(json.dumps({"1": known | {"name": "2"}, "2": known}))  # the first calls itself by the other's ID
    store = DeviceStore(file)
    assert await store.remove("2") == "2"
    assert await store.remove("2") == "1"


async def test_without_devices_the_error_names_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        await DeviceStore(tmp_path / "phones.json").remove("nobody")
    assert said(refused.value) == "There is no phone called nobody. Available: none."


async def test_a_removed_device_does_not_return_by_its_last_use(tmp_path: Path) -> None:
    clock = Clock()
    store = DeviceStore(tmp_path / "phones.json", clock)
    await store.add("phone")
    (device,) = store.all()
    for _ in range(2):
        clock.now += 1
        await store.note_use(device)
    assert store.all()[device].used_at == clock.now
    await store.remove(device)
    await store.note_use(device)
    assert not store.all()
    assert not DeviceStore(tmp_path / "phones.json").all()


async def test_a_damaged_list_lets_nobody_in_is_set_aside_and_the_owner_is_told(tmp_path: Path) -> None:
    file, notes = tmp_path / "phones.json", list[Reason]()
    file.write_text("{")
    assert not DeviceStore(file, note=notes.append).all()
    assert notes == [Reason("log_node_phones_lost", {"path": str(file.with_suffix(".damaged"))})]
    assert file.with_suffix(".damaged").read_text() == "{"


def test_a_damaged_hash_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "phones.json"
    file.write_text('{"a": {"name": "phone", "token_sha256": "é", "added_at": 1}}', "utf-8")
    assert DeviceStore(file).owner("pd-x") is None


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("Anna's phone", "Anna's phone"),
        ("  a\n\tb\u202e ", "a b"),
        ("\x1b[31mred", "[31mred"),
        ("x" * 100, "x" * MAX_NAME_CHARS),
        ("\u200b", ""),
    ],
)
def test_a_name_is_one_plain_line(typed: str, shown: str) -> None:
    assert plain_name(typed) == shown


@pytest.mark.parametrize(
    ("remote", "local"),
    [
        ("192.168.1.7", True),
        ("10.1.2.3", True),
        ("127.0.0.1", True),
        ("100.101.102.103", True),
        ("::ffff:192.168.1.7", True),
        ("fe80::1%eth0", True),
        ("fd12::7", True),
        ("2a02:8108:1:2::7", True),
        ("2a02:8108:1:3::7", False),
        ("8.8.8.8", False),
        ("::ffff:8.8.8.8", False),
        ("", False),
        ("somebody", False),
    ],
)
def test_only_addresses_of_the_home_are_local(remote: str, local: bool) -> None:
    assert is_local(remote, ["192.168.1.2", "2a02:8108:1:2::1"]) is local
