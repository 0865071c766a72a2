"""The view of `poolhouse downloads`: a row for each download, and their sum."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from app.api.downloads import Download, DownloadTotals, totals
from app.cli import terminal_text
from app.cli.terminal_text import duration
from app.core.reasons import size


def downloads_view(downloads: Sequence[Download]) -> RenderableType:
    """Show the downloads in the order in which they run, with their sum below."""
    if not downloads:
        return terminal_text.command_text("There are no downloads. `poolhouse pull NAME` starts one.")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("Model", overflow="fold")
    table.add_column("State", overflow="fold")
    table.add_column("Size", justify="right")
    table.add_column("Left", justify="right")
    for download in downloads:
        total = size(download.total_bytes) if download.total_bytes else "unknown"
        amount = total if download.is_over else f"{size(download.done_bytes)} of {total}"
        left = duration(download.seconds_left) if download.seconds_left is not None else ""
        table.add_row(terminal_text.name(download.name), terminal_text.line(download.state), amount, left)
    reasons = [
        terminal_text.command_text(f"{terminal_text.name(download.name)}: {terminal_text.line(why)}")
        for download in downloads
        if (why := download.reason or download.held_up)
    ]
    sums = totals(downloads)
    return Group(table, *reasons, *([Text(totals_line(sums), style="bold")] if sums.n else []))


def totals_line(sums: DownloadTotals) -> str:
    """Return a line such as `3 downloads, 4.1 GiB of 9.8 GiB, 12 min left.`"""
    count = "1 download" if sums.n == 1 else f"{sums.n} downloads"
    total = f"at least {size(sums.total_bytes)}" if sums.is_least else size(sums.total_bytes)
    left = f", {duration(sums.seconds_left)} left" if sums.seconds_left is not None else ""
    paused = ", paused" if not sums.n_going else ""
    return f"{count}, {size(sums.done_bytes)} of {total}{left}{paused}."
