"""The commands `poolhouse api …`, which manage the API server for other programs and their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from app.cli import terminal_text
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption, read_name
from app.cli.output import Output
from app.core.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from app.api.chat_api import ApiKey, ChatApi, RemoveKeyResponse
    from app.client import NodeClient

Json = dict[str, Any]
USUAL_AT_ONCE = 32

PortOption = Annotated[
    Optional[int],  # noqa: UP045  typer reads it at run time
    typer.Option(
        "--port",
        min=1024,
        max=65535,
        metavar="47114",
        show_default=False,
        help="The port to listen on. It is saved for the next start.",
    ),
]
LoadOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option("--may-load/--may-not-load", show_default=False, help="Whether programs may load another model."),
]
OllamaOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--ollama-without-key/--ollama-with-key",
        show_default=False,
        help="Whether Ollama's routes work without a key. Most Ollama clients cannot send one.",
    ),
]
LanOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--lan/--no-lan",
        show_default=False,
        help="Also serve other computers on this network, over TLS and with a key.",
    ),
]
HostNameOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--host-name",
        metavar="NAME",
        show_default=False,
        help="Also accept requests to this host name, such as host.docker.internal for containers. May be repeated.",
    ),
]
NoHostNameOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--no-host-name", metavar="NAME", show_default=False, help="Stop accepting requests to this host name."
    ),
]
OriginOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--origin",
        metavar="URL",
        show_default=False,
        help="Accept requests from web pages or apps of this origin, such as http://localhost:3000. May be repeated.",
    ),
]
NoOriginOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--no-origin", metavar="URL", show_default=False, help="Stop accepting requests from this origin."),
]
AtOnceOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--at-once",
        min=1,
        max=32,
        metavar="N",
        show_default=False,
        help="How many requests each key may have open at once.",
    ),
]
TokensOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--tokens-a-minute",
        min=0,
        metavar="N",
        show_default=False,
        help="How many tokens per minute each key may use; 0 means no limit.",
    ),
]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="[NAME]", help="The name of the key. You can use one key for each program.", parser=read_name
    ),
]
LimitedArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The name of the key, as shown by `api status`.", parser=read_name)
]
RotateOption = Annotated[bool, typer.Option("--rotate", help="Replace the key; the old one stops working.")]
RemoveOption = Annotated[bool, typer.Option("--remove", help="Revoke the key.")]


def api_group() -> typer.Typer:
    commands = typer.Typer(
        name="api", help="Let other programs use the pool through OpenAI's API and similar ones.", no_args_is_help=True
    )
    for command in (on, off, status, key, limit, certificate):
        commands.command(command.__name__)(command)
    return commands


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
    """Start the API server for programs with a key. It stays on after a restart."""
    chosen = {"port": port, "may_load": may_load, "ollama_open": ollama_open,
              "at_once": at_once, "tokens_a_minute": tokens, "lan": lan,
              "add_host_names": host_names or None, "remove_host_names": no_host_names or None,
              "add_origins": origins or None, "remove_origins": no_origins or None}  # fmt: skip
    order: Json = {"on": True} | {name: value for name, value in chosen.items() if value is not None}
    _post(home, "/api", order, as_json)


def off(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Stop the API server. Running answers are cut off."""
    _post(home, "/api", {"on": False}, as_json)


def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show the server's addresses and who may use it."""
    from app.api.chat_api import ChatApi

    _show(ask_node(home, lambda node: node.get("/api", ChatApi)), as_json)


def key(
    name: NameArgument = "default",
    rotate: RotateOption = False,
    remove: RemoveOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a key, or create it if the name is new."""
    if rotate and remove:
        raise typer.BadParameter("Give either --rotate or --remove.")

    from app.api.chat_api import ApiKey, ApiKeys, RemoveKeyResponse
    from app.client import segment

    async def work(node: NodeClient) -> ApiKey | RemoveKeyResponse:
        if remove:
            return await node.delete(f"/api/keys/{segment(name)}", RemoveKeyResponse)
        keys = {entry.name: entry for entry in (await node.get("/api/keys", ApiKeys)).keys}
        if rotate and keys and name not in keys:  # probably mistyped; a leaked key would stay valid
            raise BadInput("api_key_unknown", name=name[:40], there=", ".join(sorted(keys)))
        if rotate or name not in keys:
            return await node.post("/api/keys", {"name": name}, answer=ApiKey)
        return keys[name]

    answer = ask_node(home, work)
    removed = f"The key {terminal_text.name(name)} is revoked."
    Output(as_json).result(answer, lambda: answer.key if isinstance(answer, ApiKey) else removed)


def limit(
    name: LimitedArgument,
    at_once: AtOnceOption = None,
    tokens: TokensOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set the limits of one key. Limits that you omit default to those for all keys."""
    order: Json = {"name": name, "at_once": at_once, "tokens_a_minute": tokens}
    _post(home, "/api/limits", order, as_json)


def certificate(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show the certificate that programs on other computers must trust."""
    from app.api.chat_api import Certificate

    answer = ask_node(home, lambda node: node.get("/api/certificate", Certificate))
    none = "There is no certificate because other computers cannot use the pool. `poolhouse api on --lan` allows it."
    pem = (answer.certificate or "").rstrip()
    Output(as_json).result(answer, lambda: pem or terminal_text.command_text(none))


def _post(home: Path | None, path: str, body: Json, as_json: bool) -> None:
    from app.api.chat_api import ChatApi

    _show(ask_node(home, lambda node: node.post(path, body, answer=ChatApi)), as_json)


def _show(api: ChatApi, as_json: bool) -> None:
    def view() -> RenderableType:
        from rich.console import Group

        return Group(*map(terminal_text.command_text, _lines(api)))

    Output(as_json).result(api, view)


def _lines(api: ChatApi) -> list[str]:
    if not api.listening:
        return ["Other programs cannot use the pool. `poolhouse api on` allows them to."]
    lines = [f"Other programs on this computer can use the pool at {api.address}"]
    if api.listens_at != api.port:
        lines.append(f"Another program uses port {api.port}, so this time the port is {api.listens_at}.")
    keys = ", ".join(map(terminal_text.name, api.keys))
    lines.append(f"Keys: {keys}. `poolhouse api key` shows one.")
    if api.lan_addresses:
        lines.append(
            f"Other computers on this network can use it at {', '.join(api.lan_addresses)}, over TLS "
            "and with a key. Nothing else is open to them. They must trust the certificate that "
            "`poolhouse api certificate` shows."
        )
    elif api.lan:
        lines.append(
            "Other computers cannot use it, because this one has no address on any of the household's networks."
        )
    lines += _access(api)
    lines += _limits(api)
    if api.may_load:
        lines.append("Programs may load another model.")
    if api.ollama_open:
        lines.append("Every program on this computer can use Ollama's routes without a key.")
    return lines


def _access(api: ChatApi) -> list[str]:
    """Return sentences about the allowed host names and origins, apart from this computer's own."""
    lines = []
    if names := api.host_names:
        lines.append(f"It also accepts requests to these host names: {_joined(names)}.")
    if origins := api.origins:
        shown = _joined(origins)
        lines.append(f"Web pages and apps from these origins may send requests: {shown}.")
    return lines


def _joined(names: list[str]) -> str:
    return ", ".join(map(terminal_text.line, names))


def _limits(api: ChatApi) -> list[str]:
    lines, of_all = [], (api.at_once, api.tokens_a_minute)
    if api.at_once != USUAL_AT_ONCE or api.tokens_a_minute:
        lines.append(f"Each key may {_limit_words(*of_all)}.")
    for name, key_limits in sorted(api.limits.items()):
        at_once = api.at_once if key_limits.at_once is None else key_limits.at_once
        tokens = api.tokens_a_minute if key_limits.tokens_a_minute is None else key_limits.tokens_a_minute
        if (at_once, tokens) != of_all:
            lines.append(f"{terminal_text.name(name)} may {_limit_words(at_once, tokens)}.")
    return lines


def _limit_words(at_once: int, tokens_a_minute: int) -> str:
    rate = f"{tokens_a_minute:,} tokens per minute" if tokens_a_minute else "any number of tokens"
    return f"have {at_once} request{'s' if at_once > 1 else ''} open at once and use {rate}"
