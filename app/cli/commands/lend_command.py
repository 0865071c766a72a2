"""`poolhouse lend`: what this machine lends, when, and pauses by hand."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption, read_duration, read_size
from app.cli.output import Face
from app.core.errors import BadInput, Reason

if TYPE_CHECKING:
    from app.api.lending import LendingState

Json = dict[str, Any]
Text = Optional[str]  # noqa: UP045  typer reads it at run time
Names = Optional[list[str]]  # noqa: UP045
MOST_DRAIN_SECONDS = 600.0  # as the node has it
MOST_DIGITS = 6  # of Mbit/s
UNCHANGED = object()  # None means something for some rules


def _option(names: str, metavar: str, words: str) -> Any:
    return typer.Option(names, metavar=metavar, help=words, show_default=False)


TimeArgument = Annotated[Text, typer.Argument(metavar="[TIME]", help="With --pause: for how long, as 1h or 30m.")]
PauseOption = Annotated[bool, typer.Option("--pause", help="Lend nothing until --resume.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Lend again by the rules.")]
StopOption = Annotated[bool, typer.Option("--stop", help="Take all back at once, also from a running answer.")]
MemoryOption = Annotated[Text, _option("--memory", "4GiB", "Others at most so much; `off`, or `half`.")]
LimitOption = Annotated[
    Text, _option("--limit", "8GiB", "All models here at most so much, yours too; `off`: no limit.")
]
DeviceOption = Annotated[Names, _option("--device", "cpu", "Lend only this one, or `all`. May be repeated.")]
IdleOption = Annotated[Text, _option("--idle", "5m", "Only after so long unused; 0: always.")]
ScheduleOption = Annotated[Text, _option("--schedule", "HOURS", "As `mon-fri 18:00-08:00, sat, sun`, or `always`.")]
BatteryOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--battery",
        min=0,
        max=100,
        metavar="30",
        show_default=False,
        help="On battery only above so many percent; 100: never, 0: always.",
    ),
]
NotWithOption = Annotated[Names, _option("--not-with", "PROGRAM", "Not while this program runs. May be repeated.")]
WithOption = Annotated[Names, _option("--with", "PROGRAM", "Stop pausing for this program. May be repeated.")]
GpuOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--pause-for-gpu/--despite-gpu",
        show_default=False,
        help="Whether to pause while another program keeps the graphics card busy.",
    ),
]
ThreadsOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--threads",
        min=0,
        max=1024,
        metavar="4",
        show_default=False,
        help="Of the processor, for layers that are loaded from now on; 0: all.",
    ),
]
HeatOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--pause-for-heat/--despite-heat", show_default=False, help="Whether to pause while the processor is too hot."
    ),
]
HotOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--hot", min=50, max=105, metavar="90", show_default=False, help="From how many °C on the processor is too hot."
    ),
]
ScreenOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--pause-for-full-screen/--despite-full-screen",
        show_default=False,
        help="Whether to pause while a program fills the screen.",
    ),
]
NetworkOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--pause-on-metered/--despite-metered",
        show_default=False,
        help="Whether to pause on a VPN or a metered network.",
    ),
]
LinkOption = Annotated[Text, _option("--link", "50", "Use at most so many Mbit/s of the network, each way; or `off`.")]
DrainOption = Annotated[Text, _option("--drain", "30s", "How long a running answer may take to end.")]


def add_to(program: typer.Typer) -> None:
    program.command(rich_help_panel="Every day")(lend)


def lend(  # noqa: PLR0913  one for each option
    time: TimeArgument = None,
    pause: PauseOption = False,
    resume: ResumeOption = False,
    stop: StopOption = False,
    memory: MemoryOption = None,
    limit: LimitOption = None,
    device: DeviceOption = None,
    idle: IdleOption = None,
    schedule: ScheduleOption = None,
    battery: BatteryOption = None,
    not_with: NotWithOption = None,
    with_again: WithOption = None,
    gpu: GpuOption = None,
    drain: DrainOption = None,
    threads: ThreadsOption = None,
    heat: HeatOption = None,
    hot: HotOption = None,
    full_screen: ScreenOption = None,
    metered: NetworkOption = None,
    link: LinkOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what this machine lends and when, change it, pause it, or take all back. It holds at once."""
    step = _step(pause, resume, stop, time)
    changes: Json = {
        "memory_bytes": _memory(memory),
        "limit_bytes": _limit(limit),
        "devices": ([] if "all" in device else device) if device else UNCHANGED,
        "idle_s": UNCHANGED if idle is None else read_duration(idle),
        "hours": UNCHANGED if schedule is None else schedule,
        "battery_percent": UNCHANGED if battery is None else battery,
        "gpu": UNCHANGED if gpu is None else gpu,
        "drain_s": UNCHANGED if drain is None else _drain(drain),
        "threads": UNCHANGED if threads is None else threads,
        "hot": UNCHANGED if heat is None else heat,
        "hot_celsius": UNCHANGED if hot is None else hot,
        "screen": UNCHANGED if full_screen is None else full_screen,
        "network": UNCHANGED if metered is None else metered,
        "link_mbit": UNCHANGED if link is None else _megabits(link),
    }
    rules = {name: value for name, value in changes.items() if value is not UNCHANGED}
    state = _carried_out(home, rules, (not_with or [], with_again or []), step)

    from app.cli.views.lend_view import lend_view

    Face(as_json).result(state, lambda: lend_view(state))


def _drain(typed: str) -> float:
    seconds = read_duration(typed)
    if seconds > MOST_DRAIN_SECONDS:
        raise typer.BadParameter(f"An answer may take at most 10m to end, and '{typed}' is longer.")
    return seconds


def _memory(typed: str | None) -> object:
    """Bytes; None for half of what is free at start."""
    match typed and typed.strip().lower():
        case None:
            return UNCHANGED
        case "off":
            return 0
        case "half":
            return None
        case _:
            return read_size(typed or "")


def _limit(typed: str | None) -> object:
    """Bytes; 0 for none."""
    if typed is None:
        return UNCHANGED
    return 0 if typed.strip().lower() == "off" else read_size(typed)


def _megabits(typed: str) -> int:
    """A whole number, with its unit or without; 0 for no limit."""
    word = typed.strip().lower()
    number = "0" if word == "off" else word.removesuffix("mbit/s").rstrip()
    if not (number.isascii() and number.isdecimal() and len(number) <= MOST_DIGITS):
        raise typer.BadParameter(f"'{typed}' is no whole number of Mbit/s below a million. Write it like 50, or off.")
    return int(number)


def _meant(typed: str) -> str:
    """The options that a word alone could have meant: how much, how long, or both."""
    meanings = []
    for read, way in (
        (read_size, f"To lend so much, write --memory {typed}."),
        (read_duration, f"To pause so long, write --pause {typed}."),
    ):
        with suppress(typer.BadParameter):
            read(typed)
            meanings.append(way)
    return " ".join(meanings) or "`poolhouse lend --help` lists what can be written."


def _step(pause: bool, resume: bool, stop: bool, time: str | None) -> tuple[str, Json] | None:
    if sum((pause, resume, stop)) > 1:
        raise typer.BadParameter("Give one of --pause [TIME], --resume and --stop.")
    if time is not None and not pause:
        raise typer.BadParameter(f"What about '{time}'? {_meant(time)}")
    seconds = read_duration(time) if time else None
    if seconds == 0:
        raise typer.BadParameter("A pause needs a time, as 30m. Without one it lasts until --resume.")
    if stop:
        return "/lending/pause", {"at_once": True}
    if pause:
        return "/lending/pause", {"seconds": seconds} if seconds else {}
    return ("/lending/resume", {}) if resume else None


def _carried_out(
    home: Path | None, rules: Json, programs: tuple[Sequence[str], Sequence[str]], step: tuple[str, Json] | None
) -> LendingState:
    """Apply the changes, then the step; return the state of lending after them."""
    from app.api.lending import LendingState
    from app.client import NodeClient

    async def work(node: NodeClient) -> LendingState:
        state = await node.get("/lending", LendingState)
        if any(programs):
            rules["programs"] = _programs(state.rules.programs, *programs)
        if rules:
            state = await node.post("/lending", rules, answer=LendingState)
        return await node.post(*step, answer=LendingState) if step else state

    return ask_node(home, work)


def _programs(known: list[str], more: Sequence[str], fewer: Sequence[str]) -> list[str]:
    """Raises BadInput for a program that is to matter no more and never did."""
    gone = {name.casefold() for name in fewer}
    there = {name.casefold() for name in known}
    if strange := sorted(gone - there):
        raise BadInput("program_unknown", name=strange[0], there=", ".join(known) or Reason("none"))
    kept = [name for name in known if name.casefold() not in gone]
    return kept + [name for name in more if name.casefold() not in there]
