"""The window process of the `map` part. It prints the cost of each state as a JSON object."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QEventLoop, QObject, QTimer
from PySide6.QtWidgets import QApplication

from app.gui.api.node_state import Link
from app.gui.pool.pool_page import MAP, VIEW, PoolPage
from testbed.desk import desk
from testbed.snapshots import household

SIZE = (1200, 760)
SETTLE_S = 3.0
NEWS_MS = 1_000  # a computing node reports its machines this often


class _Paints(QObject):
    """An event filter that counts how often a widget is painted."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        self.count += event.type() == QEvent.Type.Paint
        return False


def main(n_machines: int, seconds: float) -> None:
    app = QApplication([])
    with tempfile.TemporaryDirectory() as folder:
        services = desk(app, Path(folder)).services
        pool = services.pool
        pool.link = Link.THERE
        services.preferences.keep(VIEW, MAP)  # with a screen reader the table is shown first
        page = PoolPage(services)
        page.resize(*SIZE)
        page.show()
        page.shown()
        paints = _Paints()
        page.views.map.viewport().installEventFilter(paints)
        changes = 0

        def news(n_answers: int) -> None:
            """Publish a snapshot of the household with changed numbers."""
            nonlocal changes
            changes += 1
            now = household(n_machines)
            now["answers"]["running"] = n_answers
            for machine in list(now["machines"].values())[1:]:
                machine["used_bytes"] += changes % 2 << 30
            pool.snapshot = now
            pool.changed.emit()

        def watched(n_answers: int, shown: Callable[[], object]) -> tuple[float, float]:
            """Return the frames per second and the fraction of a core used while `n_answers` are running."""
            timer = QTimer()
            timer.timeout.connect(lambda: news(n_answers))
            timer.start(NEWS_MS)
            news(n_answers)
            shown()
            _rest(min(SETTLE_S, seconds))
            before, cpu, began = paints.count, time.process_time(), time.monotonic()
            _rest(seconds)
            past = time.monotonic() - began
            timer.stop()
            return (paints.count - before) / past, (time.process_time() - cpu) / past

        data = {
            "an answer runs": watched(1, page.showNormal),
            "nothing runs": watched(0, page.showNormal),
            "minimized, an answer runs": watched(1, page.showMinimized),
            "hidden, an answer runs": watched(1, page.hide),
        }
    print(json.dumps(data))


def _rest(seconds: float) -> None:
    """Run the event loop for this long, without busy waiting."""
    loop = QEventLoop()
    QTimer.singleShot(round(1000 * seconds), loop.quit)  # the app's own quit closes the window
    loop.exec()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
