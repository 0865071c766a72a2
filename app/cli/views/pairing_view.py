"""An open pairing window on the terminal: the code, the address, the time left, the end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import msgspec

from app.cli import safe_text
from app.cli.output import Face
from app.cli.shapes import read
from app.core.errors import AppError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.client import NodeClient

CLOSING_SECONDS = 2.0
BAR_CELLS = 40


class Window(msgspec.Struct, frozen=True):
    """What the other person must type, and how long it is good for."""

    code: str
    address: str
    seconds: float = 120
    tries: int = 3


class Named(msgspec.Struct, frozen=True):
    """A machine by id and name."""

    id: str
    name: str


class PairedWith(msgspec.Struct, frozen=True):
    """The end of a pairing."""

    machine: Named


async def opened(node: NodeClient, role: str) -> Window:
    """Open a window on the node."""
    return read(await node.post("/pairing", {"role": role}), Window)


async def keep_open(node: NodeClient, face: Face, window: Window) -> PairedWith:
    """Show the window until a machine came in or it closed; Ctrl-C closes it."""
    try:
        if face.is_live:
            return await _counting_down(node, face, window)
        if not face.as_json:
            face.note(
                f"Code {safe_text.line(window.code)} at {safe_text.line(window.address)}, "
                f"good for {int(window.seconds)} seconds."
            )
        return read(await node.work("GET", "/pairing/wait"), PairedWith)
    except asyncio.CancelledError:
        # The loop is ending: nothing else would close the window before its time is over.
        with contextlib.suppress(AppError, TimeoutError):
            async with asyncio.timeout(CLOSING_SECONDS):
                await node.delete("/pairing")
        raise


async def _counting_down(node: NodeClient, face: Face, window: Window) -> PairedWith:
    from rich.live import Live

    ends = time.monotonic() + window.seconds
    tries = [window.tries]

    def heard(step: dict[str, Any]) -> None:
        left = step.get("tries_left")
        tries[0] = left if isinstance(left, int) else tries[0]

    with Live(
        get_renderable=lambda: window_view(window, ends - time.monotonic(), tries[0]),
        console=face.err,
        refresh_per_second=4,
        transient=True,
    ):
        return read(await node.work("GET", "/pairing/wait", progress=heard), PairedWith)


def window_view(window: Window, seconds_left: float, tries_left: int) -> RenderableType:
    """The code in large spacing, what to type, and the time left as a bar."""
    from rich.console import Group
    from rich.text import Text

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
