"""The commands `poolhouse phones …`, which let phones and tablets chat here and remove them again."""

from __future__ import annotations

import io
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import terminal_text
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption, read_name
from app.cli.output import Output

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from app.api.phones import PhoneCode, Phones
    from app.client import NodeClient

DeviceArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The device's name or ID, as `phones list` shows it.", parser=read_name)
]
HALF = 48  # characters of a fingerprint in one line: 16 bytes
WARNS_ONCE = (
    "The browser shows a warning the first time because this computer made its own certificate. "
    "Compare the fingerprint there, then continue."
)


def phones_group() -> typer.Typer:
    commands = typer.Typer(
        name="phones", help="Let phones and tablets chat here, in their browser.", no_args_is_help=True
    )
    commands.command("list")(list_phones)
    for command in (on, off, add, remove):
        commands.command(command.__name__)(command)
    return commands


def list_phones(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the devices that may chat here, and when they last did."""
    from app.api.phones import Phones

    _show(ask_node(home, lambda node: node.get("/phones", Phones)), as_json)


def on(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Let phones and tablets on this network chat here. It stays on after a restart."""
    _switch(home, as_json, is_on=True)


def off(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Close the chat for phones. Running answers are cut off, and the devices are kept."""
    _switch(home, as_json, is_on=False)


def add(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show a one-time code for one more device."""
    from app.api.phones import PhoneCode, Phones

    async def work(node: NodeClient) -> tuple[PhoneCode, Phones]:
        return await node.post("/phones/code", {}, answer=PhoneCode), await node.get("/phones", Phones)

    code, state = ask_node(home, work)
    Output(as_json).result(code, lambda: _view([*_picture(code), *_code_lines(code, state)]))


def remove(device: DeviceArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Remove a device. Its answers end at once, and it needs a new code to connect again."""
    from app.api.phones import Phones
    from app.client import segment

    state = ask_node(home, lambda node: node.delete(f"/phones/devices/{segment(device)}", Phones))
    Output(as_json).result(state, lambda: f"{terminal_text.name(device)} may no longer chat here.")


def _switch(home: Path | None, as_json: bool, *, is_on: bool) -> None:
    from app.api.phones import Phones

    _show(ask_node(home, lambda node: node.post("/phones", {"on": is_on}, answer=Phones)), as_json)


def _show(state: Phones, as_json: bool) -> None:
    Output(as_json).result(state, lambda: _view(_lines(state)))


def _view(lines: list[str]) -> RenderableType:
    from rich.console import Group

    return Group(*map(terminal_text.command_text, lines))


def _lines(state: Phones) -> list[str]:
    if not state.on:
        first = "Phones may not chat here. `poolhouse phones on` allows it."
    elif not state.listening:
        first = "Phones cannot chat here now, because this computer has no address on any of the household's networks."
    else:
        first = f"Phones on this network chat at {_typed(state.addresses)}"
    lines = [first]
    if state.on and not state.devices:
        lines.append("No device is connected. `poolhouse phones add` shows a code for one.")
    for device in state.devices:
        used = f"last used {_moment(device.used_at)}" if device.used_at else "not used yet"
        name = terminal_text.name(device.name)
        lines.append(f"{name} ({device.id}): added {_moment(device.added_at)}, {used}")
    return lines


def _code_lines(code: PhoneCode, state: Phones) -> list[str]:
    minutes = max(1, round(code.seconds_left / 60))
    return [
        f"On the phone, open {_typed(code.addresses)}",
        f"and type this code: {code.code[:4]} {code.code[4:]}",
        f"It is valid for {minutes} minutes and for one device.",
        WARNS_ONCE,
        "SHA-256 fingerprint:",
        state.fingerprint[:HALF],
        state.fingerprint[HALF:],
    ]


def _typed(addresses: list[str]) -> str:
    """Return the addresses that people can type: those of IPv4, if there are any."""
    return " or ".join([address for address in addresses if "[" not in address] or addresses)


def _picture(code: PhoneCode) -> list[str]:
    """Return the lines of a QR code for a terminal, or nothing where its characters cannot be shown."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if not (sys.stdout.isatty() and encoding == "utf8" and code.addresses):
        return []
    import segno

    drawing = io.StringIO()
    segno.make(f"{code.addresses[0]}#{code.code}", micro=False).terminal(drawing, compact=True, border=2)
    return drawing.getvalue().splitlines()


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
