"""The progress of long operations on stderr: bars on a terminal, otherwise one line per step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from app.api.plans import Progress
from app.cli import terminal_text
from app.cli.output import Output
from app.cli.terminal_text import duration
from app.core.reasons import size

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.progress import Task

ShowProgress = Callable[[Progress], None]

QUARTERS = 4
SENDING_TO_ALL = "Sending layers to all machines"
ONE_FILE = ("waiting", "starting", "downloading")  # states of one file, one after another
WORDS = {
    "starting": "Starting",
    "checking": "Checking the file",
    "hashing": "Computing the file's checksum",
    "copying": "Copying",
    "downloading": "Downloading",
    "moving": "Moving models",
    "testing_card": "Testing the graphics card",
    "testing_engine": "Testing the engine",
    "unpacking": "Unpacking",
    "planning": "Planning",
    "cutting": "Extracting layers",
    "measuring": "Measuring",
    "preparing": "Preparing layers",
    "sending": "Sending layers",
    "fetching": "Fetching layers",
    "loading": "Loading layers",
    "opening": "Starting layers",
    "waiting": "Waiting",
}


@contextmanager
def show_progress(out: Output) -> Iterator[ShowProgress]:
    """Yield a function that shows the progress passed to it."""
    if not out.is_live:
        yield _Lines(out).show
        return
    progress = bars(out.stderr)
    try:
        yield _Bars(progress).show
    finally:
        progress.stop()


class _Lines:
    """A display that writes a line when a step begins, and another for each quarter of the layers sent."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._said: set[str] = set()

    def show(self, step: Progress) -> None:
        title = _title(step)
        self._say(title, f"{title}…")
        if step.step == "sending" and step.total:
            quarters = int(QUARTERS * step.done / step.total)
            if 0 < quarters < QUARTERS:
                self._say(f"{title} {quarters}", f"{title}: {100 * quarters // QUARTERS}%")

    def _say(self, key: str, sentence: str) -> None:
        if key not in self._said:
            self._said.add(key)
            self._out.note(sentence)


class _Bars:
    """A display with a bar for each step and machine. The bars of finished steps remain full."""

    def __init__(self, progress: RichProgress) -> None:
        self._progress = progress
        self._tasks: dict[str, Any] = {}
        self._copies: dict[str, Progress] = {}  # layers being sent, by machine

    def show(self, step: Progress) -> None:
        self._bar(_title(step), step, ONE_FILE[0] if step.step in ONE_FILE else "")
        if step.step == "sending" and step.machine:
            self._copies[step.machine] = step
            if len(self._copies) > 1:
                done = sum(copy.done for copy in self._copies.values())
                total = sum(copy.total for copy in self._copies.values())
                self._bar(SENDING_TO_ALL, Progress("sending", None, done, total, "bytes"))

    def _bar(self, title: str, step: Progress, shared_by: str = "") -> None:
        """Update a bar. Steps with the same `shared_by` share one bar, whose title changes."""
        bar = shared_by or title
        # A single step has no fraction to show: until it is done, its bar moves to and fro.
        total = None if step.total == 1 and not step.done else step.total
        if bar not in self._tasks:
            self._progress.start()  # not earlier: quick work shows no bar
            self._tasks[bar] = self._progress.add_task(title, total=total, unit=step.unit)
        self._progress.update(self._tasks[bar], description=title, completed=step.done, total=total)


def bars(console: Console) -> RichProgress:
    """Return bars with amounts, speed and remaining time. They disappear when the work is done."""
    from rich.progress import BarColumn, ProgressColumn, TextColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Figures(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(bar_figures(task), style="dim")

    return RichProgress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        Figures(),
        console=console,
        transient=True,
    )


def bar_figures(task: Task) -> str:
    """Return the text next to a bar, such as `12.0 MiB of 40.0 MiB · 31.0 MiB/s · 1 s left` or `3 of 12 layers`."""
    done, total = task.completed, task.total
    if total is None or total == 1:
        return ""
    if task.fields.get("unit") != "bytes":
        return f"{int(done)} of {int(total)} {terminal_text.name(str(task.fields.get('unit', '')))}"
    parts = [f"{size(int(done))} of {size(int(total))}"]
    if task.speed:
        parts.append(f"{size(int(task.speed))}/s")
    if task.time_remaining is not None and not task.finished:
        parts.append(f"{duration(max(1, task.time_remaining))} left")
    return " · ".join(parts)


def _title(step: Progress) -> str:
    title = WORDS.get(step.step, terminal_text.name(step.step).capitalize() or "Working")
    if not step.machine:
        return title
    return f"{title} {'to' if step.step == 'sending' else 'on'} {terminal_text.name(step.machine)}"
