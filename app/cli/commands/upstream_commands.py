"""The commands `poolhouse upstream …`, which manage other servers that may answer instead of the pool."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional
from urllib.parse import urlsplit

import typer

from app.cli import terminal_text
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption, YesOption, read_name
from app.cli.output import Output

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.api.chat_api import Upstream, UpstreamMeasured, Upstreams, UpstreamSpeed, UpstreamTest

Json = dict[str, Any]
KEY_VARIABLE = "POOLHOUSE_UPSTREAM_KEY"
MAX_KEY_CHARACTERS = 1000  # the node's own limit

KEY_STATES = {True: "yes", False: "no", None: "unknown, because the key store cannot be opened"}

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of the server.", parser=read_name)]
UrlArgument = Annotated[str, typer.Argument(metavar="URL", help="The server's address, which usually ends in /v1.")]
ModelsOption = Annotated[
    list[str],
    typer.Option(
        "--model",
        metavar="NAME[=THEIRS]",
        help="A model that the server may answer for, and the model's name there if it differs. May be repeated.",
    ),
]
CapOption = Annotated[
    int, typer.Option("--cap-tokens", min=1, metavar="N", help="The most tokens that the server may use in total.")
]
NewCapOption = Annotated[
    Optional[int],  # noqa: UP045  typer reads it at run time
    typer.Option("--cap-tokens", min=1, metavar="N", show_default=False, help="The new cap."),
]
CertificateOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--certificate",
        metavar="FILE",
        show_default=False,
        help="Trust only this certificate, for example another Poolhouse's.",
    ),
]
ModelOption = Annotated[
    str, typer.Option("--model", metavar="NAME", show_default=False, help="The model. Default: the server's first one.")
]
ChatsOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--chats/--no-chats",
        show_default=False,
        help="Whether it may answer your own questions to its models. They then leave your household.",
    ),
]
ContinuesOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--continue/--no-continue",
        show_default=False,
        help="Whether it may continue answers that the pool cannot finish. Question and answer are then sent there.",
    ),
]
ForgetOption = Annotated[bool, typer.Option("--forget-spent", help="Reset the server's token count.")]


def upstream_group() -> typer.Typer:
    commands = typer.Typer(
        name="upstream",
        help="Let another server answer when the pool is full or does not have the model.",
        no_args_is_help=True,
    )
    for command in (add, on, off, change, remove):
        commands.command(command.__name__)(command)
    commands.command("list")(list_upstreams)
    commands.command("test")(try_upstream)
    commands.command("measure")(measure)
    return commands


def add(
    name: NameArgument,
    url: UrlArgument,
    models: ModelsOption,
    cap_tokens: CapOption,
    certificate: CertificateOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a server, or change its address. It is off at first.

    The key is read from POOLHOUSE_UPSTREAM_KEY, from the first line of a pipe, or from a prompt.
    """
    from app.api.chat_api import Upstreams

    pairs = [model.partition("=") for model in models]
    order: Json = {
        "name": name,
        "url": url,
        "models": {here: there or here for here, _, there in pairs},
        "cap_tokens": cap_tokens,
        "key": _key(),
        "certificate": certificate.read_text("utf-8", "replace") if certificate else "",
    }
    outcome = "was added with a key." if order["key"] else "was added without a key."
    answer = ask_node(home, lambda node: node.post("/api/upstreams", order, answer=Upstreams))
    _show(answer, as_json, f"{terminal_text.name(name)} {outcome}{_no_path_hint(name, url)}")


def _no_path_hint(name: str, url: str) -> str:
    """Return a warning if the address has no path, otherwise "".

    Without the warning, the mistake would be noticed only when a request fails.
    """
    if urlsplit(url.strip()).path.strip("/"):
        return ""
    cure = f"`poolhouse upstream test {terminal_text.name(name)}` shows whether it answers"
    return f" Most servers' addresses end with /v1, but this one does not; {cure}."


def on(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Allow whole requests, including their text, to be sent to the server."""
    _change(name, {"on": True}, home, as_json)


def off(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Stop sending requests to the server."""
    _change(name, {"on": False}, home, as_json)


def try_upstream(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Ask the server for its models. This spends no tokens."""
    from app.api.chat_api import UpstreamTest
    from app.client import segment

    path = f"/api/upstreams/{segment(name)}/test"
    test = ask_node(home, lambda node: node.post(path, {}, answer=UpstreamTest))
    Output(as_json).result(test, lambda: _test_view(test))


def _test_view(test: UpstreamTest) -> RenderableType:
    name, missing = terminal_text.name(test.name), ", ".join(map(terminal_text.name, test.missing))
    if test.missing:
        cure = f"Choose only models that it has: `poolhouse upstream add {name}`."
        return terminal_text.command_text(f"{name} is responding but does not have {missing}. {cure}")
    return f"{name} is responding and has all models that it may answer for."


def measure(
    name: NameArgument,
    model: ModelOption = "",
    yes: YesOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the server: the time to its first token, its speed, and how many answers at once are faster together.

    The measurement uses up to 3,000 tokens of the server's limit. It is never made or repeated by itself.
    """
    from app.api.chat_api import MOST_MEASURED_TOKENS, UpstreamMeasured
    from app.client import segment

    out, shown = Output(as_json), terminal_text.name(name)
    out.confirm(f"This uses up to {MOST_MEASURED_TOKENS:,} tokens of the limit of {shown}. Measure it?", yes)
    path = f"/api/upstreams/{segment(name)}/measure"
    measured = ask_node(home, lambda node: node.post(path, {"model": model}, answer=UpstreamMeasured))
    out.result(measured, lambda: _measured_view(measured))


def _measured_view(measured: UpstreamMeasured) -> RenderableType:
    name, model = terminal_text.name(measured.name), terminal_text.name(measured.model)
    words = f"{name} with {model}: {_speed_words(measured.speed)}. This used {measured.speed.spent_tokens:,} tokens."
    return terminal_text.command_text(words)


def _speed_words(speed: UpstreamSpeed) -> str:
    """Return the measured figures in words."""
    words = (
        f"first token after {speed.ttft_s:.2f} s ({speed.prompt_tokens:,} tokens of prompt), "
        f"{speed.decode_tok_s:.1f} tok/s for one answer"
    )
    best = speed.best
    if best.streams > 1:
        return f"{words}, {best.tok_s:.1f} tok/s for {best.streams} at once"
    return f"{words}, and no more for several at once"


def change(
    name: NameArgument,
    cap_tokens: NewCapOption = None,
    forget: ForgetOption = False,
    chats: ChatsOption = None,
    continues: ContinuesOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the token limit of a server and what it may do, or reset its token count."""
    order: Json = {"cap_tokens": cap_tokens, "forget_spent": forget}
    order |= {} if chats is None else {"chats": chats}
    order |= {} if continues is None else {"continues": continues}
    _change(name, order, home, as_json)


def remove(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Remove a server and its key."""
    from app.api.chat_api import Upstreams
    from app.client import segment

    path = f"/api/upstreams/{segment(name)}"
    _show(ask_node(home, lambda node: node.delete(path, Upstreams)), as_json)


def list_upstreams(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the servers and the tokens spent on each."""
    from app.api.chat_api import Upstreams

    _show(ask_node(home, lambda node: node.get("/api/upstreams", Upstreams)), as_json)


def _change(name: str, order: Json, home: Path | None, as_json: bool) -> None:
    from app.api.chat_api import Upstreams
    from app.client import segment

    path = f"/api/upstreams/{segment(name)}"
    _show(ask_node(home, lambda node: node.post(path, order, answer=Upstreams)), as_json)


def _key() -> str:
    """Return the key. It is never passed as an argument, because every program on this computer can read arguments."""
    if KEY_VARIABLE in os.environ:
        return os.environ[KEY_VARIABLE]
    if sys.stdin is None or not sys.stdin.isatty():
        return _piped_key()
    return str(typer.prompt("Its key (empty: none)", default="", hide_input=True, show_default=False))


def _piped_key() -> str:
    """Return the first line of a pipe or file on stdin.

    For any other stdin, such as the one that a service inherits, return "".
    """
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # stdin is not a file
        return ""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
        return ""
    # tell the user, because the pipe may stay silent
    typer.echo("The key is read from the first line of the pipe.", err=True)
    line = sys.stdin.buffer.readline(MAX_KEY_CHARACTERS + 3).decode(
        "ascii", "replace"
    )  # the node refuses malformed keys
    if len(line.rstrip("\r\n")) > MAX_KEY_CHARACTERS:
        raise typer.BadParameter(
            f"A key has at most {MAX_KEY_CHARACTERS} characters. Give only the key on the first line."
        )
    return line.strip()


def _show(upstreams: Upstreams, as_json: bool, first: str = "") -> None:
    def view() -> RenderableType:
        from rich.console import Group

        lines = [line for upstream in upstreams.upstreams for line in _lines(upstream)]
        none = "No other server is used. `poolhouse upstream add --help` shows how to add one."
        return Group(*map(terminal_text.command_text, filter(None, [first, *(lines or [none])])))

    Output(as_json).result(upstreams, view)


def _lines(upstream: Upstream) -> list[str]:
    name = terminal_text.name(upstream.name)
    state = "is on" if upstream.on else f"is off; `poolhouse upstream on {name}` turns it on"
    pairs = ((terminal_text.name(here), terminal_text.name(there)) for here, there in upstream.models.items())
    models = ", ".join(here if here == there else f"{here} (there: {there})" for here, there in pairs)
    spent = f"{upstream.spent_tokens:,} of {upstream.cap_tokens:,} tokens spent"
    if not upstream.is_counted:
        spent = (
            f"its token count was lost, so no requests are sent to it; `poolhouse upstream change {name} "
            "--forget-spent` resets the count"
        )
    may = " and ".join(
        words
        for words, is_allowed in (
            ("answer your own questions", upstream.chats),
            ("continue answers that the pool cannot finish", upstream.continues),
        )
        if is_allowed
    )
    return [
        f"{name}, at {terminal_text.name(upstream.url)}, {state}.",
        *([f"  It may {may}."] if may else []),
        f"  Models: {models}; {spent}. Key: {KEY_STATES[upstream.has_key]}.",
        *(
            f"  Measured {_day(speed.at)} with {terminal_text.name(model)}: {_speed_words(speed)}."
            for model, speed in upstream.speeds.items()
        ),
    ]


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))
