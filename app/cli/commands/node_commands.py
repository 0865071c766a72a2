"""The commands that run this computer's node, start it at sign-in, check it, and erase its data."""

from __future__ import annotations

import _thread
import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any, Optional

import typer

from app.cli import terminal_text
from app.cli.options import HomeOption, JsonOption, YesOption, new_home_note, read_size
from app.cli.output import Output
from app.core.errors import Refused
from app.core.ids import MAX_NAME_CHARACTERS
from app.core.reasons import said, size

Json = dict[str, Any]

NameOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--name", metavar="NAME", help="The name of this machine until it is renamed.", show_default=False),
]
PortOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--port",
        min=0,
        max=65535,
        metavar="P",
        help="The port for other machines; 0 means any free one.",
        show_default=False,
    ),
]
LendOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--lend",
        metavar="2GiB",
        help="The most memory that others may use in this run; 0 means none. Your own models may use more.",
        show_default=False,
    ),
]
LimitOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--limit",
        metavar="4GiB",
        help="The most memory that all models here may use together in this run, yours and others'; 0 means no limit.",
        show_default=False,
    ),
]
BindOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--bind",
        metavar="ADDR",
        help="Listen for other machines of the household only on this address. The server for phones and programs on "
        "the network is not affected: --interface chooses its networks.",
        show_default=False,
    ),
]
DiscoveryOption = Annotated[
    bool, typer.Option("--discovery/--no-discovery", help="Whether to find machines of the household automatically.")
]
InterfaceOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--interface",
        metavar="NAME",
        help="Also use this network interface, such as a VPN. May be repeated.",
        show_default=False,
    ),
]


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
        typer.Option(
            "--threads",
            min=1,
            help="Threads of each worker; by default, the fastest number is found by trial.",
            show_default=False,
        ),
    ] = None,
    stop_with_stdin: Annotated[bool, typer.Option("--stop-with-stdin", hidden=True)] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the node of this machine until Ctrl-C. Programs receive one line of JSON when it is ready."""
    lend_bytes = read_size(lend) if lend else None
    if name is not None and (len(name) > MAX_NAME_CHARACTERS or not name.isprintable()):
        raise typer.BadParameter(f"A machine's name is one line of at most {MAX_NAME_CHARACTERS} characters.")

    with without_gc():
        from app.machine.paths import Home
        from app.machine.settings import NodeOptions
        from app.node.start import print_ready, run

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
    if note := new_home_note(home):
        Home.at(home).create()
        Output(as_json).note(note)
    if stop_with_stdin:
        _stop_when_stdin_ends()
    to_a_person = not (stop_with_stdin or as_json) and sys.stdout.isatty()
    run(options, _print_ready if to_a_person else print_ready)


@contextmanager
def without_gc() -> Iterator[None]:
    """Disable garbage collection during imports, and exempt the imported modules from later collections.

    Modules are never garbage. Without collections, a node's 900 modules load in about 90 % of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
        gc.freeze()


def _print_ready(facts: dict[str, Any]) -> None:
    next_steps = (
        "To see its status, run `poolhouse status` in another terminal. To add a computer, run `poolhouse pair "
        "--open`, which shows a code and an address. Enter both with `poolhouse pair ADDRESS` on that computer, or "
        "under “Join a household” in its window."
    )
    name = terminal_text.line(facts["name"])
    sys.stdout.write(f"{name} is ready. {terminal_text.with_home(next_steps)} Ctrl-C stops the node.\n")
    sys.stdout.flush()


def _stop_when_stdin_ends() -> None:
    """Stop the node, as Ctrl-C does, once the parent process has exited.

    Only the end of stdin shows this on every operating system.
    """

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):  # not sys.stdin itself: Python aborts if its buffer is locked at exit
            pass
        _thread.interrupt_main(signal.SIGINT)

    threading.Thread(target=watch, name="parent watcher", daemon=True).start()


START_NOW = "To start it now: systemctl --user daemon-reload && systemctl --user start poolhouse"
WITHOUT_SIGN_IN = "To run it while nobody is signed in: loginctl enable-linger"
STOP_NOW = "A running node keeps running. To stop it: systemctl --user stop poolhouse"


class AutostartAction(StrEnum):
    """The actions of `autostart`."""

    ON = "on"
    OFF = "off"


def autostart(
    action: Annotated[
        Optional[AutostartAction],  # noqa: UP045
        typer.Argument(metavar="[on|off]", show_default=False, help="Without it, the current state is shown."),
    ] = None,
    headless: Annotated[
        bool, typer.Option("--headless", help="Start a node without a window, as a systemd unit (Linux).")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show or change whether Poolhouse starts when you sign in."""
    from app.machine import autostart as system
    from app.machine.paths import Home

    entry = system.user_unit() if headless else system.system_entry()
    if action is None:
        entry_state = system.state(entry)
    else:
        if action is AutostartAction.ON and (note := new_home_note(home)):
            Output(as_json).note(note)
        entry_state = system.set_enabled(action is AutostartAction.ON, Home.at(home), entry, headless=headless)
    answer: Json = {"on": entry_state.on, "where": entry_state.where, "headless": headless}
    unit = system.state(system.user_unit()) if sys.platform.startswith("linux") and not headless else None
    unit_file = unit.where if unit is not None and unit.on else None
    Output(as_json).result(answer, lambda: "\n".join(_autostart_lines(answer, action, unit_file)))


def _autostart_lines(answer: Json, action: AutostartAction | None, unit_file: str | None) -> list[str]:
    """Return lines that describe the requested autostart entry. If `unit_file` is set, that file also starts a node
    without a window."""
    on, where = answer["on"], answer["where"]
    if not answer["headless"]:
        program = "Poolhouse's window" if unit_file else "Poolhouse"
        words = f"Poolhouse starts at sign-in, showing only its tray icon ({where})."
        lines = [words if on else f"{program} does not start at sign-in."]
        if unit_file:
            lines.append(f"A node without a window starts at sign-in ({unit_file}). --headless shows and changes it.")
        return lines
    if on:
        return [f"A node starts at sign-in ({where}).", WITHOUT_SIGN_IN, *([START_NOW] if action else [])]
    return ["No node starts automatically.", *([STOP_NOW] if action else [])]


def doctor(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Check this machine. Works with or without a running node."""
    from app.cli.doctor import all_checks, checks_json, checks_view
    from app.machine.paths import Home

    checks = asyncio.run(all_checks(Home.at(home)))
    report = checks_json(checks)
    Output(as_json).result(report, lambda: checks_view(checks))
    if not report["ok"]:
        raise typer.Exit(1)


KeepOption = Annotated[
    bool, typer.Option("--keep-other-folders", help="Keep models in folders outside Poolhouse's own.")
]


def erase(
    yes: YesOption = False, keep_other_folders: KeepOption = False, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Delete Poolhouse's data on this computer: identity, models, chats, settings and keys.

    Do this before you remove the app. The exit code is 1 if something could not be deleted.
    """
    from app.machine import running_node, uninstall
    from app.machine.paths import Home

    out, node_home = Output(as_json), Home.at(home)
    if running_node.read(node_home.runtime_file) is not None:
        raise Refused("erase_while_running", home=str(node_home.root))
    uninstall.require_own(node_home)  # asking for consent would be pointless if it is not a home
    out.confirm(f"Delete all models, chats, settings and keys in {node_home.root}? They cannot be restored.", yes)
    erased = asyncio.run(uninstall.erase(node_home, keep_other_folders=keep_other_folders))
    left = [said(reason) for reason in erased.left]
    text = "\n".join([f"{size(erased.n_bytes)} deleted in {node_home.root}.", *left])
    out.result({"erased": str(node_home.root), "bytes": erased.n_bytes, "left": left}, lambda: text)
    if left:
        raise typer.Exit(1)
