"""The errors that a user can act on. Any other exception is a bug.

AppError
├── BadInput        an input that was typed, chosen or opened cannot be used
├── DoesNotFit      there is not enough memory or disk space
├── Refused         a machine, a server or a rule refused
├── Unreachable     a machine or the node does not answer
├── StageLost       a worker or a lender was lost during a computation
│   └── StageFailed the computation would fail again if it were repeated
├── Busy            too much work is waiting; try again later
└── Damaged         data does not match its hash
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason for a state or an error: a code, and the facts that its sentence mentions.

    app/core/sentences contains a sentence for each code. A fact may itself be a reason, so every user interface can
    show both in its own language.
    """

    code: str
    facts: dict[str, Fact] = field(default_factory=dict)

    def number(self, name: str) -> float:
        """Return a fact as a number, or 0 if it is missing or not a number.

        A reason from another machine may be incomplete or malformed.
        """
        fact = self.facts.get(name)
        return fact if isinstance(fact, int | float) else 0

    def mapped(self, change: Callable[[str, str | int | float], str | int | float]) -> Reason:
        """Return a copy with `change(name, value)` applied to every plain fact, including those of nested reasons."""
        return Reason(
            self.code,
            {name: fact.mapped(change) if isinstance(fact, Reason) else change(name, fact)
             for name, fact in self.facts.items()},
        )  # fmt: skip

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Reason:
        """Return the reason encoded in an object from `to_json`. Raises KeyError."""
        facts = {name: cls.from_json(fact) if isinstance(fact, Mapping) else fact
                 for name, fact in value["facts"].items()}  # fmt: skip
        return cls(value["code"], facts)

    def to_json(self) -> dict[str, Any]:
        """Return the reason as a JSON object. Nested reasons are encoded in the same way."""
        facts = {name: fact.to_json() if isinstance(fact, Reason) else fact for name, fact in self.facts.items()}
        return {"code": self.code, "facts": facts}


Fact = str | int | float | Reason


class AppError(Exception):
    """An error with a reason. app/core/reasons.py turns the reason into the sentence that the user reads."""

    def __init__(self, code: str, **facts: Fact) -> None:
        super().__init__(code, facts)
        self.reason = Reason(code, facts)


def bug(error: Exception) -> AppError:
    """Return the error that reports a bug in Poolhouse.

    It contains the type and the location of the exception, but not its message, which may contain private text.
    """
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    kind = type(error).__name__
    if at is None:
        return AppError("bug", what=kind)
    file = at.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return AppError("bug", what=f"{kind}@{file}:{at.tb_lineno}")


class BadInput(AppError):
    """An input that was typed, chosen or opened and cannot be used."""


class DoesNotFit(AppError):
    """A shortage of memory or disk space."""


class Refused(AppError):
    """A refusal by a machine, a server or a rule."""


class Unreachable(AppError):
    """A machine, or the node, that does not answer."""


class StageLost(AppError):
    """The loss of a worker or a lender during a computation."""


class StageFailed(StageLost):
    """A failure that would occur again if the computation were repeated.

    app/core/recovery/fault_table.py lists the codes.
    """


class Busy(AppError):
    """A rejection because too much work is waiting."""


class Damaged(AppError):
    """Data that does not match its hash."""


KINDS: dict[str, type[AppError]] = {
    kind.__name__: kind for kind in (BadInput, DoesNotFit, Refused, Unreachable, StageLost, StageFailed, Busy, Damaged)
}
