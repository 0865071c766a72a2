"""The commands `poolhouse engine …`, which install and choose engine packs for graphics cards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from app.cli import terminal_text
from app.cli.commands.engine.engine_copy_commands import copy, export, offers
from app.cli.commands.engine.engine_install import INSTALLABLE, added_line, available_lines, install, uninstall
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption, YesOption, read_folder, read_name
from app.cli.output import Output
from app.cli.pack_calls import ask_packs
from app.core.errors import BadInput
from app.core.reasons import size

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.api.engine_packs import EnginePack, EnginePacks

EngineArgument = Annotated[str, typer.Argument(metavar="ENGINE", help="llama.cpp, pytorch or mlx.", parser=read_name)]
EngineFolderArgument = Annotated[
    Optional[Path],  # noqa: UP045  typer reads it at run time
    typer.Argument(metavar="[FOLDER]", help="The folder that the engine is in.", parser=read_folder),
]
IfFasterOption = Annotated[
    bool, typer.Option("--if-faster", help="Use it only for models that it computes faster than llama.cpp.")
]
PackArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A pack listed by `poolhouse engine list`.", parser=read_name)
]
FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="The .tar.gz file or the folder of a pack; or pytorch, or mlx.", parser=read_folder
    ),
]
WheelsOption = Annotated[
    Optional[Path],  # noqa: UP045  typer reads it at run time
    typer.Option(
        metavar="FOLDER",
        help="Install PyTorch or MLX from the wheels in this folder.",
        parser=read_folder,
        show_default=False,
    ),
]
BackendArgument = Annotated[
    str, typer.Argument(metavar="BACKEND", help="The kind of pack, such as vulkan or metal.", parser=read_name)
]
TestedArgument = Annotated[
    Optional[str],  # noqa: UP045  typer reads it at run time
    typer.Argument(
        metavar="[BACKEND]", help="The kind of pack, such as vulkan (default: all packs in use).", show_default=False
    ),
]
KINDS = {"gpu": "memory of its own", "igpu": "shared memory", "accelerator": "accelerator", "cpu": "processor"}


def engine_group() -> typer.Typer:
    commands = typer.Typer(
        name="engine", help="Install and choose engine packs, which compute on graphics cards.", no_args_is_help=True
    )
    commands.command("list")(list_packs)
    for command in (add, use, rollback, remove):
        commands.command(command.__name__)(command)
    commands.command("test")(check_packs)
    commands.command("prefer")(prefer)
    commands.command("offers")(offers)
    commands.command("copy")(copy)
    commands.command("export")(export)
    return commands


def list_packs(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the installed engine packs."""
    packs = _listed(home)
    Output(as_json).result(packs, lambda: _view(packs))


def _listed(home: Path | None) -> EnginePacks:
    from app.api.engine_packs import EnginePacks

    return ask_packs(home, lambda node: node.get("/engines", EnginePacks), lambda service: service.packs())


def add(
    file: FileArgument,
    wheels: WheelsOption = None,
    yes: YesOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Install and test an engine pack. If it passes the test, it is used from then on.

    `poolhouse engine add pytorch` or `mlx` downloads that engine instead, and uses it where llama.cpp computed before.
    """
    from app.api.engine_packs import EnginePacks

    if (engine := str(file).casefold()) in INSTALLABLE and not file.exists():
        install(engine, wheels, yes, home, as_json)
        return
    order = {"path": str(file.expanduser().absolute())}
    _show(
        ask_packs(
            home,
            lambda node: node.post("/engines", order, answer=EnginePacks),
            lambda service: service.add(order["path"]),
        ),
        as_json,
    )


def use(name: PackArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Test an installed engine pack and use it from now on."""
    from app.api.engine_packs import EnginePacks
    from app.client import segment

    path = f"/engines/{segment(name)}/use"
    _show(ask_packs(home, lambda node: node.post(path, answer=EnginePacks), lambda service: service.use(name)), as_json)


def rollback(backend: BackendArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Go back to the engine pack that was used before the current one."""
    from app.api.engine_packs import EnginePacks

    order = {"backend": backend}
    _show(
        ask_packs(
            home,
            lambda node: node.post("/engines/rollback", order, answer=EnginePacks),
            lambda service: service.roll_back(backend),
        ),
        as_json,
    )


def remove(name: PackArgument, yes: YesOption = False, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Delete an engine pack, or pytorch or mlx."""
    from app.api.engine_packs import EnginePacks
    from app.client import segment

    if name.casefold() in INSTALLABLE:
        uninstall(name.casefold(), yes, home, as_json)
        return
    output = Output(as_json)
    follows = "".join(f"{terminal_text.line(words)} " for words in _removals(_listed(home).packs, name))
    output.confirm(f"{follows}Delete the engine pack {terminal_text.name(name)}?", yes)
    path = f"/engines/{segment(name)}"
    packs = ask_packs(home, lambda node: node.delete(path, EnginePacks), lambda service: service.remove(name))
    output.result(packs, f"{terminal_text.line(packs.changed[0])} was deleted. {follows}".rstrip)


def prefer(
    engine: EngineArgument,
    folder: EngineFolderArgument = None,
    if_faster: IfFasterOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose the engine that computes on this computer: llama.cpp, PyTorch or MLX.

    Poolhouse brings llama.cpp, which computes whatever the other engine cannot. Models that are loaded already stay
    as they are until they are loaded again. `poolhouse engine add` installs PyTorch or MLX; give a FOLDER if you
    installed it yourself, such as with `pip install --target FOLDER torch==2.13.0`.
    """
    from app.api.engine_packs import EnginePacks

    names = {"llama.cpp": "llamacpp", "llamacpp": "llamacpp", "pytorch": "pytorch", "mlx": "mlx"}
    if engine.casefold() not in names:
        raise BadInput("engine_unknown", engine=engine)
    name = names[engine.casefold()]
    place = str(folder.expanduser().absolute()) if folder else ""
    order = {"engine": name, "folder": place, "if_faster": if_faster}
    packs = ask_node(home, lambda node: node.post("/engines/prefer", order, answer=EnginePacks))
    added = packs.added
    Output(as_json).result(packs, lambda: "llama.cpp computes here." if added is None else added_line(added))
    if added is not None and not added.used:
        raise typer.Exit(1)


def check_packs(backend: TestedArgument = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Check the files of the engine packs in use, and list the devices that they detect."""
    from app.api.engine_packs import EnginePacks

    order = {"backend": backend}
    _show(
        ask_packs(
            home,
            lambda node: node.post("/engines/test", order, answer=EnginePacks),
            lambda service: service.test(backend or ""),
        ),
        as_json,
    )


def _show(packs: EnginePacks, as_json: bool) -> None:
    """Show the packs that a command concerned. The exit code is 1 if one of them cannot be used."""
    changed = [pack for pack in packs.packs if pack.name in packs.changed]
    Output(as_json).result(packs, lambda: _lines_of(changed, []))
    if any(pack.problem for pack in changed):
        raise typer.Exit(1)


def _view(packs: EnginePacks) -> RenderableType:
    lines = [] if packs.added is None else [added_line(packs.added)]
    return _lines_of(packs.packs, [*lines, *available_lines(packs.available)])


def _lines_of(packs: list[EnginePack], engine_lines: list[str]) -> RenderableType:
    from rich.console import Group

    lines = [line for pack in packs for line in _lines(pack)]
    none = (
        "No engine pack is installed, so llama.cpp computes on the processor. `poolhouse engine add FILE` installs one."
    )
    return Group(*map(terminal_text.command_text, [*engine_lines, *(lines or [none])]))


def _lines(pack: EnginePack) -> list[str]:
    built = f", built on {pack.built}" if pack.built else ""
    amount = f", {size(pack.size_bytes)}" if pack.size_bytes else ""
    lines = [f"{terminal_text.line(pack.name)}{amount}{built}: {_state(pack)}."]
    if pack.problem:
        lines.append(f"  {terminal_text.line(pack.problem)}")
    if pack.idle:
        lines.append(f"  {terminal_text.line(pack.idle)}")
    if pack.lacks:
        lines.append(f"  It was built without {terminal_text.line('; '.join(pack.lacks))}.")
    for device in pack.devices:
        name = terminal_text.name(device.description or device.name)
        lines.append(f"  {name}: {size(device.total_bytes)}, {KINDS.get(device.kind, device.kind)}.")
    if pack.copied_from:
        lines.append(f"  Copied from {terminal_text.name(pack.copied_from)}.")
    if pack.sha256:
        lines.append(f"  Checksum {pack.sha256}")
    return lines


def _removals(packs: list[EnginePack], name: str) -> list[str]:
    """Return the consequences of removing the pack with this name, or nothing if they are unknown."""
    chosen = [pack for pack in packs if pack.name == name] or [pack for pack in packs if pack.name.startswith(name)]
    return [pack.removal for pack in chosen if pack.removal] if len(chosen) == 1 else []


def _state(pack: EnginePack) -> str:
    if pack.current:
        if pack.problem:
            return "not usable"
        return "selected, but not in use now" if pack.idle else "in use"
    if pack.problem:
        return "not used"
    return "previously used" if pack.previous else "not in use"
