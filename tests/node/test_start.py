"""Tests of the options of a start, and of choices made since."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.http_exceptions import TransferEncodingError

from app.core.errors import BadInput, Refused
from app.core.household.link import LinkKind
from app.machine import settings
from app.machine.interfaces import Interface
from app.machine.paths import Home
from app.machine.running_node import HomeLock
from app.machine.settings import NodeOptions
from app.node import start
from app.node.start import (
    _acquire_home,
    _check,
    _settings,
    remove_http_bytes,
    shorten_network_error,
    warn_missing_interfaces,
)
from tests.node.pool import node


def started(home: Home, name: str | None) -> str:
    return _settings(NodeOptions(name=name), home).name


def test_a_renaming_holds_beside_the_name_of_the_start(tmp_path: Path) -> None:
    home = Home.at(tmp_path).create()
    assert started(home, "den") == "den"
    kept = settings.load(home.settings_file)
    settings.save(home.settings_file, msgspec.structs.replace(kept, name="study"))  # by a person
    assert started(home, "den") == "study"
    assert started(home, None) == "study"
    assert started(home, "attic") == "attic"  # another name is another choice
    assert started(home, "attic") == "attic"


def test_a_start_refuses_what_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text("words", encoding="utf-8")
    with pytest.raises(BadInput, match="home_no_folder"):
        Home.at(file).create()
    assert file.read_text(encoding="utf-8") == "words"


def test_a_start_clears_what_a_killed_node_was_checking(tmp_path: Path) -> None:
    """No check continues after a kill, and the next one may be weeks away."""
    left = tmp_path / "home" / "checking" / "old.gguf"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"old")
    with node(tmp_path / "home", "den"):
        assert not left.parent.exists()


def test_damaged_books_of_a_node_are_told_in_its_journal(tmp_path: Path) -> None:
    household = Home.at(tmp_path / "home").create().household
    household.mkdir(exist_ok=True)
    for book in household / "doubts.json", household / "upstreams.json":
        book.write_bytes(b"{")
    with node(tmp_path / "home", "den") as begun:
        codes = [event["code"] for event in begun.control("GET", "/journal")["events"]]
    assert "log_machine_doubts_lost" in codes
    assert "log_node_uncounted" not in codes  # there is none that could be sent anything


def test_an_interface_that_comes_later_is_waited_for_and_that_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Interface("eth0", LinkKind.ETHERNET, is_up=True, addresses=("10.0.0.2",))
    monkeypatch.setattr(start, "interfaces", lambda: (there,))
    _check(options := NodeOptions(interfaces=("eth0", "wg0")))
    warn_missing_interfaces(options)
    assert capsys.readouterr().err == (
        "This computer has no network interface called wg0 right now. It will be used as soon as it appears. "
        "Available now: eth0.\n"
    )
    warn_missing_interfaces(NodeOptions())
    assert capsys.readouterr().err == ""


def test_a_start_refuses_to_lend_more_than_there_is() -> None:
    with pytest.raises(BadInput, match="lend_more_than_there"):
        _check(NodeOptions(lend_bytes=1 << 60))
    _check(NodeOptions(lend_bytes=0))


@pytest.mark.parametrize(
    ("error", "expected", "keeps"),
    [
        (OSError(101, "Network is unreachable"), "Error: [Errno 101] Network is unreachable", False),
        (ValueError("a bug"), "Error", True),
    ],
)
def test_a_network_that_is_away_is_one_line_of_the_log(error: Exception, expected: str, keeps: bool) -> None:
    record = logging.LogRecord("zeroconf", logging.WARNING, "", 1, "%s", ("Error",), (type(error), error, None))
    assert shorten_network_error(record)
    assert (record.getMessage(), record.exc_info is not None) == (expected, keeps)


def test_the_log_keeps_no_bytes_of_strangers() -> None:
    """This holds whoever logs the failure: aiohttp's errors contain such bytes."""
    try:
        try:
            raise TransferEncodingError("the cat sleeps")
        except TransferEncodingError as error:
            raise web.RequestPayloadError("the cat sleeps") from error
    except web.RequestPayloadError:
        record = logging.LogRecord("app", logging.ERROR, "", 1, "%s failed", ("/a",), sys.exc_info())
    assert remove_http_bytes(record)
    assert logging.Formatter("%(message)s").format(record) == "/a failed: RequestPayloadError"


async def test_two_that_start_at_once_are_one_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither has said yet that it runs."""
    monkeypatch.setattr(start, "END_SECONDS", 0.0)
    monkeypatch.setattr(start, "ALIVE_SECONDS", 0.2)
    home = Home.at(tmp_path).create()
    first, second = HomeLock(home.lock_file), HomeLock(home.lock_file)
    await _acquire_home(home, first)
    with pytest.raises(Refused, match="node_starts_already"):
        await _acquire_home(home, second)
    monkeypatch.setattr(start, "ALIVE_SECONDS", 60.0)
    asyncio.get_running_loop().call_later(0.1, first.release)  # it ends: a restart waits for that
    await _acquire_home(home, second)
    second.release()
