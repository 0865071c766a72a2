"""The household: pair a machine, list machines, remove one."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Optional

import typer

from app.cli import safe_text
from app.cli.confirmation import be_sure
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption, YesOption, read_code, read_name, read_new_name
from app.cli.output import Face
from app.core.errors import BadInput

PANEL = "Household"
HEAR_SECONDS, LOOK_SECONDS = 4.0, 0.2  # for an announcement; twice what discovery takes
MachineArgument = Annotated[
    str, typer.Argument(metavar="MACHINE", help="Its name, or at least six letters of its id.", parser=read_name)
]
EXAMPLES = {
    "rename": "For example: poolhouse rename attic-pc loft",
    "roles": "For example: poolhouse roles attic-pc --host --lender",
    "use_again": "For example: poolhouse use-again attic-pc",
    "remove": "For example: poolhouse remove attic-pc",
}
TRUST = (
    "Machines of a household can in principle work out what is typed "
    "from the numbers they process: pair only machines you trust."
)

GUEST = (
    "As a guest it may ask the models of your hosts, in turn with everybody else. It uses no other machine's memory, "
    "lends none, and cannot change the household. The host that answers works with what is typed there."
)

WITHOUT = {  # a role that it had: what was done by it
    "lender": "Layers that it held for others are given back; a model of which some lay there is loaded anew "
    "without it, or lost where it does not fit.",
    "host": "What it had loaded on other machines is unloaded there.",
}

IS_GUEST = (
    "This machine is a guest there: the hosts answer what is asked here, and work with what is typed. It uses no other "
    "machine's memory, lends none, and cannot change the household."
)

RENAMED = "Another machine there has the name of this one, which is called {name} from now on."


class RoleName(StrEnum):
    """The roles of a new machine."""

    LEND = "lend"
    GUEST = "guest"
    USE_AND_LEND = "use-and-lend"
    ADMIN = "admin"


def add_to(program: typer.Typer) -> None:
    for command in (pair, machines, rename, roles, use_again, remove, reset):
        program.command(rich_help_panel=PANEL, epilog=EXAMPLES.get(command.__name__))(command)


def pair(
    address: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help="The address the other machine shows, or its name; nothing: the only one nearby.", show_default=False
        ),
    ] = None,
    open_window: Annotated[
        bool, typer.Option("--open", help="Let one machine in: show a code and the address.")
    ] = False,
    code: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--code", help="The six digits the other machine shows.", show_default=False),
    ] = None,
    role: Annotated[
        RoleName, typer.Option("--role", help="What the new machine may do; guest: use models only.")
    ] = RoleName.USE_AND_LEND,
    close: Annotated[bool, typer.Option("--close", help="Call off what --open began; the code is void then.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="With --open --json: wait, then a second JSON line.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pair two machines: `--open` on one; on the other its ADDRESS, or its name when it is near."""
    if open_window and address is not None:
        raise typer.BadParameter("Give either --open, or the address another machine shows.")
    if open_window and code:
        raise typer.BadParameter("--open shows a code of its own. Give --code on the other machine.")
    if close and (open_window or address is not None or code):
        raise typer.BadParameter("--close stands alone.")
    face = Face(as_json)
    if close:
        ask_node(home, lambda node: node.delete("/pairing"))
        face.result({}, lambda: "Pairing is closed.")
    elif open_window:
        _let_in(face, home, role.value.replace("-", "_"), wait or not as_json)
    else:
        typed = read_code(code) if code else None
        place = address or _found_nearby(face, home)
        _join(face, home, place, typed or read_code(_typed_code(face)))


def _found_nearby(face: Face, home: Path | None) -> str:
    """The only machine nearby that lets others in; one that began just now may not be heard of yet."""
    from app.api.snapshot import Snapshot
    from app.cli.views.nearby_machines import only_open

    late = time.monotonic() + HEAR_SECONDS
    while True:
        snapshot = ask_node(home, lambda node: node.get("/status", Snapshot))
        try:
            stranger = only_open(snapshot)
            break
        except BadInput as error:
            if error.reason.code != "pairing_nobody_near" or time.monotonic() > late:
                raise
        time.sleep(LOOK_SECONDS)
    face.note(f"Pairing with {safe_text.name(stranger.name or stranger.id)} at {stranger.pairing_address}.")
    return stranger.id


def _typed_code(face: Face) -> str:
    if not face.is_live or not sys.stdin.isatty():
        raise typer.BadParameter("Give the code with --code 123456.")
    return str(typer.prompt("Code shown on the other machine"))


def _let_in(face: Face, home: Path | None, role: str, wait: bool) -> None:
    from app.cli.views.pairing_view import keep_open, opened

    window = ask_node(home, lambda node: opened(node, role))
    if face.as_json:
        face.json({"code": window.code, "address": window.address, "seconds": window.seconds})
    if not wait:
        return
    paired = ask_node(home, lambda node: keep_open(node, face, window))
    name = safe_text.name(paired.machine.name)
    about = GUEST if role == RoleName.GUEST else TRUST
    if face.as_json:
        face.json({"machine": {"id": paired.machine.id, "name": paired.machine.name}})
    else:
        face.show(f"Paired with {name}. {about}")


def _join(face: Face, home: Path | None, address: str, code: str) -> None:
    from app.api.answers import Joined

    body = {"address": address, "code": code}
    joined = ask_node(home, lambda node: node.post("/pairing/join", body, answer=Joined))
    about = IS_GUEST if joined.guest else TRUST
    called = f"{RENAMED.format(name=safe_text.name(joined.called))} " if joined.called else ""
    name = safe_text.name(joined.machine.name)
    face.result(joined, lambda: f"Paired with {name}. {called}{about}")


def machines(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the machines of the household."""
    from app.api.answers import Machines

    known = ask_node(home, lambda node: node.get("/machines", Machines))

    from rich.console import Group

    from app.cli.views.machines_view import MachinesView
    from app.cli.views.nearby_machines import nearby_view

    Face(as_json).result(known, lambda: Group(MachinesView(known.machines), *nearby_view(known.strangers)))


def rename(
    machine: MachineArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What everybody shall call it.", parser=read_new_name)],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a machine another name."""
    from app.api.answers import Renamed
    from app.client import segment

    path = f"/machines/{segment(machine)}/name"
    answer = ask_node(home, lambda node: node.post(path, {"name": name}, answer=Renamed))
    was, now = safe_text.name(answer.renamed.was), safe_text.name(answer.renamed.name)
    Face(as_json).result(answer, lambda: f"{was} is called {now} now.")


def roles(
    machine: MachineArgument,
    host: Annotated[bool, typer.Option("--host", help="May use others' memory.")] = False,
    lender: Annotated[bool, typer.Option("--lender", help="May lend its own.")] = False,
    guest: Annotated[
        bool,
        typer.Option(
            "--guest",
            help="Hosts answer it, and it uses nobody's memory; not with --host. What it has loaded on other "
            "machines is unloaded.",
        ),
    ] = False,
    admin: Annotated[
        bool, typer.Option("--admin", help="May also change the household; ends by removal only.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a machine may do from now on: all that is given here, and nothing else.

    What it did by a role that it loses ends at once.
    """
    from app.api.answers import RolesSet
    from app.client import segment

    options = {"admin": admin, "host": host, "lender": lender, "guest": guest}
    chosen = [role for role, is_on in options.items() if is_on]
    if not chosen:
        raise typer.BadParameter("Give at least one of --host, --lender, --guest and --admin.")
    path = f"/machines/{segment(machine)}/roles"
    answer = ask_node(home, lambda node: node.post(path, {"roles": chosen}, answer=RolesSet))
    name = safe_text.name(answer.machine.name)
    has = [safe_text.line(role) for role in answer.machine.roles]
    ends = [f" {words}" for role, words in WITHOUT.items() if role not in has]
    Face(as_json).result(answer, lambda: f"{name} is {' and '.join(has)} now.{''.join(ends)}")


def use_again(machine: MachineArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Give layers again to a machine that gave wrong numbers in a check."""
    from app.api.answers import UsedAgain
    from app.client import segment

    path = f"/machines/{segment(machine)}/use-again"
    answer = ask_node(home, lambda node: node.post(path, answer=UsedAgain))
    name = safe_text.name(answer.used_again.name)
    Face(as_json).result(answer, lambda: f"{name} is used again.")


def remove(
    machine: MachineArgument,
    yes: YesOption = False,
    keep_added: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option("--keep-added/--remove-added", show_default=False, help="What becomes of machines that it added."),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a machine from the household. It comes back only after `reset` there and pairing again."""
    from app.api.answers import MachineAnswer, Removed
    from app.client import segment

    face, path = Face(as_json), f"/machines/{segment(machine)}"
    if not yes:  # a name that means no machine needs no consent
        name = safe_text.name(ask_node(home, lambda node: node.get(path, MachineAnswer)).machine.name)
        be_sure(face, f"Remove {name} from the household?", yes)
    added = "" if keep_added is None else f"?added={'keep' if keep_added else 'remove'}"
    answer = ask_node(home, lambda node: node.delete(path + added, Removed))
    name = safe_text.name(answer.removed.name)
    removed_too = ", ".join(map(safe_text.name, answer.also_removed))
    also = f" With it went {removed_too}." if removed_too else ""
    face.result(answer, lambda: f"{name} is no longer part of the household.{also}")


def reset(yes: YesOption = False, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Leave the household: this machine gets a new identity and must be paired again."""
    import asyncio

    from app.core.errors import BadInput, Refused
    from app.machine import running_node
    from app.machine.paths import Home
    from app.network import identity

    face, own = Face(as_json), Home.at(home)
    if running_node.read(own.runtime_file) is not None:
        raise Refused("reset_while_running", home=str(own.root))
    if not own.root.is_dir():
        raise BadInput("home_missing", home=str(own.root))
    be_sure(face, "Give this machine a new identity? Every pairing is lost.", yes)
    asyncio.run(identity.reset(own))
    text = "This machine belongs to no household now. Its old identity is kept beside the new one."
    face.result({"reset": str(own.root)}, lambda: text)
