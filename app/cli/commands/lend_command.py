"""The command `poolhouse lend`, which sets how much this machine lends and when, and pauses and resumes lending."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from app.cli import terminal_text
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption, read_duration, read_size
from app.cli.output import Output
from app.cli.terminal_text import duration
from app.core.errors import BadInput, Reason
from app.core.reasons import size

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.api.snapshot import Lending, LendingReadings, LendingRules, LendingState
    from app.core.lending.policy import Battery

Json = dict[str, Any]
Words = Optional[str]  # noqa: UP045  typer reads it at run time
Names = Optional[list[str]]  # noqa: UP045
MAX_DRAIN_SECONDS = 600.0  # the node's own limit
MAX_DIGITS = 6  # maximum digits of a rate in Mbit/s
CARD_CELSIUS = range(50, 111)  # the node's own limits
EXACT_BELOW_SECONDS = 600  # a pause shorter than this shows its end to the second
UNCHANGED = object()  # a marker, because None is a valid value of some rules


def _option(names: str, metavar: str, words: str) -> Any:
    return typer.Option(names, metavar=metavar, help=words, show_default=False)


TimeArgument = Annotated[Words, typer.Argument(metavar="[TIME]", help="How long to pause, such as 1h or 30m.")]
PauseOption = Annotated[bool, typer.Option("--pause", help="Lend nothing until --resume.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Lend again according to the rules.")]
StopOption = Annotated[bool, typer.Option("--stop", help="Take everything back at once, even from a running answer.")]
MemoryOption = Annotated[
    Words,
    _option("--memory", "4GiB", "The most memory that others may use: an amount, `half` of the free memory, or `off`."),
]
LimitOption = Annotated[
    Words,
    _option(
        "--limit",
        "8GiB",
        "The most memory that all models here may use together, including yours; `off` removes the limit.",
    ),
]
DeviceOption = Annotated[Names, _option("--device", "cpu", "Lend only this device, or `all`. May be repeated.")]
IdleOption = Annotated[
    Words, _option("--idle", "5m", "Lend only after this computer has been idle for this long; 0 means always.")
]
ScheduleOption = Annotated[
    Words, _option("--schedule", "HOURS", "When to lend, such as `mon-fri 18:00-08:00, sat, sun`, or `always`.")
]
BatteryOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--battery",
        min=0,
        max=100,
        metavar="30",
        show_default=False,
        help="On battery, lend only above this percentage; 100 means never, 0 always.",
    ),
]
NotWithOption = Annotated[
    Names, _option("--not-with", "PROGRAM", "Pause while this program is running. May be repeated.")
]
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
        help="Processor threads for layers loaded from now on; 0 means all.",
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
        "--hot",
        min=50,
        max=105,
        metavar="90",
        show_default=False,
        help="The temperature in °C from which the processor is too hot.",
    ),
]
CardHotOption = Annotated[
    Words,
    _option("--card-hot", "85", "Pause while a graphics card in use is at least this hot, in °C; `off` for never."),
]
ScreenOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--pause-for-full-screen/--despite-full-screen",
        show_default=False,
        help="Whether to pause while a program is full screen.",
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
LinkOption = Annotated[
    Words,
    _option(
        "--link",
        "50",
        "The most bandwidth that Poolhouse may use in each direction, in Mbit/s; `off` removes the limit.",
    ),
]
DrainOption = Annotated[Words, _option("--drain", "30s", "How long a running answer may take to finish.")]


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
    card_hot: CardHotOption = None,
    full_screen: ScreenOption = None,
    metered: NetworkOption = None,
    link: LinkOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show or change what this machine lends and when, pause lending, or take everything back.

    Changes take effect at once.
    """
    step = _pause_request(pause, resume, stop, time)
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
        "card_celsius": UNCHANGED if card_hot is None else _degrees(card_hot),
        "screen": UNCHANGED if full_screen is None else full_screen,
        "network": UNCHANGED if metered is None else metered,
        "link_mbit": UNCHANGED if link is None else _megabits(link),
    }
    rules = {name: value for name, value in changes.items() if value is not UNCHANGED}
    state = _apply(home, rules, (not_with or [], with_again or []), step)

    Output(as_json).result(state, lambda: lend_view(state))


def _drain(typed: str) -> float:
    seconds = read_duration(typed)
    if seconds > MAX_DRAIN_SECONDS:
        raise typer.BadParameter(f"An answer may take at most 10m to finish, but '{typed}' is longer.")
    return seconds


def _memory(typed: str | None) -> object:
    """Return the size in bytes. None stands for half of the memory that is free when the node starts."""
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
    """Return the limit in bytes. 0 means no limit."""
    if typed is None:
        return UNCHANGED
    return 0 if typed.strip().lower() == "off" else read_size(typed)


def _megabits(typed: str) -> int:
    """Parse a whole number, with or without its unit, or `off`, which is returned as 0."""
    word = typed.strip().lower()
    number = "0" if word == "off" else word.removesuffix("mbit/s").rstrip()
    if not (number.isascii() and number.isdecimal() and len(number) <= MAX_DIGITS):
        raise typer.BadParameter(
            f"'{typed}' is not a whole number of Mbit/s below a million. Write it like 50, or off."
        )
    return int(number)


def _degrees(typed: str) -> int:
    """Parse a whole number, with or without its unit, or `off`, which is returned as 0."""
    word = typed.strip().lower()
    number = "0" if word == "off" else word.removesuffix("c").removesuffix("°").rstrip()
    known = number.isascii() and number.isdecimal() and len(number) <= MAX_DIGITS
    if not known or int(number) not in (0, *CARD_CELSIUS):
        raise typer.BadParameter(
            f"'{typed}' is not a whole number of degrees from {CARD_CELSIUS[0]} to {CARD_CELSIUS[-1]}. "
            "Write it like 85, or off."
        )
    return int(number)


def _suggestion(typed: str) -> str:
    """Return advice for a word without an option, which may have been meant as an amount, a time, or both."""
    meanings = []
    for read, advice in (
        (read_size, f"To lend that much, write --memory {typed}."),
        (read_duration, f"To pause for that long, write --pause {typed}."),
    ):
        with suppress(typer.BadParameter):
            read(typed)
            meanings.append(advice)
    return " ".join(meanings) or "`poolhouse lend --help` lists the options."


def _pause_request(pause: bool, resume: bool, stop: bool, time: str | None) -> tuple[str, Json] | None:
    if sum((pause, resume, stop)) > 1:
        raise typer.BadParameter("Give only one of --pause [TIME], --resume and --stop.")
    if time is not None and not pause:
        raise typer.BadParameter(f"It is not clear what '{time}' is for. {_suggestion(time)}")
    seconds = read_duration(time) if time else None
    if seconds == 0:
        raise typer.BadParameter("The pause cannot be 0. Give a time such as 30m, or no time to pause until --resume.")
    if stop:
        return "/lending/pause", {"at_once": True}
    if pause:
        return "/lending/pause", {"seconds": seconds} if seconds else {}
    return ("/lending/resume", {}) if resume else None


def _apply(
    home: Path | None, rules: Json, programs: tuple[Sequence[str], Sequence[str]], step: tuple[str, Json] | None
) -> LendingState:
    """Apply the changed rules, then the pause or resume. Return the resulting state of lending."""
    from app.api.snapshot import LendingState
    from app.client import NodeClient

    async def work(node: NodeClient) -> LendingState:
        state = await node.get("/lending", LendingState)
        if any(programs):
            rules["programs"] = _programs(state.rules.programs, *programs)
        if rules:
            state = await node.post("/lending", rules, answer=LendingState)
        return await node.post(*step, answer=LendingState) if step else state

    return ask_node(home, work)


def _programs(programs: list[str], more: Sequence[str], fewer: Sequence[str]) -> list[str]:
    """Return the programs that pause lending, after the changes. Raises BadInput if a program to remove is not on the
    list."""
    removed = {name.casefold() for name in fewer}
    current = {name.casefold() for name in programs}
    if unknown := sorted(removed - current):
        raise BadInput("program_unknown", name=unknown[0], there=", ".join(programs) or Reason("none"))
    remaining = [name for name in programs if name.casefold() not in removed]
    return remaining + [name for name in more if name.casefold() not in current]


def lend_view(shown: LendingState) -> RenderableType:
    """Show the state of lending within 80 columns."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from app.cli.views.machines_view import COLOR_OF_STATE

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, words in _rows(shown):
        table.add_row(name, words)
    lending = shown.lending
    color = COLOR_OF_STATE.get(lending.state, "default")
    return Group(terminal_text.command_text(headline(shown), f"bold {color}"), Text(), table)


def headline(shown: LendingState, now: dt.datetime | None = None) -> str:
    """Return the state of lending and its reason, in one sentence (UX.md 4)."""
    lending = shown.lending
    users = ", ".join(map(terminal_text.name, lending.used_by))
    why = terminal_text.line(lending.reason or "")
    match lending.state:
        case "working" | "lending":
            return f"Lending {size(lending.used_bytes)} to {users or 'another machine'}."
        case "ready":
            return f"Ready: others may use {size(lending.lent_bytes)}."
        case "draining":
            left = duration(lending.gives_back_in_s or 0)
            return f"Finishing answers for {users or 'others'}, which takes at most {left}. {_until(why, lending, now)}"
        case "paused":
            return _until(why, lending, now)
        case _:
            return why or "Lends nothing."


def _until(why: str, lending: Lending, now: dt.datetime | None) -> str:
    """Return the reason for a pause and, if known, when the pause ends."""
    if lending.resumes_in_s is None:
        return why or "Lends nothing."
    local = now or dt.datetime.now().astimezone()
    until = local + dt.timedelta(seconds=lending.resumes_in_s)
    clock = "%H:%M:%S" if lending.resumes_in_s < EXACT_BELOW_SECONDS else "%H:%M"
    return f"{why.rstrip('.')} until {until:{clock}}."


def _rows(shown: LendingState) -> list[tuple[str, str]]:
    rules, reads = shown.rules, shown.readings
    half = ""
    if rules.memory_bytes is None:
        is_limited = rules.limit_bytes and shown.most_bytes >= rules.limit_bytes
        half = " (the limit for all models)" if is_limited else " (half of the memory that was free at start)"
    memory = f"at most {size(shown.most_bytes)}{half}" if rules.on and shown.most_bytes else "nothing"
    if memory != "nothing":
        memory += f" for others{_fewer_now(shown)}"
    rows = [("Memory", memory)]
    own_bytes = shown.lending.own_bytes
    holds = f"; yours use {size(own_bytes)} now" if own_bytes else ""
    if shown.own_most_bytes:
        rows.append(("Own use", f"your own models may use {size(shown.own_most_bytes)} here{holds}"))
    if rules.limit_bytes:
        rows.append(("Limit", f"all models here may use at most {size(rules.limit_bytes)} together"))
    rows += [("Devices", ", ".join(rules.devices) or "all")]
    away = "lends even while this computer is in use"
    if rules.idle_s:
        reading = "not reported by this system"
        if reads.idle_s is not None:
            reading = f"now: {duration(reads.idle_s)}"
        away = f"lends after being idle for {duration(rules.idle_s)} ({reading})"
    rows += [("Idle", away), ("Hours", rules.hours)]
    rows += [("Battery", _battery(rules.battery_percent, reads.battery))]
    running = f" (running: {', '.join(reads.programs)})" if reads.programs else ""
    pauses = f"pauses while one of these runs: {', '.join(rules.programs)}" if rules.programs else "none pauses lending"
    rows += [("Programs", pauses + running)]
    card = "lends even while another program keeps it busy"
    if rules.gpu:
        busy = "unknown" if reads.gpu_percent is None else f"{reads.gpu_percent:.0f}%"
        card = f"pauses while another program keeps it busy (now: {busy})"
    rows += [("Graphics", card)]
    if rules.card_celsius:
        warm = "unknown" if reads.card_c is None else f"{reads.card_c:.0f} °C"
        rows += [("Card heat", f"pauses from {rules.card_celsius} °C of a card that computes (now: {warm})")]
    heat = "lends at any temperature"
    if rules.hot:
        warm = "unknown" if reads.hottest_c is None else f"{reads.hottest_c:.0f} °C"
        heat = f"pauses while the processor is above {rules.hot_celsius} °C (now: {warm})"
    rows += [("Heat", heat), ("Screen", _screen(rules, reads)), ("Network", _network(rules, reads))]
    if rules.link_mbit:
        rows += [("Link", f"uses at most {rules.link_mbit:,} Mbit/s of the network each way")]
    if rules.threads:
        rows += [("Threads", f"uses at most {rules.threads} threads of the processor")]
    rows += [("Answers", f"may take {duration(rules.drain_s)} to finish before a pause")]
    return [(name, terminal_text.line(words)) for name, words in rows]


def _fewer_now(shown: LendingState) -> str:
    """Explain why others can currently use less than the owner allows.

    Returns "" if they can use all of it, or nothing at all.
    """
    lending, limit = shown.lending, shown.rules.limit_bytes
    if not 0 < lending.lent_bytes < shown.most_bytes:
        return ""
    left = max(0, limit - lending.own_bytes) if limit else shown.most_bytes
    why = "the limit leaves no more" if left <= lending.lent_bytes else "no more is free"
    return f"; {size(lending.lent_bytes)} now, as {why}"


def _screen(rules: LendingRules, reads: LendingReadings) -> str:
    if not rules.screen:
        return "lends during full-screen programs"
    state = {True: "yes", False: "no", None: "unknown"}[reads.full_screen]
    return f"pauses while a program is full screen (now: {state})"


def _network(rules: LendingRules, reads: LendingReadings) -> str:
    if not rules.network:
        return "lends on any network"
    words = {"free": "neither", "metered": "metered", "vpn": "VPN"}
    return f"pauses on a VPN or a metered network (now: {words.get(reads.network or '', 'unknown')})"


def _battery(percent: int, reading: Battery | None) -> str:
    rule = f"on battery, lends only above {percent}%"
    if percent == 0:
        return "lends at any battery level"
    if percent == 100:
        rule = "lends only while plugged in"
    if reading is None:
        return f"{rule} (now: no battery)"
    power = "plugged in" if reading.plugged else "on battery"
    return f"{rule} (now: {reading.percent:.0f}%, {power})"
