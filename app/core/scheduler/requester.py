"""The requester of an answer: the owner, a program, a guest, or another machine. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Kind = Literal["owner", "program", "guest", "machine"]


@dataclass(frozen=True, slots=True)
class Requester:
    """The owner of this machine; a program, by its key's name (empty: it needs none); a guest, or another
    machine of the household, by the machine's name."""

    kind: Kind
    name: str = ""


OWNER = Requester("owner")
KEYLESS = Requester("program")


def member_asks(name: str, roles: Collection[str]) -> Requester:
    """A member that may only ask is a guest; one that lends as well is a machine like ours."""
    return Requester("guest" if set(roles) == {"guest"} else "machine", name)
