"""Engine packs for and from other computers: offers of the household, copies over its links, and archives."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from app.cli import terminal_text
from app.cli.node_calls import Stopped, ask_node
from app.cli.options import HomeOption, JsonOption, YesOption, read_folder, read_name
from app.cli.output import Output
from app.cli.pack_calls import ask_packs
from app.core.errors import AppError, BadInput, Refused
from app.core.reasons import size

if TYPE_CHECKING:
    from app.api.engine_packs import EngineOffer, EnginePacks
    from app.cli.progress import ShowProgress
    from app.client import NodeClient

OfferArgument = Annotated[
    str, typer.Argument(metavar="PACK", help="A pack listed by `poolhouse engine offers`.", parser=read_name)
]
PackArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A pack listed by `poolhouse engine list`.", parser=read_name)
]
FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="The new .tar.gz file, for example on a USB stick.", parser=read_folder)
]
FromOption = Annotated[
    Optional[str],  # noqa: UP045  typer reads it at run time
    typer.Option("--from", metavar="MACHINE", help="The machine to copy from.", parser=read_name, show_default=False),
]
ChecksumOption = Annotated[
    Optional[str],  # noqa: UP045  typer reads it at run time
    typer.Option(
        metavar="HEX", help="Copy only the pack whose checksum begins with this.", parser=read_name, show_default=False
    ),
]
POLL_SECONDS = 0.3
FEWEST_DIGITS = 16  # of a checksum, so that nobody can make another pack that begins with them
NO_OFFERS = (
    "No connected machine offers an engine pack for this system. A machine offers its packs if `poolhouse share on` "
    "was run there."
)


def offers(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the engine packs that other machines in the household would give to this one."""
    from app.api.engine_packs import EngineOffers

    there = ask_node(home, lambda node: node.get("/engines/offers", EngineOffers))
    lines = [line for offer in there.offers for line in _lines(offer)] or [NO_OFFERS]
    Output(as_json).result(there, lambda: terminal_text.with_home("\n".join(lines)))


def copy(
    pack: OfferArgument,
    source: FromOption = None,
    checksum: ChecksumOption = None,
    yes: YesOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy an engine pack from another machine in the household, test it, and use it if it passes.

    With --yes, also give the machine and the checksum, so that only the pack that you know can be copied.
    """
    out = Output(as_json)
    if yes and (source is None or len(checksum or "") < FEWEST_DIGITS):
        raise BadInput("pack_copy_unnamed", digits=FEWEST_DIGITS)
    offer = ask_node(home, lambda node: _chosen(node, pack, source, (checksum or "").casefold()))
    machine = terminal_text.name(offer.name)
    came = f" {machine} copied it from {terminal_text.name(offer.copied_from)}." if offer.copied_from else ""
    out.confirm(
        f"{terminal_text.line(offer.pack)} ({size(offer.size_bytes)}) is a program that would run on this computer "
        f"with your permissions. It comes from {machine}, and Poolhouse can't check what it does.{came} "
        f"Its checksum is {offer.sha256}. Copy it from {machine} and use it?",
        yes,
    )
    from app.cli.progress import show_progress

    with show_progress(out) as show:
        packs = ask_node(home, lambda node: _copied(node, offer, show, out))
    done = packs.copy
    out.result(packs, lambda: terminal_text.with_home(f"{done.pack if done else offer.pack} is in use."))


def export(
    name: PackArgument, file: FileArgument, yes: YesOption = False, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Write an installed engine pack into a file, which `poolhouse engine add` installs on another computer."""
    out, place = Output(as_json), file.expanduser().absolute()
    if place.is_dir():
        place /= f"{name}.tar.gz"
    if place.exists():
        out.confirm(f"Replace {terminal_text.line(str(place))}?", yes)
    from app.api.engine_packs import EnginePacks
    from app.client import segment

    path, order = f"/engines/{segment(name)}/export", {"path": str(place), "replace": True}
    packs = ask_packs(
        home, lambda node: node.post(path, order, answer=EnginePacks), lambda service: service.export(name, place)
    )
    written = f"{terminal_text.line(packs.changed[0])} was written to {terminal_text.line(str(place))}"
    out.result(packs, lambda: terminal_text.with_home(f"{written} ({size(place.stat().st_size)})."))


async def _chosen(node: NodeClient, typed: str, source: str | None, checksum: str) -> EngineOffer:
    """Return the offer that the arguments identify. Raises BadInput or Refused."""
    from app.api.engine_packs import EngineOffers

    every = (await node.get("/engines/offers", EngineOffers)).offers
    meant = [
        offer
        for offer in every
        if (offer.pack.startswith(typed) or offer.sha256.startswith(typed))
        and offer.sha256.startswith(checksum)
        and (source is None or source.casefold() in (offer.name.casefold(), offer.machine))
    ]
    usable = [offer for offer in meant if offer.problem_facts is None]
    if not usable:
        problem = next((offer.problem_facts for offer in meant if offer.problem_facts), None)
        if problem is not None:
            raise Refused(problem.code, **problem.facts)
        raise BadInput("pack_not_offered", pack=typed[:64])
    if len({offer.sha256 for offer in usable}) > 1:
        raise BadInput("pack_offers_many", pack=typed[:64])
    return usable[0]


async def _copied(node: NodeClient, offer: EngineOffer, show: ShowProgress, out: Output) -> EnginePacks:
    """Copy a pack while showing the progress. Raises the error if it fails."""
    from app.api.engine_packs import EnginePacks
    from app.api.plans import Progress

    seen = ("machine", "sha256", "pack", "built", "size_bytes")  # all that the question has shown
    order = {name: getattr(offer, name) for name in seen}
    last_note = ""
    try:
        packs = await node.post("/engines/copy", order, answer=EnginePacks)
        while packs.copy is not None and not packs.copy.is_over:
            now = packs.copy
            if now.held_up and now.held_up != last_note:
                last_note = now.held_up
                out.note(terminal_text.line(last_note))
            if now.state == "testing":
                show(Progress("testing_card", None, 0, 1, ""))
            elif now.total_bytes:
                show(Progress("copying", None, now.done_bytes, now.total_bytes, "bytes"))
            await asyncio.sleep(POLL_SECONDS)
            packs = await node.get("/engines", EnginePacks)
    except asyncio.CancelledError:
        packs = await node.post("/engines/copy/cancel", answer=EnginePacks)
        if packs.copy is not None and packs.copy.state == "done":
            raise Stopped("pack_copy_used", pack=offer.pack) from None
    if packs.copy is None:  # the node was started again
        raise Stopped("pack_copy_interrupted", pack=offer.pack)
    if packs.copy.problem_facts is not None:
        raise AppError(packs.copy.problem_facts.code, **packs.copy.problem_facts.facts)
    if packs.copy.state == "canceled":
        raise Stopped("pack_copy_canceled", pack=offer.pack)
    return packs


def _lines(offer: EngineOffer) -> list[str]:
    """Return the lines about one offer."""
    built = f", built on {offer.built}" if offer.built else ""
    lines = [f"{terminal_text.line(offer.pack)} from {terminal_text.name(offer.name)}, {size(offer.size_bytes)}{built}"]
    if offer.problem:
        lines.append(f"  {terminal_text.line(offer.problem)}")
    elif offer.installed:
        lines.append("  This pack is already installed.")
    elif offer.here_bytes:
        lines.append(f"  {size(offer.here_bytes)} of it is already here, from a copy that was interrupted.")
    if offer.copied_from:
        lines.append(f"  Copied from {terminal_text.name(offer.copied_from)}.")
    lines.append(f"  Checksum {offer.sha256}")
    return lines
