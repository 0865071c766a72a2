"""The entry point of the command line, which runs one command and reports any error in one sentence."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from app.cli import terminal_text
from app.cli.node_calls import Stopped
from app.cli.output import Output
from app.core.errors import AppError, BadInput
from app.core.nearest_names import nearest_names
from app.core.system_errors import system_error

if TYPE_CHECKING:
    from typer import TyperException

FAILED = 1
WRONG_USAGE = 2
STOPPED = 130  # the exit code that shells report after Ctrl-C
GLOBAL_OPTIONS = ("--home", "--json")
NOT_UTF8 = "The command contains bytes that are not UTF-8 text. Type it again. Rename files with such names."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code of the process."""
    open_missing_streams()
    terminal_text.remember_home(None)
    words = list(sys.argv[1:] if arguments is None else arguments)
    out = Output(as_json="--json" in words)
    try:
        return _run(words, out)
    except BrokenPipeError:  # `poolhouse models | head`: the reader has closed the pipe
        return FAILED
    except KeyboardInterrupt:
        out.fail(AppError("stopped"))
        return STOPPED
    finally:
        discard_unwritten()


def open_missing_streams() -> None:
    """Connect closed standard streams to the null device.

    Python sets them to None, and the next file or socket to be opened would get one of their file descriptors.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            flags = os.O_RDONLY if mode == "r" else os.O_WRONLY
            null = os.open(os.devnull, flags)
            setattr(sys, name, os.fdopen(null, mode, encoding="utf-8"))


def discard_unwritten() -> None:
    """Discard output that cannot be written. Otherwise Python would retry on exit and print an error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)


def with_options_after_command(words: list[str], groups: Collection[str] = ()) -> list[str]:
    """Move `--home DIR` and `--json` after the command. Users may also write them before the command or between its
    words.

    groups: the first words of commands such as `api on`. If no second word follows, the group's commands are listed.
    """
    options, rest = _leading_options(words)
    if not rest or rest[0].startswith("-"):
        return words  # options of the window itself, or something that typer will reject
    if rest[0] not in groups:
        return [rest[0], *options, *rest[1:]]
    group, (more_options, rest) = rest[0], _leading_options(rest[1:])
    if not rest:
        return [group]
    if rest[0].startswith("-"):
        return [group, *rest]
    return [group, rest[0], *options, *more_options, *rest[1:]]


def _leading_options(words: list[str]) -> tuple[list[str], list[str]]:
    """Split the words into the global options that precede the command, and all others."""
    count = 0
    while count < len(words) and words[count].partition("=")[0] in GLOBAL_OPTIONS:
        count += 2 if words[count] == "--home" else 1
    return words[:count], words[count:]


def _run(words: list[str], out: Output) -> int:
    import typer

    from app.cli.program import build

    program = build()
    groups = {str(group.typer_instance.info.name) for group in program.registered_groups if group.typer_instance}
    try:
        typed = with_options_after_command(words, groups)
        code = program(typed, prog_name="poolhouse", standalone_mode=False)
        sys.stdout.flush()  # a full disk is reported below
    except AppError as error:
        out.fail(error)
        return STOPPED if isinstance(error, Stopped) else FAILED
    except typer.Abort:
        out.fail(AppError("stopped"))
        return STOPPED
    except typer.TyperException as error:  # a usage error, whose message names the option and the remedy
        out.fail(BadInput("usage", sentence=_usage_sentence(error)))
        return WRONG_USAGE
    except UnicodeEncodeError:  # an argument that was not UTF-8
        out.fail(BadInput("usage", sentence=NOT_UTF8))
        return WRONG_USAGE
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        out.fail(system_error(error))
        return FAILED
    if code == STOPPED:  # typer turns Ctrl-C into this code
        out.fail(AppError("stopped"))
    return code if isinstance(code, int) else 0


def _usage_sentence(error: TyperException) -> str:
    """Return typer's message about the error, followed by how to write the command or list its options."""
    import typer

    if isinstance(error, typer.BadParameter) and not hasattr(error, "param_type"):
        name = error.param_hint or (error.param and error.param.opts[0])
        if error.param is not None and error.param.param_type_name == "argument":
            name = error.param.human_readable_name
        sentence = _number_range(error.param) or error.message
        return f"{name}: {sentence}" if name else sentence
    sentence = str(getattr(error, "format_message", error.__str__)())
    context = getattr(error, "ctx", None)
    if context is None:
        return sentence
    help_lists = f"`{context.command_path} --help` lists them all."
    if hasattr(error, "possibilities"):  # an unknown option; typer's own suggestions are too far from what was typed
        options = (option for parameter in context.command.params for option in _shown_options(parameter))
        suggestions = " or ".join(nearest_names(str(getattr(error, "option_name", "")), options))
        return f"{error.message}. " + (f"Did you mean {suggestions}?" if suggestions else help_lists)
    if hasattr(context.command, "commands"):  # an unknown command
        return f"{sentence or 'Choose a command.'} {help_lists}"
    if hasattr(error, "option_name"):  # an option without its value, or with a value that it does not accept
        return f"{sentence.rstrip('.')}. {help_lists}"
    if not hasattr(error, "param_type"):  # nothing is missing, so there are too many arguments
        sentence = f"{sentence.rstrip('.')}. Put an argument with spaces in quotes"
    usage = " ".join(context.get_usage().translate({ord(sign): "" for sign in "{}"}).split())
    example = context.command.epilog
    next_step = f" {example}{terminal_text.home_option()}" if example else ""
    return f"{sentence.rstrip('.')}. {usage}.{next_step}"


def _shown_options(parameter: Any) -> list[str]:
    """Return the long forms of an option, unless it is hidden."""
    if getattr(parameter, "hidden", False):
        return []
    return [option for option in (*parameter.opts, *parameter.secondary_opts) if option.startswith("--")]


KINDS = {"int": "a whole number", "integer": "a whole number", "float": "a number"}  # by the name of typer's type


def _number_range(parameter: object) -> str | None:
    """Return a sentence about the numbers that an option accepts, or None if its value is not a number."""
    parameter_type = getattr(parameter, "type", None)
    kind = KINDS.get(str(getattr(parameter_type, "name", "")).partition(" ")[0])
    if kind is None:
        return None
    least, most = getattr(parameter_type, "min", None), getattr(parameter_type, "max", None)
    if least is not None and most is not None:
        return f"Give {kind} from {least} to {most}."
    if least is not None:
        return f"Give {kind}, {least} or more."
    return f"Give {kind}, {most} or less." if most is not None else f"Give {kind}."
