"""Where to save: the end of the name is right, and no file goes that nobody was asked about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from app.gui.widgets.last_folder import LastFolder


def save_file(
    parent: QWidget, title: str, offered: Path, kinds: Mapping[str, str], last: LastFolder
) -> Path | None:
    """The file a person chooses, or None. kinds: filter of the dialog -> suffix.

    Where the whole name is another than the one typed, and there already, the dialog comes again
    with it, so that it asks itself.
    """
    offered = last.offered(offered)
    while True:
        name, kind = QFileDialog.getSaveFileName(parent, title, str(offered), ";;".join(kinds))
        if not name:
            return None
        typed = Path(name)
        offered = ended(typed, kinds.get(kind) or next(iter(kinds.values())), kinds)
        if offered == typed or not offered.exists():
            last.keep(offered)
            return offered


def ended(typed: Path, suffix: str, kinds: Mapping[str, str]) -> Path:
    """With its suffix: in the place of that of another kind, else after the whole name."""
    if typed.suffix.lower() == suffix:
        return typed
    if typed.suffix.lower() in kinds.values():
        return typed.with_suffix(suffix)
    return typed.with_name(typed.name + suffix)
