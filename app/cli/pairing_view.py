"""What a person sees while a pairing window is open."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from app.cli import safe_text
from app.cli.pairing_window import Window

BAR_CELLS = 40


def window_view(window: Window, seconds_left: float, tries_left: int) -> RenderableType:
    """The code in large spacing, what to type, and the time left as a bar."""
    left = max(0, round(seconds_left))
    code, address = safe_text.line(window.code), safe_text.line(window.address)
    digits = Text("    " + "  ".join(code[:3]) + "     " + "  ".join(code[3:]), style="bold blue")
    full = min(BAR_CELLS, round(BAR_CELLS * left / max(1, window.seconds)))
    bar = Text("█" * full, style="blue").append("░" * (BAR_CELLS - full), style="dim")
    return Group(
        Text("On the machine to add, type:"),
        Text(),
        Text(f"    poolhouse pair {address}", style="bold"),
        Text(),
        Text("and then this code:"),
        Text(),
        digits,
        Text(),
        bar,
        Text(f"{left} s left, {tries_left} tries. Ctrl-C closes the window.", style="dim"),
    )
