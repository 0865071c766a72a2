"""Tests of the contents of announcements, and of what is believed of one: any bytes may arrive."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.network.discovery.announcement import (
    MAX_ADDRESSES,
    SERVICE,
    TxtRecord,
    believable,
    host_name,
    id_of,
    instance_name,
    parse_txt,
    txt_fields,
)

ID = "0123456789abcdef"
HOME = ("192.168.1.20",)


def txt(fields: dict[str, str]) -> bytes:
    strings = [f"{key}={value}".encode() for key, value in fields.items()]
    return b"".join(bytes([len(data)]) + data for data in strings)


def test_names_say_whose_they_are_and_nothing_else() -> None:
    assert id_of(instance_name(ID)) == id_of(host_name(ID).upper()) == ID
    assert set(instance_name(ID) + host_name(ID)) <= set(string.ascii_lowercase + string.digits + "._-")


@pytest.mark.parametrize(
    "name",
    ["", SERVICE, f"x{instance_name(ID)}", f"{ID[:15]}.{SERVICE}", f"{ID}-2.{SERVICE}",
     f"{ID}.{SERVICE}x", f"{ID[:15]}g.{SERVICE}", f"poolhouse-{ID}.local", "den-pc.local.",
     f"{ID}\n.{SERVICE}", "٣" * 16 + "." + SERVICE],
)  # fmt: skip
def test_other_names_are_nobodys(name: str) -> None:
    assert id_of(name) is None


def test_the_name_is_told_only_with_an_open_window() -> None:
    assert txt_fields(TxtRecord(1)) == txt_fields(TxtRecord(1, "den-pc", None)) == {"v": "1"}
    result = txt_fields(TxtRecord(1, "den-pc", 4243, "macOS", "Apple M3\n Max"))
    assert (result["os"], result["dev"]) == ("macOS", "Apple M3 Max")
    assert "os" not in txt_fields(TxtRecord(1, "den-pc", 4243, "TempleOS", ""))
    assert txt_fields(TxtRecord(1, None, None, "Linux", "EPYC")) == {"v": "1"}
    assert txt_fields(TxtRecord(1, "den-pc", 4243)) == {"v": "1", "name": "den-pc", "pair": "4243"}


@given(st.text(max_size=100), st.integers(1, 65535))
def test_what_is_announced_is_read(name: str, port: int) -> None:
    said = parse_txt(txt(txt_fields(TxtRecord(1, name, port))))
    assert said is not None
    assert (said.protocol, said.pairing_port) == (1, port)
    assert said.name
    assert said.name.isprintable()
    assert len(said.name) <= 64


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", None),
        (b"\x00", None),
        (b"\x03v=1", TxtRecord(1)),
        (b"\x03V=1\x03v=9", TxtRecord(1)),  # the first counts, in any case
        (b"\x04v=-1", None),
        (b"\x09v=1234567", None),
        (b"\x08v=\xd9\xa3", None),
        (b"\xffv=1", TxtRecord(1)),  # cut short
        (b"\x03v=1\x06pair=0\x06name=x", TxtRecord(1)),
        (b"\x03v=1\x0apair=99999\x06name=x", TxtRecord(1)),
        (b"\x03v=1\x06name=x", TxtRecord(1)),  # without a door no name
        (b"\x03v=1\x06pair=7\x0bname=\x1b[31m\x07", TxtRecord(1, "[31m", 7)),
        (b"\x03v=1\x06pair=7\x05name=", TxtRecord(1, "unnamed", 7)),
        (b"\x03v=1\x06pair=7\x06name=x\x08os=Linux\x08dev=EPYC", TxtRecord(1, "x", 7, "Linux", "EPYC")),
        (b"\x03v=1\x06pair=7\x06name=x\x08os=Amiga\x08dev=\x1b\x07\x00\x0a", TxtRecord(1, "x", 7)),
        (b"\x03v=1\x06pair=7\x06name=x\x7fdev=" + b"y" * 123, TxtRecord(1, "x", 7, None, "y" * 40)),
        (b"\x03v=1\x08os=Linux\x08dev=EPYC", TxtRecord(1)),  # without a door nothing of it
        (b"\x03v=1\x06pair=7\x08name=\xff\xfex", TxtRecord(1, "\ufffd\ufffdx", 7)),
        (b"\x03v=1" + b"\xffname=" + b"x" * 250 + b"\x06pair=7", TxtRecord(1, "x" * 64, 7)),
        (b"\x03v=1" + 40 * (b"\xffname=" + b"x" * 250), None),  # 10 kB
    ],
)
def test_odd_text_is_read_as_far_as_it_makes_sense(text: bytes, said: TxtRecord | None) -> None:
    assert parse_txt(text) == said


@given(st.binary(max_size=1200))
def test_any_bytes_are_read_without_an_error(text: bytes) -> None:
    said = parse_txt(text)
    assert said is None or 0 <= said.protocol < 1 << 16


@pytest.mark.parametrize(
    "address", ["10.9.8.7", "172.16.0.1", "192.168.77.1", "169.254.3.4", "fd12::1", "fe80::1%eth0", "fe80::1%2"]
)
def test_addresses_of_local_networks_are_dialed(address: str) -> None:
    assert believable((address,), HOME) == (address,)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "172.32.0.1", "100.64.0.1", "203.0.113.9", "127.0.0.1", "::1", "0.0.0.0", "::",
     "224.0.0.251", "255.255.255.255", "ff02::fb", "2001:db8::1", "fe80::1", "::ffff:10.0.0.1",
     "10.0.0.1:80", "den-pc", "", "1", "10.0.0.1/8"],
)  # fmt: skip
def test_others_are_not(address: str) -> None:
    assert believable((address,), HOME) == ()


def test_neighbors_are_dialed_wherever_they_are() -> None:
    ours = ("203.0.113.20", "2001:db8:1:2::20")
    assert believable(("203.0.113.9", "203.0.114.9"), ours) == ("203.0.113.9",)
    assert believable(("2001:db8:1:2::9", "2001:db8:1:3::9"), ours) == ("2001:db8:1:2::9",)


def test_loopback_only_from_loopback() -> None:
    assert believable(("127.0.0.1", "10.0.0.1"), ("127.0.0.1",)) == ("127.0.0.1", "10.0.0.1")


def test_the_likeliest_comes_first_and_there_are_not_many() -> None:
    far = [f"10.1.2.{n}" for n in range(40)]
    names = believable(["fd00::1", *far, "192.168.1.9", "192.168.1.9"], HOME)
    assert names[0] == "192.168.1.9"
    assert len(names) == MAX_ADDRESSES == len(set(names))
