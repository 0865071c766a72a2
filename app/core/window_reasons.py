"""The sentences of what only the window meets: the node away, files of its own, the screen."""

from __future__ import annotations

WINDOW_SENTENCES: dict[str, str] = {
    "node_away": "The background service does not run just now, so that could not be done. "
    "Wait a moment and try again.",
    "node_keeps_ending": "The background service stopped several times in two minutes. "
    "Look at the details, then press Start again.",
    "node_slow_start": "The background service was started and does not answer after {seconds} seconds. "
    "Press Start again, or restart the computer.",
}
