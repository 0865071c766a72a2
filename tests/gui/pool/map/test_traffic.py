"""The moving dots watch their window, and let it end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# The window is still shown when Python ends and takes everything apart, in an order of its own.
ENDS = """
import sys
from pathlib import Path
from PySide6.QtWidgets import QApplication, QMainWindow
from app.gui.pool.map.map_view import MapView
from app.gui.look.motion import Motion
from app.gui.app.preferences import Preferences
from app.gui.look.theme import Scheme, Theme

app = QApplication([])
window = QMainWindow()
view = MapView(Theme(app, Scheme.LIGHT, 1.0), Motion(app, Preferences(Path(sys.argv[1]), app)))
window.setCentralWidget(view)
window.show()
app.processEvents()
assert view.traffic._window is not None
"""


def test_a_window_with_a_map_can_end_while_it_is_shown(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", ENDS, str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
