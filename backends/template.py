"""Chat templates: a stranger's program, run in Jinja's sandbox with bounds on time, memory and text."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from datetime import datetime, timedelta, timezone
from types import FrameType
from typing import Any, NoReturn

from backends import process
from backends.contract import LocalTime, Scalar

MAX_SECONDS = 1.0  # this and the next two: SAFETY.md 7
LOOK_SECONDS = 10.0  # when a vocabulary is opened, for what a template shows, also where other programs compute
MAX_BYTES = 64 << 20
MAX_TEXT = 1 << 20
AT_ONCE = 1e-3  # nothing would be no time at all


class TemplateFailed(Exception):
    """The template could not be applied; the text says why."""


def render(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    add_generation_prompt: bool = True,
    tokens: Mapping[str, str] | None = None,
    now: LocalTime | None = None,
    options: Mapping[str, Scalar] | None = None,
    seconds: float = MAX_SECONDS,
) -> str:
    """The prompt. tokens: `bos_token` and `eos_token`; now: when the chat began, None for this moment; options: further
    variables, of which none takes the place of one of ours. Raises TemplateFailed.

    In the main thread on Linux and macOS time is bounded here; native code in a loop, and other
    systems, are left to the deadline of who asked.
    """
    from backends import sandbox  # heavy, and most workers only compute

    values: dict[str, object] = {**(options or {}), **(tokens or {})}
    try:
        with _bounded(seconds):
            values["strftime_now"] = _moment(now).strftime
            if tools:
                values["tools"] = deepcopy(list(tools))
            values["messages"] = deepcopy(list(messages))  # a template may change lists
            values["add_generation_prompt"] = add_generation_prompt
            return _joined(sandbox.compiled(template).generate(values))
    except sandbox.TemplateError as error:
        raise TemplateFailed(error.message or type(error).__name__) from None
    except MemoryError:
        raise TemplateFailed(f"the chat template took more than {MAX_BYTES >> 20} MiB") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        SyntaxError,
        TypeError,
        ValueError,
    ) as error:
        raise TemplateFailed(f"the chat template failed: {error}") from None
    except RecursionError:
        raise TemplateFailed("the chat template calls itself without end") from None


def _moment(now: LocalTime | None) -> datetime:
    """With the clocks of its place."""
    if now is None:
        return datetime.now().astimezone()
    return datetime.fromtimestamp(
        now.epoch_seconds, timezone(timedelta(seconds=now.utc_offset_seconds))
    )


def _joined(parts: Iterator[str]) -> str:
    found: list[str] = []
    size = 0
    for part in parts:
        size += len(part)
        if size > MAX_TEXT:
            raise TemplateFailed(f"the chat template writes more than {MAX_TEXT >> 20} MiB")
        found.append(part)
    return "".join(found)


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Time and memory are limited inside, and as before outside."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before, begun = signal.signal(signal.SIGALRM, _late), time.monotonic()
    left, every = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with process.may_grow_by(MAX_BYTES, mapped=True):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # somebody else's time went on meanwhile
            left = max(left - (time.monotonic() - begun), AT_ONCE)
            signal.setitimer(signal.ITIMER_REAL, left, every)


def _late(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise TemplateFailed("the chat template took too long")
