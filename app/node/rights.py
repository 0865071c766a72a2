"""What this machine may do in its household, as the log says now."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.core.ids import MachineId
from app.core.membership import Member
from app.core.operations import Role


class Rights:
    """`members`: everybody of the household; `me`: this machine."""

    def __init__(
        self, members: Callable[[], Mapping[MachineId, Member]], me: Callable[[], MachineId]
    ) -> None:
        self._members, self._me = members, me

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

    def _member(self) -> Member | None:
        return self._members().get(self._me())
