"""The record of what guessing tokens ahead has brought, by model and number of machines, in a small file.

It holds times only: neither texts nor tokens.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from app.core.errors import Reason
from app.core.planner.placement import Plan
from app.inference.pipeline.completion import Summary
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically

log = logging.getLogger(__name__)

MOST_KEYS = 64  # models and numbers of machines; the latest ones win
MOST_ANSWERS = 32  # of each; the latest ones win
FEWEST_ANSWERS = 3  # fewer say little
FEWEST_TOKENS = 8  # in an answer; shorter ones say little

Seconds = Annotated[float, Meta(ge=0, le=1e7)]


class GuessedAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The seconds that an answer took while its plain steps were known, and those that it would have taken without
    guesses.
    """

    took_s: Seconds
    plain_s: Seconds


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    answers: Annotated[
        dict[Annotated[str, Meta(max_length=300)], Annotated[list[GuessedAnswer], Meta(max_length=MOST_ANSWERS)]],
        Meta(max_length=MOST_KEYS),
    ] = {}


class GuessHistory:
    """The gain from guessing in this host's latest answers."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._answers = dict(read_json_or_default(file, _File, "what guesses have brought").answers)

    def learn(self, plan: Plan, model: str, summary: Summary) -> bool:
        """Record an answer. Return whether there was something to record. Call this only if no other answer was in
        progress.
        """
        if not summary.guess_took_s or len(summary.token_ids) < FEWEST_TOKENS:
            return False
        key = _key(plan, model)
        answers = [*self._answers.pop(key, []), GuessedAnswer(summary.guess_took_s, summary.guess_plain_s)]
        self._answers[key] = answers[-MOST_ANSWERS:]
        for oldest in list(self._answers)[:-MOST_KEYS]:
            del self._answers[oldest]
        return True

    def gain(self, plan: Plan, model: str) -> tuple[float, int] | None:
        """Return how many times as fast guesses made the answers, and the number of answers, or None if that is not
        known yet.
        """
        answers = self._answers.get(_key(plan, model), [])
        took_s = sum(answer.took_s for answer in answers)
        if len(answers) < FEWEST_ANSWERS or not took_s:
            return None
        return sum(answer.plain_s for answer in answers) / took_s, len(answers)

    def reasons(self, plan: Plan, model: str) -> tuple[Reason, ...]:
        """Return the reason with which a plan tells the gain, or nothing if it is not known yet."""
        gain = self.gain(plan, model)
        if gain is None:
            return ()
        times, count = gain
        return (Reason("plan_guess_gain", {"times": f"{times:.2f}", "count": count}),)

    def content(self) -> bytes:
        """Return the file content for `save`."""
        return msgspec.json.encode(_File(self._answers))

    def save(self, content: bytes) -> None:
        """Write the file. Call this in a thread."""
        try:
            write_atomically(self._file, content)
        except OSError as error:
            log.warning("what guesses have brought could not be saved: %s", error)


def _key(plan: Plan, model: str) -> str:
    return f"{model[:200]} {len({stage.machine for stage in plan.stages})}"
