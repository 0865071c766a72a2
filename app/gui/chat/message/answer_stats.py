"""How an answer did, in words: speed beside its forecast, first token, tokens, machines, steps of loading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from app.core.planner.speed_estimates import is_rough
from app.gui.look import formats
from app.gui.look.sentences import here
from app.gui.pool.machine_words import layer_ranges

Json = Mapping[str, Any]
SEPARATOR = " · "
WHOLE = 100  # tokens a second from which no digits stand behind the point
STEPS = {
    "checking": QT_TRANSLATE_NOOP("Answer", "Checking the file"),
    "hashing": QT_TRANSLATE_NOOP("Answer", "Checking the file"),
    "copying": QT_TRANSLATE_NOOP("Answer", "Copying"),
    "planning": QT_TRANSLATE_NOOP("Answer", "Planning"),
    "cutting": QT_TRANSLATE_NOOP("Answer", "Cutting layers"),
    "measuring": QT_TRANSLATE_NOOP("Answer", "Measuring the machines"),
    "preparing": QT_TRANSLATE_NOOP("Answer", "Preparing layers"),
    "sending": QT_TRANSLATE_NOOP("Answer", "Sending layers"),
    "fetching": QT_TRANSLATE_NOOP("Answer", "Fetching layers"),
    "loading": QT_TRANSLATE_NOOP("Answer", "Loading layers"),
    "opening": QT_TRANSLATE_NOOP("Answer", "Opening layers"),
    "waiting": QT_TRANSLATE_NOOP("Answer", "Waiting"),
}


def joined(first: Json, then: Json) -> Json:
    """Of an answer that went on: what was measured last, and the tokens of all its parts.

    How many were before stands apart, None where nobody counted: the prompt of the last part holds them already.
    """
    tokens = first.get("tokens")
    before = None if tokens is None else tokens + (first.get("before_tokens") or 0)
    found = {**then, "before_tokens": before}
    if not then.get("decode_tok_s"):  # a part of one token has no rate
        found |= {name: first[name] for name in ("decode_tok_s", "predicted") if name in first}
    for name in ("recovered", "doubted"):
        if first.get(name):
            found[name] = [*first[name], *(then.get(name) or ())]
    return found


def caption(figures: Json) -> str:
    """One line below an answer; what was not measured is left out."""
    parts = []
    predicted = figures.get("predicted") or {}
    if rate := figures.get("decode_tok_s"):
        forecast = predicted.get("decode_tok_s")
        text = _tr("{rate} (forecast {forecast})") if forecast else "{rate}"
        if is_rough(forecast or 0):
            text = _tr("{rate} (rough forecast {forecast})")
        parts.append(
            text.format(
                rate=formats.speed(rate), forecast=formats.number(forecast or 0, 1 if (forecast or 0) < WHOLE else 0)
            )
        )
    if (first := figures.get("ttft_s")) is not None:
        parts.append(_tr("first token {time}").format(time=formats.seconds(first)))
    n, before = figures.get("tokens"), figures.get("before_tokens", 0)
    if n is not None and before is not None:
        parts.append(QCoreApplication.translate("Answer", "%n token(s)", "", int(n + before)))
    return SEPARATOR.join(parts)


def details(figures: Json) -> list[str]:
    """The rest of what was measured, a line each."""
    found = []
    read = (figures.get("prompt_tokens") or 0) - (figures.get("reused_tokens") or 0)
    first = figures.get("ttft_s")
    if figures.get("prompt_tokens"):
        text = _tr("Prompt: {tokens} tokens, {reused} of them known from before")
        found.append(
            text.format(
                tokens=formats.number(figures["prompt_tokens"]),
                reused=formats.number(figures.get("reused_tokens") or 0),
            )
        )
    queued = figures.get("queued_s") or 0
    if read > 0 and first and first > queued:
        text = _tr("Reading the prompt: {rate}").format(rate=formats.speed(read / (first - queued)))
        found.append(text)
    if queued >= 0.1:
        found.append(_tr("Waited for its turn: {time}").format(time=formats.seconds(queued)))
    if predicted := (figures.get("predicted") or {}).get("ttft_s"):
        text = _tr("First token: forecast {time}").format(time=formats.seconds(predicted))
        found.append(text)
    if made := figures.get("guessed"):
        right = formats.number(figures.get("guessed_right") or 0)
        text = _tr("Computed ahead: {tokens} guessed tokens, {right} of them right")
        found.append(text.format(tokens=formats.number(made), right=right))
    return found + [here(str(sentence)) for sentence in figures.get("doubted") or ()]


def recovered(figures: Json) -> list[str]:
    """What an answer went through, a line each."""
    found = []
    for one in figures.get("recovered") or ():
        time = formats.seconds(float(one.get("recovered_after_s") or 0))
        facts = {"machine": one.get("machine"), "others": one.get("with"), "time": time}
        found.append(_went_on(one).format(**facts))
    return found


def _went_on(one: Json) -> str:
    if not one.get("machine"):
        return _tr("The layers were moved; the answer went on after {time}")
    if one.get("with") in (None, "", one["machine"]):  # nobody else had to load anything
        if one.get("left"):
            return _tr("{machine} left; the answer went on after {time}")
        return _tr("{machine} was lost; the answer went on after {time}")
    if one.get("left"):
        return _tr("{machine} left; the answer went on with {others} after {time}")
    return _tr("{machine} was lost; the answer went on with {others} after {time}")


def machines(figures: Json) -> list[str]:
    """Which machine computed which layers, a line each."""
    runs: dict[str, list[tuple[int, int]]] = {}
    for stage in figures.get("placement") or ():
        run = int(stage.get("first", 0)), int(stage.get("last", 0))
        runs.setdefault(str(stage.get("machine")), []).append(run)
    return [f"{machine}: {layer_ranges(sorted(held))}" for machine, held in runs.items()]


def used_tokens(figures: Json) -> int | None:
    """How much of the context a chat takes up after this answer."""
    prompt = figures.get("prompt_tokens")
    return int(prompt) + int(figures.get("tokens") or 0) if prompt else None


def step(progress: Json) -> str:
    """What is done now to load a model."""
    words = STEPS.get(str(progress.get("step")))
    text = QCoreApplication.translate("Answer", str(words)) if words else _tr("Loading")
    done, total, machine = progress.get("done"), progress.get("total"), progress.get("machine")
    if machine and progress.get("step") == "measuring":
        text = _tr("Measuring {machine}").format(machine=machine)
    elif machine:
        text = _tr("{step} on {machine}").format(step=text, machine=machine)
    if total and done is not None:
        share = formats.percent(min(1.0, float(done) / float(total)))
        return _tr("{step}: {share}").format(step=text, share=share)
    return _tr("{step}…").format(step=text)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Answer", text)
