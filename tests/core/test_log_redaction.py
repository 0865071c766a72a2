"""Nothing private is left in what is handed on, and a log can still be followed."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.log_redaction import MOST_CHARACTERS, PrivateNames, redact

KNOWN = PrivateNames(
    machines=["studio-mac", "studio-mac-2", "Annas Laptop"], people=["anna"], folders=["/home/me", "C:\\Users\\anna"]
)


def one(text: str) -> str:
    return redact({"log": text}, KNOWN)["log"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("link to studio-mac lost", "link to machine-1 lost"),
        ("studio-mac-2 and studio-mac", "machine-1 and machine-2"),
        ("Studio-Mac's layers", "machine-1's layers"),
        ("ANNAS LAPTOP", "machine-1"),
        ("hello anna", "hello person-1"),
        ("annabel stays", "annabel stays"),
        ("10.0.0.2:4242 answers", "address-1:4242 answers"),
        ("from 10.0.0.2 to 10.0.0.3 and 10.0.0.2.", "from address-1 to address-2 and address-1."),
        ("fe80::1%eth0 and 2001:db8::7", "address-1 and address-2"),
        ("[2001:db8::7]:4242", "[address-1]:4242"),
        ("aa:bb:cc:dd:ee:ff", "address-1"),
        ("127.0.0.1, ::1 and 0.0.0.0 say nothing", "127.0.0.1, ::1 and 0.0.0.0 say nothing"),
        ("2026-11-20 22:51:21,880 INFO", "2026-11-20 22:51:21,880 INFO"),
        ("version 0.3.36, 12:30", "version 0.3.36, 12:30"),
        ("/home/me/private/plans/x.gguf opened", "~/…/x.gguf opened"),
        ('"C:\\\\Users\\\\anna\\\\m.gguf"', '"~\\\\m.gguf"'),
        ('"C:\\\\Users\\\\anna\\\\Divorce\\\\2026\\\\m.gguf"', '"~/…\\\\m.gguf"'),
        ("~/My Documents/Divorce/x.gguf opened", "~/…/x.gguf opened"),
        ("C:\\Users\\anna\\My Documents\\Eve and I/x.gguf", "~/…/x.gguf"),
        ("~/x.gguf and /usr/lib/y.so", "~/x.gguf and /usr/lib/y.so"),
        ("/usr/lib/python3.11/ssl.py", "/usr/lib/python3.11/ssl.py"),
        ("hf_abcdefGHIJ", "secret"),
        ("Authorization: Bearer x.y-z", "Authorization: Bearer secret"),
        ("anna@example.org", "mail-1"),
        ("id " + "0123456789abcdef" * 4, "id id-1"),
    ],
)
def test_what_is_private_gets_a_word(text: str, expected: str) -> None:
    assert one(text) == expected


@pytest.mark.parametrize("sign", ["x", "a", ":", "1.", "~/", "~/a b ", "@", "a@", "fe80:", "hf_", "den "])
def test_a_line_without_an_end_takes_no_time_and_is_cut(sign: str) -> None:
    said = one(sign * 300_000)
    assert len(said) < 2 * MOST_CHARACTERS
    assert said.endswith("left out)\n")


def test_the_same_thing_has_the_same_word_in_all_files() -> None:
    both = redact({"a": "studio-mac at 10.0.0.2", "b": "10.0.0.2 is STUDIO-MAC"}, KNOWN)
    assert both == {"a": "machine-1 at address-1", "b": "address-1 is machine-1"}


ADDRESSES = st.ip_addresses().map(str)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


@given(WORDS, ADDRESSES, WORDS)
def test_no_address_is_left(before: str, address: str, behind: str) -> None:
    said = ipaddress.ip_address(address)
    if said.is_loopback or said.is_unspecified:
        return
    assert address not in one(f"{before} {address} {behind}").split()


@given(WORDS, st.sampled_from([*KNOWN.machines, *KNOWN.people]), WORDS)
def test_no_name_is_left(before: str, name: str, behind: str) -> None:
    assert f" {name.casefold()} " not in one(f"{before} {name} {behind}").casefold()
