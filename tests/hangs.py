"""Detection of hangs beyond the time limit: they are reported, and the process ends."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import io
import os
import sys
import threading
import traceback

import psutil

EXIT_CODE = 1
INNERMOST = 8  # frames of a stack
LAST_WORD_SECONDS = 20.0  # after all others


class Hang:
    """A watch over a running test.

    pytest-timeout raises in the main thread, which usually helps. It does not if native code waits, if a callback
    swallows the exception, or if the cleanup hangs as well.
    """

    def __init__(self, test: str, seconds: float, stderr: int) -> None:
        self._test, self._seconds, self._stderr = test, seconds, stderr
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()
        late = self._seconds + LAST_WORD_SECONDS
        faulthandler.dump_traceback_later(late, exit=True, file=self._stderr)

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        faulthandler.cancel_dump_traceback_later()

    def _end(self) -> None:
        os.write(self._stderr, self._told().encode(errors="backslashreplace"))
        for child in psutil.Process().children(recursive=True):
            child.kill()
        os._exit(EXIT_CODE)

    def _told(self) -> str:
        """The test comes last: where only the end of a log is kept, it is there."""
        string_io, main = io.StringIO(), threading.main_thread().ident
        frames = sys._current_frames()
        for ident in sorted(frames, key=lambda ident: ident == main):
            if ident != threading.get_ident():
                string_io.write(f"\nThread {'main' if ident == main else ident}:\n")
                string_io.writelines(traceback.format_stack(frames[ident])[-INNERMOST:])
        for task in [task for task in gc.get_objects() if isinstance(task, asyncio.Task)]:
            if not task.done():
                task.print_stack(limit=INNERMOST, file=string_io)
        string_io.write(f"{self._test} hung: it was ended after {self._seconds:.0f} s.\n")
        return string_io.getvalue()
