"""The requester of an answer: the owner, a program, a guest, or another machine. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Kind = Literal["owner", "program", "guest", "machine"]


@dataclass(frozen=True, slots=True)
class Requester:
    """The requester of an answer: the owner of this machine, a program, a guest, or another machine of the household.

    `name` is the name of the program's key (empty if it needs none) or of the machine.
    """

    kind: Kind
    name: str = ""


OWNER = Requester("owner")
KEYLESS = Requester("program")


def member_asks(name: str, roles: Collection[str]) -> Requester:
    """Return the requester for a member: a guest if it may only ask, or a machine if it lends as well."""
    return Requester("guest" if set(roles) == {"guest"} else "machine", name)
