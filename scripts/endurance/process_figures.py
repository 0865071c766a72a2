"""The figures of this process: its memory and handles, and the numbers of Qt and Python objects."""

from __future__ import annotations

import gc
import sys

import psutil
from PySide6.QtCore import QObject, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication
from shiboken6 import Shiboken

from scripts.endurance.leak_figures import Reading

HARMLESS = ("GetApplicationBusAddress", "This plugin does not support")


class Said:
    """A handler for Qt's messages, which collects warnings and counts objects.

    Qt reports its object tree as messages. Any other way to count the objects would create a permanent wrapper for
    each.
    """

    def __init__(self) -> None:
        self.warnings: set[str] = set()
        self._lines, self._counts = 0, False
        qInstallMessageHandler(self._hear)

    def objects(self, app: QApplication) -> int:
        """Return the number of objects that belong to the application or one of its windows."""
        self._lines, self._counts = 0, True
        for top in (app, *app.topLevelWidgets()):
            top.dumpObjectTree()
        self._counts = False
        return self._lines

    def _hear(self, kind: QtMsgType, _: object, text: str) -> None:
        if self._counts and kind is QtMsgType.QtDebugMsg:
            self._lines += 1
        elif kind is not QtMsgType.QtDebugMsg and not any(phrase in text for phrase in HARMLESS):
            self.warnings.add(text)


def reading(second: float, said: Said, app: QApplication) -> Reading:
    """Read all figures now."""
    gc.collect()
    me = psutil.Process()
    return Reading(
        round(second), own_memory(me) >> 10, handles(me), said.objects(app),
        len(Shiboken.getAllValidWrappers()), n_gone(), len(gc.get_objects()),
        sys.getrefcount(None), sys.getrefcount(True),
    )  # fmt: skip


def n_gone() -> int:
    """Return the number of live Python wrappers whose Qt object has been deleted."""
    return sum(isinstance(candidate, QObject) and not Shiboken.isValid(candidate) for candidate in gc.get_objects())


def own_memory(process: psutil.Process) -> int:
    """Return the number of resident bytes that this process has written.

    The usual "unique set size" is unsuitable: it includes the pages of Qt's libraries whenever no other program
    uses them, so it jumps by 27 to 45 MiB when another program ends.
    """
    if sys.platform == "win32":
        n_bytes = process.memory_info().private
    elif sys.platform == "linux":
        info = process.memory_info()
        n_bytes = info.rss - info.shared
    else:
        n_bytes = process.memory_full_info().uss
    return int(n_bytes)


def handles(process: psutil.Process) -> int:
    """Return the number of open files, connections and other handles."""
    if sys.platform == "win32":
        n_handles = process.num_handles()
    else:
        n_handles = process.num_fds()
    return int(n_handles)
