"""Names for machines that nobody has named: what is proposed of the host's name, and what says nothing."""

from __future__ import annotations

import pytest

from app.core.ids import MAX_NAME_CHARACTERS
from app.core.machine_names import N_GENERATED, friendly_name, generated_name, is_generated


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("kitchen-pc.local", "Kitchen PC"),
        ("Annas-MacBook-Pro.local", "Annas MacBook Pro"),
        ("studio_nas", "Studio NAS"),
        ("study", "Study"),
        ("cafe1", "Cafe1"),
        ("DESKTOP-4F2K1AB", "Desktop"),
        ("LAPTOP-9QRX2MTV", "Laptop"),
        ("WIN-0AB1CD2EF3G", "Windows PC"),
        ("küche", "Küche"),
    ],
)
def test_a_host_s_name_becomes_one_that_a_person_would_write(host: str, name: str) -> None:
    assert friendly_name(host) == name


ANYBODY = ("", "localhost", "localhost.localdomain", "Ubuntu", "debian.home")
NUMBERS = ("4f2a9c01be77", "ip-10-0-3-17.ec2", "192.168.1.20", "\u2060")


@pytest.mark.parametrize("host", [*ANYBODY, *NUMBERS])
def test_a_name_that_many_computers_have_is_none(host: str) -> None:
    assert friendly_name(host) == ""


def test_a_long_name_is_cut() -> None:
    assert len(friendly_name("x" * 200)) == MAX_NAME_CHARACTERS


def test_a_generated_name_is_known_as_one() -> None:
    names = {generated_name(chance) for chance in range(N_GENERATED)}
    assert len(names) == N_GENERATED
    assert all(map(is_generated, names))
    assert not any(map(is_generated, ("badger", "badger-12", "Badger-486", "badger-486 2", "study")))
