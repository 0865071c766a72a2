"""The statistics of an answer as data and as text, including speed, forecast, tokens, machines and loading progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from app.api.plans import Progress, Stage
from app.api.responses import Answer, AnswerRecovery, ForecastSpeed
from app.core.chat import FIGURES
from app.core.errors import Reason
from app.core.planner.forecast_range import spread_of
from app.decoding import convert
from app.gui.look import formats
from app.gui.look.sentences import said
from app.gui.pool.machine_words import layer_ranges

SEPARATOR = " · "
WAIT_SHOWN_FROM_S = 0.1
STEPS = {
    "checking": QT_TRANSLATE_NOOP("Answer", "Checking the file"),
    "hashing": QT_TRANSLATE_NOOP("Answer", "Checking the file"),
    "copying": QT_TRANSLATE_NOOP("Answer", "Copying"),
    "testing_card": QT_TRANSLATE_NOOP("Answer", "Testing the graphics card"),
    "planning": QT_TRANSLATE_NOOP("Answer", "Planning"),
    "cutting": QT_TRANSLATE_NOOP("Answer", "Extracting layers"),
    "measuring": QT_TRANSLATE_NOOP("Answer", "Measuring the machines"),
    "preparing": QT_TRANSLATE_NOOP("Answer", "Preparing layers"),
    "sending": QT_TRANSLATE_NOOP("Answer", "Sending layers"),
    "fetching": QT_TRANSLATE_NOOP("Answer", "Fetching layers"),
    "loading": QT_TRANSLATE_NOOP("Answer", "Loading layers"),
    "opening": QT_TRANSLATE_NOOP("Answer", "Starting layers"),
    "waiting": QT_TRANSLATE_NOOP("Answer", "Waiting"),
}


class AnswerStats(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The statistics of an answer, as stored in the history."""

    tokens: int | None = None  # in the last part, if the answer was continued
    before_tokens: int | None = 0  # in the earlier parts; None if they were not counted
    prompt_tokens: int | None = None
    reused_tokens: int | None = None
    queued_s: float | None = None
    ttft_s: float | None = None
    decode_tok_s: float | None = None
    guessed: int | None = None
    guessed_right: int | None = None
    guess_runs: int | None = None
    drafted_right: int | None = None
    guess_gain: float | None = None
    restored_s: float | None = None
    thought_tokens: int | None = None
    predicted: ForecastSpeed | None = None
    recoveries: int | None = None
    recovered: list[AnswerRecovery] = []
    doubted_facts: list[Reason] = []
    placement: list[Stage] = []
    notes_facts: list[Reason] = []

    @classmethod
    def of(cls, answer: Answer) -> AnswerStats:
        """Return the statistics of a finished answer."""
        shared = set(cls.__struct_fields__) & set(answer.__struct_fields__)
        return cls(tokens=answer.n_tokens, **{name: getattr(answer, name) for name in shared})

    @classmethod
    def stored(cls, details: Mapping[str, Any]) -> AnswerStats:
        """Return the statistics stored with a message. They are empty if missing or unreadable."""
        try:
            return convert(details.get(FIGURES) or {}, cls)
        except ValueError:  # written by another version or another program
            return cls()

    def as_details(self) -> dict[str, Any]:
        details: dict[str, Any] = msgspec.to_builtins(self)
        return details

    def continued(self, part: AnswerStats) -> AnswerStats:
        """Return the combined statistics of this answer and `part`, its continuation.

        Times and prompt tokens come from `part`, because its prompt includes the text generated before.
        """
        before = None if self.tokens is None else self.tokens + (self.before_tokens or 0)
        whole = msgspec.structs.replace(
            part,
            before_tokens=before,
            recovered=[*self.recovered, *part.recovered],
            doubted_facts=[*self.doubted_facts, *part.doubted_facts],
        )
        if part.decode_tok_s:
            return whole
        # A part with a single token has no rate.
        return msgspec.structs.replace(
            whole, decode_tok_s=self.decode_tok_s, predicted=self.predicted or part.predicted
        )

    @property
    def pause_s(self) -> float:
        """The seconds for which machines were lost or replaced during the answer."""
        return sum(recovery.recovered_after_s for recovery in self.recovered)

    @property
    def context_tokens(self) -> int | None:
        """The number of context tokens used by the chat after this answer."""
        return self.prompt_tokens + (self.tokens or 0) if self.prompt_tokens else None


def caption(stats: AnswerStats) -> str:
    """Return the line below an answer. Figures that were not measured are omitted."""
    parts = []
    if stats.decode_tok_s:
        forecast = stats.predicted.decode_tok_s if stats.predicted and not stats.predicted.too_small else 0.0
        text = _tr("{rate} (forecast {forecast})") if forecast else "{rate}"
        if pause_s := stats.pause_s:  # no forecast foresees an interruption, so they are not compared
            text = _tr("{rate}, including a pause of {time}")
        shown = formats.plain_range(forecast, spread_of(forecast, estimated=False))
        rate, pause = formats.speed(stats.decode_tok_s), formats.seconds(pause_s)
        parts.append(text.format(rate=rate, forecast=shown, time=pause))
    if stats.ttft_s is not None:
        parts.append(_tr("first token {time}").format(time=formats.seconds(stats.ttft_s)))
    if stats.tokens is not None and stats.before_tokens is not None:
        count = stats.tokens + stats.before_tokens
        parts.append(QCoreApplication.translate("Answer", "%n token(s)", "", count))
    return SEPARATOR.join(parts)


def details(stats: AnswerStats) -> list[str]:
    """Return the measurements that are not in the caption, one per line."""
    lines = []
    prompt, reused, queued = stats.prompt_tokens or 0, stats.reused_tokens or 0, stats.queued_s or 0.0
    if prompt:
        restored_s = stats.restored_s or 0.0
        text = _tr("Prompt: {tokens} tokens ({reused} reused)")
        if restored_s:
            text = _tr("Prompt: {tokens} tokens ({reused} loaded from disk in {time})")
        numbers = {"tokens": formats.number(prompt), "reused": formats.number(reused)}
        lines.append(text.format(**numbers, time=formats.seconds(restored_s)))
    if prompt > reused and stats.ttft_s and stats.ttft_s > queued and not stats.restored_s:
        speed = formats.speed((prompt - reused) / (stats.ttft_s - queued))
        lines.append(_tr("Reading the prompt: {rate}").format(rate=speed))
    if queued >= WAIT_SHOWN_FROM_S:
        lines.append(_tr("Waited in line: {time}").format(time=formats.seconds(queued)))
    if stats.predicted and stats.predicted.ttft_s and not stats.predicted.too_small:
        text = _tr("First token: forecast {time}")
        lines.append(text.format(time=formats.seconds(stats.predicted.ttft_s)))
    if stats.guessed:
        text = _tr("Speculative decoding: {tokens} tokens guessed, {right} correct")
        right = formats.number(stats.guessed_right or 0)
        lines.append(text.format(tokens=formats.number(stats.guessed), right=right))
        lines += _guess_details(stats)
    return lines + list(map(said, stats.doubted_facts))


def _guess_details(stats: AnswerStats) -> list[str]:
    """Return the sources of the right guesses, and how many tokens were guessed at a time."""
    lines = []
    right, drafted = stats.guessed_right or 0, stats.drafted_right or 0
    if right and drafted:
        text = _tr("Correct guesses: {looked_up} from earlier text, {drafted} from the draft model")
        lines.append(text.format(looked_up=formats.number(right - drafted), drafted=formats.number(drafted)))
    if stats.guess_runs and stats.guessed:
        depth = formats.number(stats.guessed / stats.guess_runs, 1)
        lines.append(_tr("Guessed at a time, on average: {depth} tokens").format(depth=depth))
    if stats.guess_gain:
        times = formats.number(stats.guess_gain, 2)
        lines.append(_tr("Speed compared with plain decoding: {times} times").format(times=times))
    return lines


def recoveries(stats: AnswerStats) -> list[str]:
    """Return a line for each interruption of the answer, such as the loss of a machine."""
    return [
        _recovery_text(recovery).format(
            machine=recovery.machine, others=recovery.others, time=formats.seconds(recovery.recovered_after_s)
        )
        for recovery in stats.recovered
    ]


def _recovery_text(recovery: AnswerRecovery) -> str:
    if not recovery.machine:
        return _tr("Moved the layers and continued after {time}")
    if recovery.others in ("", recovery.machine):  # no other machine had to take over layers
        if recovery.left:
            return _tr("{machine} left, and the answer continued after {time}")
        return _tr("Lost {machine} and continued after {time}")
    if recovery.left:
        return _tr("{machine} left, and {others} took over after {time}")
    return _tr("Lost {machine} and continued with {others} after {time}")


def machines(stats: AnswerStats) -> list[str]:
    """Return a line for each machine, with the layers that the machine computed."""
    runs: dict[str, list[tuple[int, int]]] = {}
    for stage in stats.placement:
        runs.setdefault(stage.machine, []).append((stage.first, stage.last))
    return [f"{machine}: {layer_ranges(sorted(held))}" for machine, held in runs.items()]


def step(progress: Progress) -> str:
    """Describe the current step of loading a model."""
    words = STEPS.get(progress.step)
    text = QCoreApplication.translate("Answer", str(words)) if words else _tr("Loading")
    if progress.machine and progress.step == "measuring":
        text = _tr("Measuring {machine}").format(machine=progress.machine)
    elif progress.machine:
        text = _tr("{step} on {machine}").format(step=text, machine=progress.machine)
    if progress.total:
        share = formats.percent(min(1.0, progress.done / progress.total))
        return _tr("{step}: {share}").format(step=text, share=share)
    return _tr("{step}…").format(step=text)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Answer", text)
