"""`poolhouse api`: other programs of this computer use the pool, or not; its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from app.cli import hints, safe_text
from app.cli.conversation import ask_node
from app.cli.options import HomeOption, JsonOption, read_name
from app.cli.output import Face
from app.core.errors import BadInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.client import NodeClient

Json = dict[str, Any]
LIMITS = ("at_once", "tokens_a_minute")
USUAL_AT_ONCE = 32

PortOption = Annotated[
    Optional[int],  # noqa: UP045  typer reads it at run time
    typer.Option("--port", min=1024, max=65535, metavar="47114", show_default=False, help="Where it listens; kept."),
]
LoadOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option("--may-load/--may-not-load", show_default=False, help="Programs may change the model that is loaded."),
]
OllamaOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--ollama-without-key/--ollama-with-key",
        show_default=False,
        help="Ollama's routes open without a key: most of its clients can send none.",
    ),
]
LanOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--lan/--no-lan", show_default=False, help="Other computers of this network too: over TLS, with a key."
    ),
]
HostNameOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--host-name",
        metavar="NAME",
        show_default=False,
        help="Also answer by this host name, such as host.docker.internal for containers. Repeatable.",
    ),
]
NoHostNameOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--no-host-name", metavar="NAME", show_default=False, help="Stop answering by it."),
]
OriginOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--origin",
        metavar="URL",
        show_default=False,
        help="Let web pages or apps from this origin ask, such as http://localhost:3000. Repeatable.",
    ),
]
NoOriginOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--no-origin", metavar="URL", show_default=False, help="Refuse that origin again."),
]
AtOnceOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--at-once", min=1, max=32, metavar="N", show_default=False, help="Requests that each key may have open."
    ),
]
TokensOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--tokens-a-minute",
        min=0,
        metavar="N",
        show_default=False,
        help="Tokens that each key may have; 0: any number.",
    ),
]
NameArgument = Annotated[
    str, typer.Argument(metavar="[NAME]", help="One key for each program, if you like.", parser=read_name)
]
LimitedArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Whose key, as in `api status`.", parser=read_name)
]
RotateOption = Annotated[bool, typer.Option("--rotate", help="A new key; the one before opens nothing more.")]
RemoveOption = Annotated[bool, typer.Option("--remove", help="The key opens nothing more.")]


def add_to(program: typer.Typer) -> None:
    commands = typer.Typer(
        name="api", help="Let other programs use the pool: OpenAI's API and its like.", no_args_is_help=True
    )
    commands.command("on")(on)
    commands.command("off")(off)
    commands.command("status")(status)
    commands.command("key")(key)
    commands.command("limit")(limit)
    commands.command("certificate")(certificate)
    program.add_typer(commands, rich_help_panel="Every day")


def on(  # noqa: PLR0913  one for each option
    port: PortOption = None,
    may_load: LoadOption = None,
    ollama_open: OllamaOption = None,
    at_once: AtOnceOption = None,
    tokens: TokensOption = None,
    lan: LanOption = None,
    host_names: HostNameOption = None,
    no_host_names: NoHostNameOption = None,
    origins: OriginOption = None,
    no_origins: NoOriginOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Listen on this computer, for programs with a key. It stays on."""
    chosen = {"port": port, "may_load": may_load, "ollama_open": ollama_open,
              "at_once": at_once, "tokens_a_minute": tokens, "lan": lan,
              "add_host_names": host_names or None, "remove_host_names": no_host_names or None,
              "add_origins": origins or None, "remove_origins": no_origins or None}  # fmt: skip
    order: Json = {"on": True} | {name: value for name, value in chosen.items() if value is not None}
    _show(ask_node(home, lambda node: node.post("/api", order)), as_json)


def off(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Listen no more. Answers under way end."""
    _show(ask_node(home, lambda node: node.post("/api", {"on": False})), as_json)


def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Where it listens, and who may use it."""
    _show(ask_node(home, lambda node: node.get("/api")), as_json)


def key(
    name: NameArgument = "default",
    rotate: RotateOption = False,
    remove: RemoveOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a key; a name that is new makes one."""
    if rotate and remove:
        raise typer.BadParameter("Give one of --rotate and --remove.")

    async def work(node: NodeClient) -> Json:
        from app.client import segment

        if remove:
            return await node.delete(f"/api/keys/{segment(name)}")
        listed = (await node.get("/api/keys"))["keys"]
        known: dict[str, Json] = {one["name"]: one for one in listed}
        if rotate and known and name not in known:  # mistyped: the key that leaked would stay
            raise BadInput("api_key_unknown", name=name[:40], there=", ".join(sorted(known)))
        if rotate or name not in known:
            return await node.post("/api/keys", {"name": name})
        return known[name]

    answer = ask_node(home, work)
    words = f"The key {safe_text.name(name)} opens nothing more." if remove else answer["key"]
    Face(as_json).result(answer, lambda: words)


def limit(
    name: LimitedArgument,
    at_once: AtOnceOption = None,
    tokens: TokensOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """What one key may have; what is not given is as for all keys."""
    order: Json = {"name": name, "at_once": at_once, "tokens_a_minute": tokens}
    _show(ask_node(home, lambda node: node.post("/api/limits", order)), as_json)


def certificate(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show the certificate that programs of other computers must trust."""
    told = ask_node(home, lambda node: node.get("/api/certificate"))
    none = "There is none: other computers cannot use the pool. `poolhouse api on --lan` lets them."
    pem = str(told["certificate"] or "").rstrip()
    Face(as_json).result(told, lambda: pem or hints.text(none))


def _show(told: Json, as_json: bool) -> None:
    def view() -> RenderableType:
        from rich.console import Group

        return Group(*map(hints.text, _lines(told)))

    Face(as_json).result(told, view)


def _lines(told: Json) -> list[str]:
    if not told["listening"]:
        return ["Other programs cannot use the pool. `poolhouse api on` lets them."]
    lines = [f"Other programs of this computer can use the pool at {told['address']}"]
    if told["listens_at"] != told["port"]:
        lines.append(f"Port {told['port']} is used by another program, so it is {told['listens_at']} this time.")
    keys = ", ".join(map(safe_text.name, told["keys"]))
    lines.append(f"Keys: {keys}. `poolhouse api key` shows one.")
    if told["lan_addresses"]:
        lines.append(
            f"Other computers of this network too, at {', '.join(told['lan_addresses'])}: over TLS and with a key. "
            "Nothing else is open to them. They must trust the certificate that `poolhouse api certificate` shows."
        )
    elif told["lan"]:
        lines.append("Other computers cannot: this one has no address in a network of the household.")
    lines += _access(told)
    lines += _limits(told)
    if told["may_load"]:
        lines.append("They may change the model that is loaded.")
    if told["ollama_open"]:
        lines.append("Ollama's routes open without a key, to every program of this computer.")
    return lines


def _access(told: Json) -> list[str]:
    """What was allowed beside this computer's own names and programs."""
    lines = []
    if names := told["host_names"]:
        lines.append(f"It also answers by these host names: {_listed(names)}.")
    if origins := told["origins"]:
        shown = _listed(origins)
        lines.append(f"Web pages and apps from these origins may ask and read answers: {shown}.")
    return lines


def _listed(names: list[str]) -> str:
    return ", ".join(map(safe_text.line, names))


def _limits(told: Json) -> list[str]:
    lines = []
    if told["at_once"] != USUAL_AT_ONCE or told["tokens_a_minute"]:
        lines.append(f"Each key may have {_much(told)}.")
    for name, own in sorted(told["limits"].items()):
        both = {what: told[what] if own.get(what) is None else own[what] for what in LIMITS}
        if both != {what: told[what] for what in LIMITS}:
            lines.append(f"{safe_text.name(name)} may have {_much(both)}.")
    return lines


def _much(limits: Json) -> str:
    tokens = limits["tokens_a_minute"]
    rate = f"{tokens:,} tokens a minute" if tokens else "any number of tokens"
    many = limits["at_once"]
    return f"{many} request{'s' if many > 1 else ''} at once and {rate}"
