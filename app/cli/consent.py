"""A question to the person at the terminal, asked before something happens that cannot be undone."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import suppress

MAX_ANSWER_BYTES = 4096  # of the line that is read


async def is_confirmed(question: str) -> bool:
    """Ask a question and return whether the answer is yes. Only what is typed after the question counts.

    The answer is read in a daemon thread and not through `sys.stdin`, which Python locks, so that Ctrl-C ends the
    command at once.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bool] = loop.create_future()
    descriptor = sys.stdin.fileno()

    def settle(typed: bytes) -> None:
        if not answer.done():
            answer.set_result(typed.strip().lower() in (b"y", b"yes"))

    def read() -> None:
        typed = b""
        with suppress(OSError):  # the terminal is gone, which is no consent
            typed = os.read(descriptor, MAX_ANSWER_BYTES)
        with suppress(RuntimeError):  # the command has ended
            loop.call_soon_threadsafe(settle, typed)

    drop_typed()
    sys.stderr.write(f"{question} [y/N]: ")
    sys.stderr.flush()
    threading.Thread(target=read, name="consent", daemon=True).start()
    return await answer


def drop_typed() -> None:
    """Discard text that was typed at the terminal but has not been read yet."""
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        import termios

        with suppress(termios.error, OSError):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
