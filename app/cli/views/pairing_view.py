"""An open pairing window on the terminal: the code, the address, the time left, the end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from app.api.answers import MachineAnswer, PairingCode
from app.api.plans import Progress
from app.cli import safe_text
from app.cli.output import Face
from app.core.errors import AppError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.client import NodeClient

CLOSING_SECONDS = 2.0
BAR_CELLS = 40


async def opened(node: NodeClient, role: str) -> PairingCode:
    """Open a window on the node."""
    return await node.post("/pairing", {"role": role}, answer=PairingCode)


async def keep_open(node: NodeClient, face: Face, window: PairingCode) -> MachineAnswer:
    """Show the window until a machine came in or it closed; Ctrl-C closes it."""
    try:
        if face.is_live:
            return await _counting_down(node, face, window)
        if not face.as_json:
            face.note(
                f"Code {safe_text.line(window.code)} at {safe_text.line(window.address)}, "
                f"good for {int(window.seconds)} seconds."
            )
        return await node.work("GET", "/pairing/wait", answer=MachineAnswer)
    except asyncio.CancelledError:
        # The loop is ending: nothing else would close the window before its time is over.
        with contextlib.suppress(AppError, TimeoutError):
            async with asyncio.timeout(CLOSING_SECONDS):
                await node.delete("/pairing")
        raise


async def _counting_down(node: NodeClient, face: Face, window: PairingCode) -> MachineAnswer:
    from rich.live import Live

    ends = time.monotonic() + window.seconds
    tries_left = window.tries

    def heard(step: Progress) -> None:
        nonlocal tries_left
        if step.tries_left is not None:
            tries_left = step.tries_left

    with Live(
        get_renderable=lambda: window_view(window, ends - time.monotonic(), tries_left),
        console=face.err,
        refresh_per_second=4,
        transient=True,
    ):
        return await node.work("GET", "/pairing/wait", progress=heard, answer=MachineAnswer)


def window_view(window: PairingCode, seconds_left: float, tries_left: int) -> RenderableType:
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
