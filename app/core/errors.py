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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for a state or an error: a code from core/sentences and the facts that its sentence mentions.

    A fact may itself be a reason, so that each face can express both in its own language.
    """

    code: str
    facts: dict[str, Fact] = field(default_factory=dict)

    def number(self, name: str) -> float:
        """Return a fact as a number, or 0 if it is not one, since a reason may come from another machine."""
        fact = self.facts.get(name)
        return fact if isinstance(fact, int | float) else 0

    def mapped(self, change: Callable[[str, str | int | float], str | int | float]) -> Reason:
        """Return the reason with each plain fact changed by name and value, in nested reasons as well."""
        return Reason(
            self.code,
            {name: fact.mapped(change) if isinstance(fact, Reason) else change(name, fact)
             for name, fact in self.facts.items()},
        )  # fmt: skip

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Reason:
        """Return the reason of an object that `to_json` made. Raises KeyError."""
        facts = {name: cls.from_json(fact) if isinstance(fact, Mapping) else fact
                 for name, fact in value["facts"].items()}  # fmt: skip
        return cls(value["code"], facts)

    def to_json(self) -> dict[str, Any]:
        """Return the reason as a JSON object. Nested reasons become objects of the same form."""
        facts = {name: fact.to_json() if isinstance(fact, Reason) else fact for name, fact in self.facts.items()}
        return {"code": self.code, "facts": facts}


Fact = str | int | float | Reason


class AppError(Exception):
    """An error with a reason, which `core/reasons.py` turns into the sentence that a person reads."""

    def __init__(self, code: str, **facts: Fact) -> None:
        super().__init__(code, facts)
        self.reason = Reason(code, facts)


def bug(error: Exception) -> AppError:
    """Return an error for a fault in Poolhouse, with its kind and place but not its message, which may contain private
    text."""
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
    """A computation that would fail again for the same reason. app/core/recovery/fault_table.py lists the codes."""


class Busy(AppError):
    """Too much work is waiting."""


class Damaged(AppError):
    """Bytes that do not match their promised hash."""


KINDS: dict[str, type[AppError]] = {
    kind.__name__: kind for kind in (BadInput, DoesNotFit, Refused, Unreachable, StageLost, StageFailed, Busy, Damaged)
}
