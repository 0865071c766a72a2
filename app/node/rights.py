"""What this machine may do in its household, as the log says now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.ids import MachineId


class Household(Protocol):
    """Everybody of the household, and this machine; app/network/network.py has both."""

    @property
    def members(self) -> Mapping[MachineId, Member]: ...
    @property
    def id(self) -> MachineId: ...


class Rights:
    """Reads them from the household's log as it is at each question."""

    def __init__(self, household: Household) -> None:
        self._household = household

    def lends(self) -> bool:
        """A machine without a household lends to nobody anyway."""
        me = self._member()
        return me is None or Role.LENDER in me.roles

    def is_guest(self) -> bool:
        """Whether a host answers for this machine: it may use no other memory than its own."""
        me = self._member()
        return me is not None and me.is_guest

    def name(self) -> str:
        """What the household calls this machine; empty outside of one."""
        me = self._member()
        return me.name if me is not None else ""

    def may_be_asked_by(self, machine: MachineId) -> bool:
        """Whether that machine is a guest now, and this one a host."""
        guest, me = self._household.members.get(machine), self._member()
        return guest is not None and me is not None and guest.is_guest and Role.HOST in me.roles

    def _member(self) -> Member | None:
        return self._household.members.get(self._household.id)
