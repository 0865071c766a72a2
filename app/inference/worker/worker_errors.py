"""Errors made from the reports of workers and other machines."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

import msgspec

from app.core.errors import AppError, BadInput, DoesNotFit, Fact, Reason, StageLost
from app.core.reasons import SENTENCES, can_be_said
from app.core.recovery import fault_table
from app.decoding import decode
from backends import worker_orders
from backends.contract import NO_MEMORY

MOST_FACT_CHARS = 1000  # limit on text from another machine
NAMES = ("machine", "worker", "name")  # facts that name the sender
SAID_LINES = 3  # how many of a worker's last lines an error message quotes; the log has all
# The line with which ggml's GGML_ASSERT and GGML_ABORT end a process: `/where/it/was/compiled/ops.cpp:4132: why`.
_GAVE_UP = re.compile(r"(?:.*[/\\])?([\w-]+\.(?:c|cc|cpp|h|hpp|cu|m|mm):\d+: .+)")
# What C++ and Python print when they end a process. Its other last lines before a crash are noise.
_LAST_CRY = re.compile(r"\s*(?:terminate called|what\(\):|Fatal Python error:) ?")
# The engine's messages about a model that it cannot load (backends/llamacpp/binding.py).
_UNKNOWN_FAMILY = re.compile(r"unknown model architecture: '([^']{1,64})'")
_UNKNOWN_PRE = re.compile(r"unknown (?:pre-tokenizer type|tokenizer): '([^']{1,64})'")
_SLOT = re.compile(r"[0-9]{1,5}")
# Signals that a process causes by its own computation. On Windows, the corresponding exit codes start at
# _WINDOWS_CRASH.
_CRASHES = frozenset(
    getattr(signal, name).value
    for name in ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGTRAP")
    if hasattr(signal, name)
)
_WINDOWS_CRASH = 0xC0000000
_FIT_CODES = frozenset(("memory_short", "does_not_fit"))


def refused(answer: worker_orders.Failed, worker: Fact) -> AppError:
    """Return the error for a refused order. The worker's own words are kept in its facts."""
    kind = DoesNotFit if answer.code in _FIT_CODES else BadInput
    code = answer.code if answer.code in SENTENCES else "worker_refused"
    if code == "model_not_loaded":
        if family := _UNKNOWN_FAMILY.search(answer.text):
            return BadInput("engine_knows_not", architecture=family[1])
        if pre := _UNKNOWN_PRE.search(answer.text):
            return BadInput("engine_pre_unknown", name=pre[1])
        if answer.cause == "llama_missing":
            code = "engine_missing"
    cause = Reason(answer.cause, dict(answer.facts))
    return kind(code, worker=worker, cause=cause if can_be_said(cause) else answer.text, text=answer.text)


class _Lost(msgspec.Struct, forbid_unknown_fields=True):
    """The contents of a LOST frame."""

    code: str
    facts: dict[str, Fact]


def lost_of(payload: bytes | bytearray | memoryview, name: str) -> StageLost:
    """Return the error in a LOST frame.

    The frame is untrusted: it may speak only of the sender's own layers and name no machine but the sender, `name`.
    """
    try:
        lost = decode(payload, _Lost)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return StageLost("stage_lost", machine=name)
    plain = Reason(lost.code, lost.facts).mapped(lambda fact, value: name if fact in NAMES else _plain(value))
    facts = {fact: value for fact, value in plain.facts.items() if fact not in ("self", "code")}
    reason = Reason(lost.code, {"words": "", **facts, **dict.fromkeys(NAMES, name)})
    if lost.code not in SENTENCES or not can_be_said(reason):
        return StageLost("stage_lost", machine=name)
    if not fault_table.may_end_layers(lost.code):
        return StageLost("stage_garbled", machine=name, cause=Reason("reason_unknown"))
    return fault_table.loss_error(reason)


def _plain(fact: str | int | float) -> str | int | float:
    """Return untrusted text shortened to a single line."""
    if not isinstance(fact, str):
        return fact
    return "".join(char if char.isprintable() else " " for char in fact[:MOST_FACT_CHARS])


def slots_of(why: Reason) -> frozenset[int]:
    """Return the slots that a worker blames for its end, or none if it names none."""
    said = str(why.facts.get("slots", "")).split(",")
    return frozenset(int(slot) for slot in said if _SLOT.fullmatch(slot))


def ended(code: int | None) -> Reason:
    """Return a phrase for a process's exit code, such as `it was ended by SIGKILL`."""
    if code is None:
        return Reason("end_vanished")
    if code >= 0:
        return Reason("end_code", {"status": code})
    try:
        return Reason("end_signal", {"signal": signal.Signals(-code).name})
    except ValueError:
        return Reason("end_signal_number", {"number": -code})


def death_of(name: Fact, code: int | None, lines: Sequence[str]) -> StageLost:
    """Return the error for a process that ended by itself, from its exit code and its last output."""
    how = ended(code)
    words: Fact = telling(lines)
    if any(sign in line for line in lines for sign in NO_MEMORY):
        reason = Reason("worker_memory_short", {"worker": name, "how": how, "words": words})
    elif any(_GAVE_UP.fullmatch(line.strip()) for line in lines):
        reason = Reason("engine_gave_up", {"worker": name, "how": how, "words": words})
    elif code is not None and (-code in _CRASHES or code >= _WINDOWS_CRASH):
        words = " ".join(line.strip() for line in lines if _LAST_CRY.match(line)) or Reason("worker_log")
        reason = Reason("worker_crashed", {"worker": name, "how": how, "words": words})
    else:
        reason = Reason("worker_died", {"worker": name, "how": how, "words": words})
    return fault_table.loss_error(reason)


def telling(lines: Sequence[str]) -> str:
    """Return the lines that explain a worker's end: the engine's own reason if any, otherwise the last lines."""
    for line in reversed(lines):
        if gave_up := _GAVE_UP.fullmatch(line.strip()):
            return f"{gave_up[1]}."
    return "\n".join(lines[-SAID_LINES:]).strip()
