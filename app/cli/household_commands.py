"""The household: pair a machine, list machines, remove one."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Optional

import typer

from app.cli import safe_text
from app.cli.asking import ask_node
from app.cli.face import Face
from app.cli.options import HomeOption, JsonOption, YesOption, read_code

PANEL = "Household"
TRUST = (
    "Machines of a household can in principle work out what is typed "
    "from the numbers they process: pair only machines you trust."
)


class RoleName(StrEnum):
    """What a new machine may do."""

    LEND = "lend"
    USE_AND_LEND = "use-and-lend"
    ADMIN = "admin"


def add_to(program: typer.Typer) -> None:
    for command in (pair, machines, remove, reset):
        program.command(rich_help_panel=PANEL)(command)


def pair(
    address: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(help="The address the other machine shows.", show_default=False),
    ] = None,
    open_window: Annotated[
        bool, typer.Option("--open", help="Let one machine in: show a code and the address.")
    ] = False,
    code: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--code", help="The six digits the other machine shows.", show_default=False),
    ] = None,
    role: Annotated[
        RoleName, typer.Option("--role", help="What the new machine may do.")
    ] = RoleName.USE_AND_LEND,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="With --open --json: wait, then a second JSON line."),
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pair two machines: `--open` on one of them, ADDRESS and the code on the other."""
    if open_window == (address is not None):
        raise typer.BadParameter("Give either --open, or the address another machine shows.")
    face = Face(as_json)
    if address is None:
        _let_in(face, home, role.value.replace("-", "_"), wait or not as_json)
    else:
        _join(face, home, address, read_code(code or _typed_code(face)))


def _typed_code(face: Face) -> str:
    if not face.is_live or not sys.stdin.isatty():
        raise typer.BadParameter("Give the code with --code 123456.")
    return str(typer.prompt("Code shown on the other machine"))


def _let_in(face: Face, home: Path | None, role: str, wait: bool) -> None:
    from app.cli.pairing_window import keep_open, opened

    window = ask_node(home, lambda node: opened(node, role))
    if face.as_json:
        face.json({"code": window.code, "address": window.address, "seconds": window.seconds})
    if not wait:
        return
    paired = ask_node(home, lambda node: keep_open(node, face, window))
    name = safe_text.name(paired.machine.name)
    if face.as_json:
        face.json({"machine": {"id": paired.machine.id, "name": paired.machine.name}})
    else:
        face.show(f"Paired with {name}. {TRUST}")


def _join(face: Face, home: Path | None, address: str, code: str) -> None:
    body = {"address": address, "code": code}
    answer = ask_node(home, lambda node: node.post("/pairing/join", body))

    from app.cli.pairing_window import PairedWith
    from app.cli.shapes import read

    paired = read(answer, PairedWith)
    face.result(answer, lambda: f"Paired with {safe_text.name(paired.machine.name)}. {TRUST}")


def machines(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the machines of the household."""
    answer = ask_node(home, lambda node: node.get("/machines"))

    from app.cli.machines_view import machines_view
    from app.cli.shapes import Machine, read

    Face(as_json).result(answer, lambda: machines_view(read(answer["machines"], list[Machine])))


def remove(
    machine: Annotated[str, typer.Argument(help="Its name, or the beginning of its id.")],
    yes: YesOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a machine from the household. It comes back only after `reset` there and pairing again."""
    from app.client import segment

    face = Face(as_json)
    if face.is_live and not yes:
        typer.confirm(f"Remove {safe_text.name(machine)} from the household?", abort=True)
    answer = ask_node(home, lambda node: node.delete(f"/machines/{segment(machine)}"))
    name = safe_text.name(str(answer.get("removed", {}).get("name", machine)))
    face.result(answer, lambda: f"{name} is no longer part of the household.")


def reset(yes: YesOption = False, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Leave the household: this machine gets a new identity and must be paired again."""
    import asyncio

    from app.core.errors import Refused
    from app.lan import identity
    from app.machine import runtime_file
    from app.machine.paths import Home

    face, own = Face(as_json), Home.at(home)
    if runtime_file.read(own.runtime_file) is not None:
        raise Refused("reset_while_running", home=str(own.root))
    if face.is_live and not yes:
        typer.confirm("Give this machine a new identity? Every pairing is lost.", abort=True)
    asyncio.run(identity.reset(own))
    text = "This machine belongs to no household now. Its old identity is kept beside the new one."
    face.result({"reset": str(own.root)}, lambda: text)
