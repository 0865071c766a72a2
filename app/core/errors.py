"""The few errors a person can act on. All else is a bug.

AppError
├── BadInput        what was typed, chosen or opened cannot be used
├── DoesNotFit      memory or disk is short
├── Refused         a machine, a rule or a code said no
├── Unreachable     a machine or the node does not answer
├── StageLost       a worker or a lender went away in the middle of work
│   └── StageFailed what was computed fails again wherever it is computed
├── Busy            too much work is waiting; try again later
└── Damaged         bytes are not what their hash promised
"""

from __future__ import annotations

from dataclasses import dataclass, field

Fact = str | int | float


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is as it is: a code of core/reasons.py and the facts of its sentence."""

    code: str
    facts: dict[str, Fact] = field(default_factory=dict)


class AppError(Exception):
    """An error with a reason; `core/reasons.py` makes the sentence a person reads."""

    def __init__(self, code: str, **facts: Fact) -> None:
        super().__init__(code, facts)
        self.reason = Reason(code, facts)


def bug(error: Exception) -> AppError:
    """A fault of ours, with its kind and place. Not with its words, in which a person's may stand."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    kind = type(error).__name__
    if at is None:
        return AppError("bug", what=kind)
    file = at.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return AppError("bug", what=f"{kind}@{file}:{at.tb_lineno}")


class BadInput(AppError):
    """A typed, chosen or opened value that cannot be used."""


class DoesNotFit(AppError):
    """Memory or disk is short."""


class Refused(AppError):
    """A machine, a rule or a code said no."""


class Unreachable(AppError):
    """A machine or the node does not answer."""


class StageLost(AppError):
    """A worker or a lender went away in the middle of work."""


class StageFailed(StageLost):
    """Computing ended for a reason that would end it again: app/core/recovery/fault_table.py says for which codes."""


class Busy(AppError):
    """Too much work is waiting."""


class Damaged(AppError):
    """Bytes are not what their hash promised."""


KINDS: dict[str, type[AppError]] = {
    kind.__name__: kind for kind in (BadInput, DoesNotFit, Refused, Unreachable, StageLost, StageFailed, Busy, Damaged)
}
