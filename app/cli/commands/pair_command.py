"""The command `poolhouse pair`, which admits a machine to the household or joins one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from app.cli import terminal_text
from app.cli.node_calls import ask_node
from app.cli.options import AdminOption, GuestOption, HomeOption, HostOption, JsonOption, LenderOption, read_code
from app.cli.output import Output
from app.core.errors import AppError, BadInput, Refused

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.api.plans import Progress
    from app.api.responses import MachineResponse, PairingCode
    from app.client import NodeClient

DISCOVERY_SECONDS, POLL_SECONDS = 4.0, 0.2  # time to hear an announcement: twice what discovery takes
CLOSING_SECONDS = 2.0
BAR_CELLS = 40
TRUST = (
    "In theory, paired machines could reconstruct what you type from the numbers that they process. "
    "Pair only machines that you trust."
)

GUEST = (
    "As a guest, it may ask your hosts' models, taking turns with everyone else. It uses no other "
    "machine's memory, lends none, and cannot change the household. The host that answers can read "
    "what is typed there."
)

IS_GUEST = (
    "This machine is a guest there: the hosts answer its questions, and can read what is typed here. "
    "It uses no other machine's memory, lends none, and cannot change the household."
)

RENAMED = "Another machine there already has this machine's name, so this one is now called {name}."


class RoleName(StrEnum):
    """The sets of roles that a new machine may have, by their names in the loopback API."""

    LEND = "lend"
    GUEST = "guest"
    USE_AND_LEND = "use-and-lend"
    ADMIN = "admin"


ROLES = {
    frozenset({"lender"}): RoleName.LEND,
    frozenset({"guest"}): RoleName.GUEST,
    frozenset({"host", "lender"}): RoleName.USE_AND_LEND,
    frozenset({"host", "lender", "admin"}): RoleName.ADMIN,
}


def pair(  # noqa: PLR0913  one for each option
    address: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help="The address that the other machine shows, or its name; by default, the only machine nearby.",
            show_default=False,
        ),
    ] = None,
    open_window: Annotated[
        bool, typer.Option("--open", help="Let one machine in: show a code and the address.")
    ] = False,
    code: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--code", help="The six digits that the other machine shows.", show_default=False),
    ] = None,
    host: HostOption = False,
    lender: LenderOption = False,
    guest: GuestOption = False,
    admin: AdminOption = False,
    role: Annotated[Optional[RoleName], typer.Option("--role", hidden=True)] = None,  # noqa: UP045  an older form
    close: Annotated[
        bool, typer.Option("--close", help="End the pairing that --open started; its code becomes invalid.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="With --open --json: wait for the machine, then print a second JSON object.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pair two machines.

    Run `--open` on one machine. On the other, give the first one's address, or its name if it is nearby. With
    `--open`, the options of `roles` say what the new machine may do; by default, it is a host and a lender.
    """
    if open_window and address is not None:
        raise typer.BadParameter("Give either --open, or the address that another machine shows.")
    if open_window and code:
        raise typer.BadParameter("--open shows a new code. Use --code on the other machine.")
    if close and (open_window or address is not None or code):
        raise typer.BadParameter("--close cannot be combined with other options.")
    roles = {name for name, is_on in {"host": host, "lender": lender, "guest": guest, "admin": admin}.items() if is_on}
    if roles and not open_window:
        raise typer.BadParameter("Roles can be chosen only with --open, on the machine that opens the pairing.")
    out = Output(as_json)
    if close:
        ask_node(home, lambda node: node.delete("/pairing"))
        out.result({}, lambda: "Pairing is closed.")
    elif open_window:
        chosen = role or _role_name(roles)
        _let_in(out, home, chosen.value.replace("-", "_"), wait or not as_json)
    else:
        typed = read_code(code) if code else None
        place = address or _open_nearby(out, home)
        _join(out, home, place, typed or read_code(_ask_code(out)))


def _role_name(roles: set[str]) -> RoleName:
    """Return the name of a new machine's roles. Raises BadParameter for roles that only `roles` can set."""
    name = ROLES.get(frozenset(roles or {"host", "lender"}))
    if name is None:
        raise typer.BadParameter(
            "A new machine gets --lender, --host --lender, --host --lender --admin, or --guest. "
            "`poolhouse roles` can change that later."
        )
    return name


def _open_nearby(out: Output, home: Path | None) -> str:
    """Return the id of the only machine nearby that is open for pairing.

    Waits a few seconds, because the machine may not have been discovered yet.
    """
    from app.api.snapshot import Snapshot
    from app.cli.views.machines_view import only_open

    deadline = time.monotonic() + DISCOVERY_SECONDS
    while True:
        snapshot = ask_node(home, lambda node: node.get("/status", Snapshot))
        if (removed := snapshot.node.reason_facts) is not None:  # it can pair only after a reset
            raise Refused(removed.code, **removed.facts)
        try:
            stranger = only_open(snapshot)
            break
        except BadInput as error:
            if error.reason.code != "pairing_nobody_near" or time.monotonic() > deadline:
                raise
        time.sleep(POLL_SECONDS)
    out.note(f"Pairing with {terminal_text.name(stranger.name or stranger.id)} at {stranger.pairing_address}.")
    return stranger.id


def _ask_code(out: Output) -> str:
    if not out.can_ask:
        raise typer.BadParameter("Give the code with --code 123456.")
    return str(typer.prompt("Code shown on the other machine"))


def _let_in(out: Output, home: Path | None, role: str, wait: bool) -> None:
    from app.api.responses import PairingCode

    window = ask_node(home, lambda node: node.post("/pairing", {"role": role}, answer=PairingCode))
    if out.as_json:
        out.json({"code": window.code, "address": window.address, "seconds": window.seconds})
    if not wait:
        return
    paired = ask_node(home, lambda node: _keep_open(node, out, window))
    name = terminal_text.name(paired.machine.name)
    about = GUEST if role == RoleName.GUEST else TRUST
    if out.as_json:
        out.json({"machine": {"id": paired.machine.id, "name": paired.machine.name}})
    else:
        out.show(f"Paired with {name}. {about}")


def _join(out: Output, home: Path | None, address: str, code: str) -> None:
    from app.api.responses import JoinResponse

    body = {"address": address, "code": code}
    joined = ask_node(home, lambda node: node.post("/pairing/join", body, answer=JoinResponse))
    about = IS_GUEST if joined.guest else TRUST
    called = f"{RENAMED.format(name=terminal_text.name(joined.called))} " if joined.called else ""
    name = terminal_text.name(joined.machine.name)
    out.result(joined, lambda: f"Paired with {name}. {called}{about}")


async def _keep_open(node: NodeClient, out: Output, window: PairingCode) -> MachineResponse:
    """Show the code until a machine joins or pairing is closed. Ctrl-C closes pairing."""
    from app.api.responses import MachineResponse

    try:
        if out.is_live:
            return await _counting_down(node, out, window)
        if not out.as_json:
            out.note(
                f"Code {terminal_text.line(window.code)} at {terminal_text.line(window.address)}, valid for "
                f"{int(window.seconds)} seconds."
            )
        return await node.work("GET", "/pairing/wait", answer=MachineResponse)
    except asyncio.CancelledError:
        # The event loop is ending; otherwise the window would stay open until it times out.
        with contextlib.suppress(AppError, TimeoutError):
            async with asyncio.timeout(CLOSING_SECONDS):
                await node.delete("/pairing")
        raise


async def _counting_down(node: NodeClient, out: Output, window: PairingCode) -> MachineResponse:
    from rich.live import Live

    from app.api.responses import MachineResponse

    deadline = time.monotonic() + window.seconds
    tries_left = window.tries

    def heard(step: Progress) -> None:
        nonlocal tries_left
        if step.tries_left is not None:
            tries_left = step.tries_left

    with Live(
        get_renderable=lambda: _window_view(window, deadline - time.monotonic(), tries_left),
        console=out.stderr,
        refresh_per_second=4,
        transient=True,
    ):
        return await node.work("GET", "/pairing/wait", progress=heard, answer=MachineResponse)


def _window_view(window: PairingCode, seconds_left: float, tries_left: int) -> RenderableType:
    """Show the code with wide spacing, the command to type, and a bar for the remaining time."""
    from rich.console import Group
    from rich.text import Text

    left = max(0, round(seconds_left))
    code, address = terminal_text.line(window.code), terminal_text.line(window.address)
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
        Text(f"{left} s left; tries left: {tries_left}. Ctrl-C ends pairing.", style="dim"),
    )
