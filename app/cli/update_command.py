"""The command `poolhouse update`, which installs a newer version or goes back to the one before.

It works without a running node, because a version whose node does not start must be replaceable too.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from app import __version__, launcher
from app.cli import terminal_text
from app.cli.node_calls import Stopped, ask_node
from app.cli.options import HomeOption, JsonOption, YesOption, read_folder
from app.cli.output import Output
from app.core.errors import BadInput, Unreachable
from app.core.reasons import size

if TYPE_CHECKING:
    from app.api.computer import AskedMachines, Updates
    from app.machine.paths import Home
    from app.node.updates.release import Release
    from app.node.updates.sources import Source
    from app.node.updates.updater import Offer, Updater

RESTART = "Restart Poolhouse to use it: `poolhouse update --restart`."
ASKED = {"asked": "asked on its screen", "settled": "already updated, or declined by its owner"}


def update(
    check: Annotated[bool, typer.Option("--check", help="Only check whether there is a newer version.")] = False,
    source: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="Install from this folder or USB stick instead of the internet.",
            parser=read_folder,
            show_default=False,
        ),
    ] = None,
    rollback: Annotated[bool, typer.Option("--rollback", help="Go back to the previous version.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Restart the running node with the installed version.")
    ] = False,
    everywhere: Annotated[
        bool, typer.Option("--all", help="Ask the owners of all connected machines to update, on their own screens.")
    ] = False,
    yes: YesOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Install a newer version of Poolhouse. Your household, chats and models are kept."""
    from app.machine.paths import Home
    from app.machine.uninstall import VERSIONS
    from app.machine.versions.version_store import VersionStore
    from app.node.updates.updater import Build, Updater

    out, node_home = Output(as_json), Home.at(home)
    if restart:
        state = asyncio.run(_restart(node_home))
        out.result(state, lambda: f"Poolhouse {terminal_text.line(state.ready or '')} starts now.")
        return
    if everywhere:
        from app.api.computer import AskedMachines

        answer = ask_node(home, lambda node: node.post("/updates/ask", answer=AskedMachines))
        out.result(answer, lambda: _asked_words(answer))
        return
    updater = Updater(Build.of_this_copy(), VersionStore.of_this_process(), node_home.root / VERSIONS)
    if rollback:
        version = updater.roll_back()
        words = f"Poolhouse {version} will be used from the next start. {terminal_text.with_home(RESTART)}"
        out.result({"version": version}, lambda: words)
        return
    _install(updater, node_home, source, out, check=check, yes=yes)


def _asked_words(answer: AskedMachines) -> str:
    """Return who is asked to update, who need not be, and which machines must be updated by hand."""
    lines = [
        f"{terminal_text.name(machine.name)}: {ASKED.get(machine.answer, 'update it by hand')}"
        for machine in answer.machines
    ]
    return "\n".join(lines) or "No other machine is connected."


async def _restart(home: Home) -> Updates:
    """Restart the node, which is of an older version than this command once an update is installed."""
    from app.api.computer import Updates
    from app.client import NodeClient

    async with NodeClient(home, any_version=True) as node:
        return await node.post("/updates/restart", answer=Updates)


def _install(updater: Updater, home: Home, folder: Path | None, out: Output, *, check: bool, yes: bool) -> None:
    from app.node.updates.sources import FolderSource

    place: Source | None = FolderSource(folder.expanduser().absolute()) if folder else updater.build.source()
    if place is None:
        raise BadInput("updates_no_place")
    offer = _find(updater, home, place, is_contact=folder is None)
    ready = updater.store.next_version() if updater.store else ""
    if offer is None or not launcher.is_newer(offer.release.version, max(__version__, ready, key=launcher.parts_of)):
        newest = offer.release.version if offer else None
        out.result({"version": newest, "newer": False}, lambda: _newest_words(ready))
        return
    release = offer.release
    facts = {
        "version": release.version,
        "newer": True,
        "download_bytes": offer.download_bytes,
        "staged": offer.is_staged,
    }
    words = f"Poolhouse {release.version} is available ({size(offer.download_bytes)} to download)."
    if offer.is_staged:
        words += " It is being released gradually. This computer gets it a little later."
    if warning := _warning(home, release):
        facts["warning"] = warning
        words += f" {terminal_text.line(warning)}"
    if check:
        out.result(facts, lambda: words)
        return
    if (obstacle := updater.obstacle()) is not None:
        raise obstacle
    if not out.as_json:
        out.note(words)
    out.confirm(f"Install Poolhouse {release.version}?", yes)
    _fetch(updater, offer, out)
    done = f"Poolhouse {release.version} is installed. {terminal_text.with_home(RESTART)}"
    out.result(facts | {"installed": True}, lambda: done)


def _find(updater: Updater, home: Home, source: Source, *, is_contact: bool) -> Offer | None:
    """Return what a source offers, and save it for the window, which lists the last contact."""
    import msgspec

    from app.network.identity import own_id
    from app.node.updates.check_record import FILE, read_record, write_record

    file = home.root / FILE
    record = read_record(file)
    if is_contact:
        record = msgspec.structs.replace(record, last_contact=time.time())
    offer = updater.find(source, own_id(home) if is_contact else "")
    if is_contact and home.root.is_dir():  # what is on a stick is no news for the window
        with contextlib.suppress(OSError):
            write_record(file, record.with_offer(offer))
    return offer


def _newest_words(ready: str) -> str:
    """Return that there is nothing to install. ready: the version that the next start uses, or ""."""
    if launcher.is_newer(ready, __version__):
        return f"Poolhouse {ready} is installed. {terminal_text.with_home(RESTART)}"
    return f"You have the newest version, {__version__}."


def _warning(home: Home, release: Release) -> str | None:
    """Return which machines this release would not understand, if a node runs that knows them."""
    from app.api.computer import Updates
    from app.core.reasons import sentence
    from app.node.updates.release import not_understanding, warning

    with contextlib.suppress(Unreachable):
        state: Updates = ask_node(home.root, lambda node: node.get("/updates", Updates))
        return sentence(warning(not_understanding(release, state.protocols), release.version))
    return None


def _fetch(updater: Updater, offer: Offer, out: Output) -> None:
    from app.api.plans import Progress
    from app.cli.progress import show_progress

    with show_progress(out) as show:

        def tell(done: int, total: int) -> None:
            show(Progress("downloading", None, done, total, "bytes"))

        try:
            updater.install(offer, tell)
        except KeyboardInterrupt:
            raise Stopped("update_stopped") from None
