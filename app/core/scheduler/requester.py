"""The requester of an answer: the owner, a program, a phone, a guest, or another machine."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

RequesterKind = Literal["owner", "program", "phone", "guest", "machine"]


@dataclass(frozen=True, slots=True)
class Requester:
    """The requester of an answer: the owner of this machine, a program, a phone, a guest, or another machine of the
    household.

    `name` is the name of the machine, of the phone, or of the program's key. It is empty for a program that needs no
    key.
    """

    kind: RequesterKind
    name: str = ""


OWNER = Requester("owner")
KEYLESS = Requester("program")


def member_requester(name: str, roles: Collection[str]) -> Requester:
    """Return the requester for a member: a guest if that is its only role, otherwise a machine."""
    return Requester("guest" if set(roles) == {"guest"} else "machine", name)
