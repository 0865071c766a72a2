"""The output of a command: results on stdout and messages on stderr, as text or as JSON."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from app.cli import terminal_text
from app.core.errors import AppError, BadInput
from app.core.nearest_names import MODEL_UNKNOWN
from app.core.reasons import said, sentence_for

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Substitutes for our own characters on outputs with old code pages; all others become "?".
_SUBSTITUTES = {"█": "#", "░": ".", "▁": "_", "–": "-", "·": "-", "…": ".", "×": "x", "±": "~", "→": ">"}
UNBROKEN_WIDTH = 10_000  # columns of a pipe or file: no line is wrapped and no column truncated


def _substitute(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end]
    return "".join(_SUBSTITUTES.get(sign, "?") for sign in missing), error.end


codecs.register_error("poolhouse.plain", _substitute)


class Output:
    """The stdout and stderr of one command. With `as_json`, stdout receives exactly one JSON object."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        self._line_is_open = False  # whether `write` left a line unfinished
        for stream in (sys.stdout, sys.stderr):
            _replace_unencodable(stream)

    @cached_property
    def stdout(self) -> Console:
        return _console(sys.stdout)

    @cached_property
    def stderr(self) -> Console:
        return _console(sys.stderr)

    @property
    def is_live(self) -> bool:
        """Return whether the output is a terminal, where progress bars can be shown."""
        return not self.as_json and sys.stdout.isatty() and sys.stderr.isatty()

    @property
    def can_ask(self) -> bool:
        """Return whether the user can be asked a question."""
        return self.is_live and sys.stdin.isatty()

    def confirm(self, question: str, yes: bool) -> None:
        """Ask the user to confirm, unless `yes` is set. If the user declines, end the command.

        Raises BadInput if the user cannot be asked.
        """
        if yes:
            return
        if not self.can_ask:
            raise BadInput("nobody_to_ask")
        import typer

        typer.confirm(question, abort=True)

    def result(self, data: object, view: Callable[[], RenderableType]) -> None:
        """Write the result as JSON or as a view."""
        if self.as_json:
            self.json(data)
        else:
            self.show(view())

    def show(self, view: RenderableType) -> None:
        """Show a view on stdout. Trailing spaces are removed if stdout is not a terminal."""
        from rich.console import Group

        view = Group(view)  # rich ignores a Text's no_wrap if it is printed on its own
        if self.stdout.is_terminal:
            self.stdout.print(view, crop=False)
            return
        with self.stdout.capture() as drawn:
            self.stdout.print(view, crop=False)
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in drawn.get().splitlines())
        sys.stdout.flush()

    def json(self, data: object) -> None:
        """Write an object as one line of ASCII JSON, which sends no control characters to a terminal.

        `data` is a dict or a struct of app/api.
        """
        if not isinstance(data, dict):
            import msgspec

            data = msgspec.to_builtins(data)
        line = json.dumps(data, ensure_ascii=True).replace("\x7f", "\\u007f")
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def write(self, foreign: str) -> None:
        """Write a piece of streamed text immediately."""
        text = terminal_text.text(foreign)
        sys.stdout.write(text)
        sys.stdout.flush()
        if text:
            self._line_is_open = not text.endswith("\n")

    def end_line(self) -> None:
        """End the last line of streamed text if it is incomplete."""
        if self._line_is_open:
            self.write("\n")

    def write_dim(self, foreign: str) -> None:
        """Write streamed text that is not part of the result. It is dimmed and appears only on a terminal."""
        from rich.text import Text

        if not self.as_json and self.stdout.is_terminal:
            self.stdout.print(Text(terminal_text.text(foreign), style="dim"), end="", soft_wrap=True)

    def note(self, sentence: str) -> None:
        """Write a message to stderr, on a separate line. `--home` is added to commands in it if necessary."""
        begins = "\n" if self._line_is_open and _share_one_file() else ""
        sys.stderr.write(f"{begins}{terminal_text.line(terminal_text.with_home(sentence))}\n")
        sys.stderr.flush()

    def note_dim(self, sentence: str) -> None:
        """Write a less important message, but only to a terminal."""
        if self.is_live:
            self.stderr.print(terminal_text.line(sentence), style="dim")

    def fail(self, error: AppError) -> None:
        """Report an error in one sentence. If that cannot be written, only the exit code reports the error."""
        sentence = terminal_text.line(terminal_text.with_home(_sentence_of(error)))
        if self.as_json:
            kind = type(error).__name__
            with suppress(OSError):
                self.json({"error": {"kind": kind, **error.reason.to_json(), "message": sentence}})
        with suppress(OSError):
            self.note(sentence)


MORE_MODELS = "`poolhouse pull` lists models to download, and `poolhouse import FILE` adds a file."


def _sentence_of(error: AppError) -> str:
    """Return the sentence for an error. If a model is unknown, the sentence includes the command to download or import
    it."""
    if error.reason.code not in MODEL_UNKNOWN:
        return said(error)
    name = str(error.reason.facts.get("name", ""))
    if name.casefold().endswith(".gguf"):  # users of llama.cpp are used to typing a file name
        return said(error) + " Import the file first: `poolhouse import FILE`."
    with suppress(BadInput):  # if the catalog is damaged, the shelf's sentence is shown
        if hint := _pull_hint(name):
            return hint
        if more := _near_in_catalog(name) or ("" if "near" in error.reason.facts else MORE_MODELS):
            return f"{said(error)} {more}"
    return said(error)


def _near_in_catalog(name: str) -> str:
    """Return a sentence about the models in the catalog that the user may have meant, or "" if there are none."""
    from app.catalog.model_catalog import load_catalog

    near = load_catalog().nearest(name)
    if not near:
        return ""
    pulled, what = (near[0], "it") if len(near) == 1 else ("NAME", "one")
    return f"The catalog has {', '.join(near)}: `poolhouse pull {pulled}` downloads {what}."


def _pull_hint(name: str) -> str:
    """Return a sentence about downloading this model, or "" if it is not in the catalog."""
    from app.catalog.model_catalog import load_catalog

    try:
        offer, file = load_catalog().find_by_name(name)
    except BadInput as odd:
        if odd.reason.code != "catalog_ambiguous" or not name:
            return ""
        return sentence_for("models_not_pulled", name=name, there=odd.reason.facts["there"])
    pulled = offer.id if file.recommended else f"{offer.id}:{file.quantization}"
    return sentence_for("model_not_pulled", model=pulled)


def _share_one_file() -> bool:
    """Return whether stdout and stderr are the same file, as on a terminal or after `2>&1`.

    In this case, a message must begin with a line break if it follows unfinished streamed text.
    """
    try:
        stdout, stderr = (os.fstat(stream.fileno()) for stream in (sys.stdout, sys.stderr))
    except (OSError, ValueError):  # not backed by a file descriptor
        return False
    return (stdout.st_dev, stdout.st_ino) == (stderr.st_dev, stderr.st_ino)


def _replace_unencodable(stream: TextIO) -> None:
    """Make the stream replace characters that it cannot encode, instead of failing."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="poolhouse.plain")


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    # No markup: names of machines and models may contain brackets.
    return Console(file=stream, markup=False, emoji=False, highlight=False, width=_width(stream))


def _width(stream: TextIO) -> int | None:
    """Return the output's width for rich, or None to let rich determine it from the terminal.

    A width of 0 becomes None, because rich would then show nothing.
    """
    columns = os.environ.get("COLUMNS", "")
    if columns == "0":
        return shutil.get_terminal_size().columns
    return None if stream.isatty() or columns.isdecimal() else UNBROKEN_WIDTH
