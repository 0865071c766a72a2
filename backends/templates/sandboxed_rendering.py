"""The rendering of chat templates in Jinja's sandbox, with limits on time, memory and output.

Chat templates are programs from untrusted sources.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from datetime import datetime, timedelta, timezone
from types import FrameType
from typing import Any, NoReturn

from backends.contract import ChatNotSupported, JsonScalar, LocalTime, TemplateFailed
from backends.worker import process_resources

MAX_SECONDS = 1.0  # these three limits: SAFETY.md 7
TRIAL_SECONDS = 1.0  # for all probes of a chat; the largest known template takes a tenth of it
LOOK_SECONDS = 10.0  # for examining a template when a vocabulary is opened, even on a busy computer
MAX_BYTES = 64 << 20
TOOLS_TOO = "xml_tools"  # the variable that SmolLM3's template reads
MAX_TEXT = 1 << 20


def render(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    add_generation_prompt: bool = True,
    tokens: Mapping[str, str] | None = None,
    now: LocalTime | None = None,
    options: Mapping[str, JsonScalar] | None = None,
    seconds: float = MAX_SECONDS,
) -> str:
    """Render the messages as a prompt without modifying them. Raises TemplateFailed.

    tokens: `bos_token` and `eos_token`. now: the time at which the chat began, or None for the current time. options:
    additional template variables, which cannot replace ours.
    """
    values = {**(options or {}), **(tokens or {})}
    with bounded(seconds):
        return rendered(
            template, messages, tools=tools, add_generation_prompt=add_generation_prompt, at=moment(now), values=values
        )


def rendered(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]],
    add_generation_prompt: bool,
    at: datetime,
    values: Mapping[str, object],
) -> str:
    """Render like `render`, but without setting limits. The caller must have entered `bounded`."""
    from backends.templates import jinja_sandbox  # heavy, and most workers only compute layers

    variables = {
        **values,
        "messages": deepcopy(list(messages)),  # a template may modify lists
        "add_generation_prompt": add_generation_prompt,
        "strftime_now": at.strftime,
    }
    if tools:
        variables["tools"] = variables[TOOLS_TOO] = deepcopy(list(tools))
    try:
        return _joined(jinja_sandbox.compiled(template).generate(variables))
    except jinja_sandbox.TemplateError as error:
        raise ChatNotSupported(error.message or type(error).__name__) from None
    except (ArithmeticError, AttributeError, LookupError, SyntaxError, TypeError, ValueError) as error:
        raise ChatNotSupported(f"the chat template failed: {error}", "template_error", error=str(error)) from None


def moment(now: LocalTime | None) -> datetime:
    """Return `now` as a datetime with its UTC offset, or the current time if `now` is None.

    Raises TemplateFailed if the time is out of range.
    """
    if now is None:
        return datetime.now().astimezone()
    try:
        zone = timezone(timedelta(seconds=now.utc_offset_seconds))
        return datetime.fromtimestamp(now.epoch_seconds, zone)
    except (OSError, OverflowError, ValueError) as error:
        words = f"the chat began at a time that is none: {error}"
        raise TemplateFailed(words, "template_time", error=str(error)) from None


def _joined(parts: Iterator[str]) -> str:
    pieces: list[str] = []
    size = 0
    for part in parts:
        size += len(part)
        if size > MAX_TEXT:
            words = f"the chat template writes more than {MAX_TEXT >> 20} MiB"
            raise TemplateFailed(words, "template_output", size=MAX_TEXT >> 20)
        pieces.append(part)
    return "".join(pieces)


@contextmanager
def bounded(seconds: float = MAX_SECONDS) -> Iterator[None]:
    """Limit CPU time and memory inside the context. Raises TemplateFailed if a limit is exceeded.

    CPU time is limited only in the main thread on Linux and macOS. On other systems, and for loops in native code, only
    the caller's deadline limits it.
    """
    try:
        with _limited(seconds):
            yield
    except MemoryError:
        words = f"the chat template took more than {MAX_BYTES >> 20} MiB"
        raise TemplateFailed(words, "template_memory", size=MAX_BYTES >> 20) from None
    except RecursionError:
        raise TemplateFailed("the chat template calls itself endlessly", "template_recursion") from None


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # counts only our CPU time, so other load does not matter
    try:
        with process_resources.limited_growth(MAX_BYTES, mapped=True):
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _late(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise TemplateFailed("the chat template took too long", "template_time_up")
