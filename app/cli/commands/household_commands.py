"""The commands that manage the household: its status, machines, roles and links."""

from __future__ import annotations

import asyncio
from typing import Annotated, Optional

import typer

from app.cli import terminal_text
from app.cli.node_calls import ask_node
from app.cli.options import (
    AdminOption,
    GuestOption,
    HomeOption,
    HostOption,
    JsonOption,
    LenderOption,
    YesOption,
    read_name,
    read_new_name,
)
from app.cli.output import Output
from app.core.errors import BadInput, Refused

MachineArgument = Annotated[
    str,
    typer.Argument(
        metavar="MACHINE", help="The machine's name, or at least six characters of its id.", parser=read_name
    ),
]
LOST_ROLE = {  # the consequences of losing a role
    "lender": ("Its memory is free again. A model with layers there is loaded again without it, if it still fits."),
    "host": "Models that it loaded on other machines are unloaded.",
}


def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show the machines, what they lend, and which layers they hold."""
    from app.api.snapshot import Snapshot

    snapshot = ask_node(home, lambda node: node.get("/status", Snapshot))

    from app.cli.views.status_view import status_view

    Output(as_json).result(snapshot, lambda: status_view(snapshot))


def machines(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the machines of the household."""
    from app.api.responses import Machines

    answer = ask_node(home, lambda node: node.get("/machines", Machines))

    from rich.console import Group

    from app.cli.views.machines_view import MachinesView, nearby_view

    Output(as_json).result(answer, lambda: Group(MachinesView(answer.machines), *nearby_view(answer.strangers)))


def rename(
    machine: MachineArgument,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The new name, for everyone in the household.", parser=read_new_name)
    ],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rename a machine."""
    from app.api.responses import RenameResponse
    from app.client import segment

    path = f"/machines/{segment(machine)}/name"
    answer = ask_node(home, lambda node: node.post(path, {"name": name}, answer=RenameResponse))
    was, now = terminal_text.name(answer.renamed.was), terminal_text.name(answer.renamed.name)
    Output(as_json).result(answer, lambda: f"{was} is now called {now}.")


def roles(
    machine: MachineArgument,
    host: HostOption = False,
    lender: LenderOption = False,
    guest: GuestOption = False,
    admin: AdminOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set the roles of a machine. They replace its current roles.

    Everything that the machine is doing in a removed role ends immediately.
    """
    from app.api.responses import SetRolesResponse
    from app.client import segment

    options = {"admin": admin, "host": host, "lender": lender, "guest": guest}
    chosen = [role for role, is_on in options.items() if is_on]
    if not chosen:
        raise typer.BadParameter("Give at least one of --host, --lender, --guest and --admin.")
    path = f"/machines/{segment(machine)}/roles"
    answer = ask_node(home, lambda node: node.post(path, {"roles": chosen}, answer=SetRolesResponse))
    name = terminal_text.name(answer.machine.name)
    has = [terminal_text.line(role) for role in answer.machine.roles]
    ends = [f" {words}" for role, words in LOST_ROLE.items() if role not in has]
    Output(as_json).result(answer, lambda: f"Roles of {name}: {', '.join(has)}.{''.join(ends)}")


def use_again(machine: MachineArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Use a machine again after a check found that it had computed wrong numbers."""
    from app.api.responses import UseAgainResponse
    from app.client import segment

    path = f"/machines/{segment(machine)}/use-again"
    answer = ask_node(home, lambda node: node.post(path, answer=UseAgainResponse))
    name = terminal_text.name(answer.used_again.name)
    Output(as_json).result(answer, lambda: f"{name} is used again.")


def remove(
    machine: MachineArgument,
    yes: YesOption = False,
    keep_added: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option(
            "--keep-added/--remove-added",
            show_default=False,
            help="Whether to keep the machines that the removed machine added.",
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a machine from the household. To return, it must run `reset` and be paired again."""
    from app.api.responses import MachineResponse, RemoveMachineResponse
    from app.client import segment

    out, path = Output(as_json), f"/machines/{segment(machine)}"
    if not yes:  # asking for consent would be pointless if no machine has this name
        name = terminal_text.name(ask_node(home, lambda node: node.get(path, MachineResponse)).machine.name)
        out.confirm(f"Remove {name} from the household?", yes)
    added = "" if keep_added is None else f"?added={'keep' if keep_added else 'remove'}"
    answer = ask_node(home, lambda node: node.delete(path + added, RemoveMachineResponse))
    name = terminal_text.name(answer.removed.name)
    removed_too = ", ".join(map(terminal_text.name, answer.also_removed))
    also = f" Also removed: {removed_too}." if removed_too else ""
    out.result(answer, lambda: f"{name} is no longer part of the household.{also}")


def reset(yes: YesOption = False, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Leave the household: this machine gets a new identity and must be paired again."""
    from app.machine import running_node
    from app.machine.paths import Home
    from app.network import identity

    out, node_home = Output(as_json), Home.at(home)
    if running_node.read(node_home.runtime_file) is not None:
        raise Refused("reset_while_running", home=str(node_home.root))
    if not node_home.root.is_dir():
        raise BadInput("home_missing", home=str(node_home.root))
    out.confirm("Give this machine a new identity? All its pairings will be lost.", yes)
    asyncio.run(identity.reset(node_home))
    text = "This machine no longer belongs to a household. Its old identity is kept beside the new one."
    out.result({"reset": str(node_home.root)}, lambda: text)


def measure(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Measure the round-trip time and the speed of the links to all machines. This takes a few seconds per link."""
    out = Output(as_json)
    out.note_dim("Measuring the links…")
    from app.api.snapshot import LinkReports

    reports = ask_node(home, lambda node: node.post("/measure", answer=LinkReports))

    from app.cli.views.machines_view import links_view

    out.result(reports, lambda: links_view(reports.links))
