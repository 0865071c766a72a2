"""The code of pages is read while the window rests, so that their first showing needs less time."""

from __future__ import annotations

import subprocess
import sys

from app.gui.app.application import page_modules

SCRIPT = """
import linecache, sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from app.gui.app.application import PagePreloader
app = QApplication([])
warming = PagePreloader(app)
page = "app.gui.models.models_page"
assert page not in sys.modules
look = QTimer()
look.timeout.connect(lambda: app.quit() if warming.is_done else None)
look.start(20)
QTimer.singleShot(120_000, app.quit)
app.exec()
assert warming.is_done, "it does not end"
assert page in sys.modules and "app.gui.this_computer.computer_page" in sys.modules
again = PagePreloader(app)
again._next()
assert again.is_done, "it waits before each module that is there already"
assert not any("app/gui/models" in name for name in linecache.cache), "the sources stay in memory"
"""


def test_the_code_of_all_pages_is_read() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_parts_of_a_page_in_rooms_of_their_own_come_before_it() -> None:
    names = list(page_modules())
    assert names.index("app.gui.pool.map.map_view") < names.index("app.gui.pool.pool_page")
    assert names.index("app.gui.models.details.details") < names.index("app.gui.models.models_page")


def test_the_first_picture_waits_for_none_of_the_planner_s_tables() -> None:
    slow = "{'app.core.model', 'app.core.household.pairing', 'app.core.planner.placement', 'backends.contract'}"
    code = f"import sys, app.gui.app.application; print(sorted({slow} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
