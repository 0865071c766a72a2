"""The conversion of reports from workers and other machines into errors."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

import msgspec

from app.core.errors import AppError, BadInput, DoesNotFit, Fact, Reason, StageLost
from app.core.reasons import SENTENCES, has_sentence
from app.core.recovery import fault_table
from app.decoding import decode
from backends import worker_orders
from backends.contract import tells_device_out_of_memory, tells_out_of_memory

MOST_FACT_CHARS = 1000  # limit on text from another machine
NAMES = ("machine", "worker", "name")  # facts in which a machine names itself
SAID_LINES = 3  # number of a worker's last lines that an error message quotes; the log has all
# The line that ggml's GGML_ASSERT and GGML_ABORT print: `/where/it/was/compiled/ops.cpp:4132: why`.
_GAVE_UP = re.compile(r"(?:.*[/\\])?([\w-]+\.(?:c|cc|cpp|h|hpp|cu|m|mm):\d+: .+)")
# The lines that C++ and Python print when they end a process. Other lines before a crash are noise.
_LAST_CRY = re.compile(r"\s*(?:terminate called|what\(\):|Fatal Python error:) ?")
# The engine's messages about a model that it cannot load (backends/llamacpp/binding.py).
_UNKNOWN_FAMILY = re.compile(r"unknown model architecture: '([^']{1,64})'")
_UNKNOWN_PRE = re.compile(r"unknown (?:pre-tokenizer type|tokenizer): '([^']{1,64})'")
_SLOT = re.compile(r"[0-9]{1,5}")
# Signals that a process causes by its own computation. On Windows, such exit codes start at _WINDOWS_CRASH.
_CRASHES = frozenset(
    getattr(signal, name).value
    for name in ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGTRAP")
    if hasattr(signal, name)
)
_WINDOWS_CRASH = 0xC0000000
_FIT_CODES = frozenset(("memory_short", "does_not_fit"))


def refusal_error(answer: worker_orders.Failed, worker: Fact) -> AppError:
    """Return the error for an order that a worker refused. Its facts include the worker's own text."""
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
    return kind(code, worker=worker, cause=cause if has_sentence(cause) else answer.text, text=answer.text)


class _Lost(msgspec.Struct, forbid_unknown_fields=True):
    """The contents of a LOST frame."""

    code: str
    facts: dict[str, Fact]


def decode_lost(payload: bytes | bytearray | memoryview, name: str) -> StageLost:
    """Return the error reported by a LOST frame.

    The frame is untrusted. It may only report on the sender's own layers, and the names of any machines in it are
    replaced by the sender's `name`.
    """
    try:
        lost = decode(payload, _Lost)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return StageLost("stage_lost", machine=name)
    plain = Reason(lost.code, lost.facts).mapped(lambda fact, value: name if fact in NAMES else _plain(value))
    facts = {fact: value for fact, value in plain.facts.items() if fact not in ("self", "code")}
    reason = Reason(lost.code, {"words": "", **facts, **dict.fromkeys(NAMES, name)})
    if lost.code not in SENTENCES or not has_sentence(reason):
        return StageLost("stage_lost", machine=name)
    if not fault_table.may_end_layers(lost.code):
        return StageLost("stage_garbled", machine=name, cause=Reason("reason_unknown"))
    return fault_table.loss_error(reason)


def _plain(fact: str | int | float) -> str | int | float:
    """Return untrusted text as a single line of limited length."""
    if not isinstance(fact, str):
        return fact
    return "".join(char if char.isprintable() else " " for char in fact[:MOST_FACT_CHARS])


def slots_of(why: Reason) -> frozenset[int]:
    """Return the slots that a worker blames for its end, or an empty set if it names none."""
    said = str(why.facts.get("slots", "")).split(",")
    return frozenset(int(slot) for slot in said if _SLOT.fullmatch(slot))


def exit_reason(code: int | None) -> Reason:
    """Return a reason that describes a process's exit code, such as `it was killed by SIGKILL`."""
    if code is None:
        return Reason("end_vanished")
    if code >= 0:
        return Reason("end_code", {"status": code})
    try:
        return Reason("end_signal", {"signal": signal.Signals(-code).name})
    except ValueError:
        return Reason("end_signal_number", {"number": -code})


def death_error(name: Fact, code: int | None, lines: Sequence[str]) -> StageLost:
    """Return the error for a process that ended unexpectedly, based on its exit code and its last output."""
    how = exit_reason(code)
    words: Fact = explaining_lines(lines)
    if any(map(tells_device_out_of_memory, lines)):
        reason = Reason("worker_card_short", {"worker": name, "how": how, "words": words})
    elif any(map(tells_out_of_memory, lines)):
        reason = Reason("worker_memory_short", {"worker": name, "how": how, "words": words})
    elif any(_GAVE_UP.fullmatch(line.strip()) for line in lines):
        reason = Reason("engine_gave_up", {"worker": name, "how": how, "words": words})
    elif code is not None and (-code in _CRASHES or code >= _WINDOWS_CRASH):
        words = " ".join(line.strip() for line in lines if _LAST_CRY.match(line)) or Reason("worker_log")
        reason = Reason("worker_crashed", {"worker": name, "how": how, "words": words})
    else:
        reason = Reason("worker_died", {"worker": name, "how": how, "words": words})
    return fault_table.loss_error(reason)


def explaining_lines(lines: Sequence[str]) -> str:
    """Return the lines that explain why a worker ended: the engine's own message or, without one, the last lines."""
    for line in reversed(lines):
        if gave_up := _GAVE_UP.fullmatch(line.strip()):
            return f"{gave_up[1]}."
    return "\n".join(lines[-SAID_LINES:]).strip()
