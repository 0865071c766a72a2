"""`poolhouse node`: the node of this machine, in the foreground."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from typing import Annotated, Any, Optional

import typer

from app.cli import hints, safe_text
from app.cli.no_gc_import import unswept
from app.cli.options import HomeOption, JsonOption, read_size
from app.core.ids import MAX_NAME_CHARACTERS

NameOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--name", metavar="NAME", help="What others call this machine, until it is renamed.", show_default=False
    ),
]
PortOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--port", min=0, max=65535, metavar="P", help="For other machines; 0: any.", show_default=False),
]
LendOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--lend",
        metavar="2GiB",
        help="Memory that others may use at most, in this run; 0: none. Models of your own may take more.",
        show_default=False,
    ),
]
LimitOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--limit",
        metavar="4GiB",
        help="Memory that all models may take here, others' and your own together, in this run; 0: no limit.",
        show_default=False,
    ),
]
BindOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--bind", metavar="ADDR", help="Listen only there.", show_default=False),
]
DiscoveryOption = Annotated[
    bool, typer.Option("--discovery/--no-discovery", help="Find machines of the household by itself.")
]
InterfaceOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--interface",
        metavar="NAME",
        help="Use this network interface too, as of a VPN. May be repeated.",
        show_default=False,
    ),
]


def add_to(program: typer.Typer) -> None:
    program.command(rich_help_panel="Every day")(node)


def node(  # noqa: PLR0913  one for each option
    name: NameOption = None,
    port: PortOption = None,
    lend: LendOption = None,
    limit: LimitOption = None,
    bind: BindOption = None,
    discovery: DiscoveryOption = True,
    interface: InterfaceOption = None,
    threads: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--threads", min=1, help="Of each worker, always; else found by trying.", show_default=False),
    ] = None,
    stop_with_stdin: Annotated[bool, typer.Option("--stop-with-stdin", hidden=True)] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run this machine's node until Ctrl-C. To a program, one JSON line says when it is ready."""
    lend_bytes = read_size(lend) if lend else None
    if name is not None and (len(name) > MAX_NAME_CHARACTERS or not name.isprintable()):
        raise typer.BadParameter(f"A machine's name is one line of at most {MAX_NAME_CHARACTERS} characters.")

    with unswept():
        from app.machine.settings import NodeOptions
        from app.node.start import run, say_ready

    options = NodeOptions(
        home=home,
        name=name,
        port=port,
        lend_bytes=lend_bytes,
        limit_bytes=read_size(limit) if limit else None,
        discovery=discovery,
        interfaces=tuple(interface or ()),
        threads=threads,
        **({"bind": bind} if bind else {}),
    )
    if stop_with_stdin:
        _stop_when_stdin_ends()
    to_a_person = not (stop_with_stdin or as_json) and sys.stdout.isatty()
    run(options, _tell_ready if to_a_person else say_ready)


def _tell_ready(facts: dict[str, Any]) -> None:
    how = (
        "In another terminal: `poolhouse status` shows it; `poolhouse pair --open` shows a code and an address, "
        "and another computer joins with them: `poolhouse pair ADDRESS` there, or “Join a household” in its window."
    )
    name = safe_text.line(facts["name"])
    sys.stdout.write(f"{name} is ready. {hints.own(how)} Ctrl-C stops it.\n")
    sys.stdout.flush()


def _stop_when_stdin_ends() -> None:
    """End like Ctrl-C once whoever started us is gone: the one sign every system gives."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):  # not by its buffer: Python aborts if it is locked at the end
            pass
        _thread.interrupt_main(signal.SIGINT)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()
