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
        roles = self._roles()
        return roles is None or Role.LENDER in roles

    def is_guest(self) -> bool:
        """Whether a host answers for this machine: it may use no other memory than its own."""
        roles = self._roles() or frozenset()
        return Role.GUEST in roles and Role.HOST not in roles

    def _roles(self) -> frozenset[Role] | None:
        me = self._members().get(self._me())
        return me.roles if me is not None else None
