"""Who holds no part of a model, and the plan says so: whose engine is not one with which cuts were proved, and whose
numbers were found wrong. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.errors import AppError, BadInput, DoesNotFit, Reason
from app.core.planner.placement import Candidate
from app.core.reasons import said
from backends.contract import PROVED_ENGINES

PROVED = " or ".join(PROVED_ENGINES)


@dataclass(frozen=True, slots=True)
class Proved:
    """The lenders that may take part, and the machines in whose way their engine stands."""

    lenders: tuple[Candidate, ...]
    unproved: tuple[Candidate, ...]
    host_is: bool  # else nothing is shared at all: the host holds a part of whatever is
    doubted: tuple[Candidate, ...] = ()

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """One sentence for each machine that was left out for it."""
        doubted = [Reason("left_out_doubted", {"machine": one.name}) for one in self.doubted]
        unproved = [
            Reason("left_out_engine" if self.host_is else "plan_engine", _facts(machine)) for machine in self.unproved
        ]
        return (*unproved, *doubted)

    def told(self, error: AppError) -> AppError:
        """The error of a plan that the machines left out would perhaps have saved."""
        if not isinstance(error, BadInput | DoesNotFit):
            return error
        if self.doubted and not self.unproved:
            name = self.doubted[0].name
            return type(error)("doubt_in_the_way", machine=name, what=said(error))
        if not self.unproved:
            return error
        facts = _facts(self.unproved[0])
        return type(error)("engine_in_the_way", **facts, what=said(error))


def with_proved(host: Candidate, lenders: Sequence[Candidate]) -> Proved:
    """Who of these may hold a part of a model."""
    if host.unproved:
        return Proved((), (host,), host_is=False)
    apart = tuple(lender for lender in lenders if lender.unproved)
    doubted = tuple(lender for lender in lenders if lender.doubted and not lender.unproved)
    used = tuple(one for one in lenders if not (one.unproved or one.doubted))
    return Proved(used, apart, host_is=True, doubted=doubted)


def _facts(machine: Candidate) -> dict[str, str | int | float]:
    _, _, version = machine.engine.partition(" ")
    return {"machine": machine.name, "engine": version, "proved": PROVED}
