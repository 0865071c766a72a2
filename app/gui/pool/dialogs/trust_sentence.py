"""The sentence that both sides of a pairing read."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication


def trust() -> str:
    """Why only trusted machines are paired."""
    return QCoreApplication.translate(
        "Household",
        "Machines of a household can in principle work out what is typed from the numbers they "
        "process. Pair only machines you trust.",
    )
