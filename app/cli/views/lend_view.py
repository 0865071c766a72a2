"""View of this machine's lending: each rule with its present reading."""

from __future__ import annotations

import datetime as dt

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from app.api.lending import BatteryReading, Lending, LendingReadings, LendingRules, LendingState
from app.cli import hints, safe_text
from app.cli.views.amounts import duration, size
from app.cli.views.status_view import COLOR_OF_STATE

SECONDS_MATTER = 600  # of a pause: below this its end is told to the second


def lend_view(shown: LendingState) -> RenderableType:
    """All of `poolhouse lend`, 80 columns wide."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, words in _rows(shown):
        table.add_row(name, words)
    lending = shown.lending
    color = COLOR_OF_STATE.get(lending.state, "default")
    return Group(hints.text(headline(shown), f"bold {color}"), Text(), table)


def headline(shown: LendingState, now: dt.datetime | None = None) -> str:
    """Return the state of lending and its reason, in one sentence (UX.md 4)."""
    lending = shown.lending
    users = ", ".join(map(safe_text.name, lending.used_by))
    why = safe_text.line(lending.reason or "")
    match lending.state:
        case "working" | "lending":
            return f"Lending {size(lending.used_bytes)} to {users or 'another machine'}."
        case "ready":
            return f"Ready: others may use {size(lending.lent_bytes)}."
        case "draining":
            left = duration(lending.gives_back_in_s or 0)
            return f"Finishing what runs for {users or 'others'}, at most {left}. {_until(why, lending, now)}"
        case "paused":
            return _until(why, lending, now)
        case _:
            return why or "Lends nothing."


def _until(why: str, lending: Lending, now: dt.datetime | None) -> str:
    """The reason of a pause, with its end where it has one."""
    if lending.resumes_in_s is None:
        return why or "Lends nothing."
    local = now or dt.datetime.now().astimezone()
    until = local + dt.timedelta(seconds=lending.resumes_in_s)
    clock = "%H:%M:%S" if lending.resumes_in_s < SECONDS_MATTER else "%H:%M"
    return f"{why.rstrip('.')} until {until:{clock}}."


def _rows(shown: LendingState) -> list[tuple[str, str]]:
    rules, reads = shown.rules, shown.readings
    half = "" if rules.memory_bytes is not None else " (half of what was free at start)"
    memory = f"at most {size(shown.most_bytes)}{half}" if rules.on and shown.most_bytes else "nothing"
    if memory != "nothing":
        memory += f" for others{_fewer_now(shown)}"
    rows = [("Memory", memory)]
    own = shown.lending.own_bytes
    holds = f"; yours hold {size(own)} now" if own else ""
    if shown.own_most_bytes:
        rows.append(("Own use", f"models of yours may take {size(shown.own_most_bytes)} here{holds}"))
    if rules.limit_bytes:
        rows.append(("Limit", f"all models here together at most {size(rules.limit_bytes)}"))
    rows += [("Devices", ", ".join(rules.devices) or "all")]
    away = "while it is used, too"
    if rules.idle_s:
        seen = "nobody sits here, as far as it can tell"
        if reads.idle_s is not None:
            seen = f"now: {duration(reads.idle_s)}"
        away = f"after {duration(rules.idle_s)} unused ({seen})"
    rows += [("Owner", away), ("Hours", rules.hours)]
    rows += [("Battery", _battery(rules.battery_percent, reads.battery))]
    running = f" (running: {', '.join(reads.programs)})" if reads.programs else ""
    rows += [("Not with", (", ".join(rules.programs) or "no program named") + running)]
    card = "lends beside other programs"
    if rules.gpu:
        busy = "not told" if reads.gpu_percent is None else f"{reads.gpu_percent:.0f} %"
        card = f"pauses while another program keeps it busy (now: {busy})"
    rows += [("Graphics", card)]
    heat = "lends at any heat"
    if rules.hot:
        warm = "not told" if reads.hottest_c is None else f"{reads.hottest_c:.0f} °C"
        heat = f"pauses while the processor is above {rules.hot_celsius} °C (now: {warm})"
    rows += [("Heat", heat), ("Screen", _screen(rules, reads)), ("Network", _network(rules, reads))]
    if rules.link_mbit:
        rows += [("Link", f"at most {rules.link_mbit:,} Mbit/s of the network, each way")]
    if rules.threads:
        rows += [("Threads", f"at most {rules.threads} of the processor")]
    rows += [("Answers", f"may take {duration(rules.drain_s)} to end when it pauses")]
    return [(name, safe_text.line(words)) for name, words in rows]


def _fewer_now(shown: LendingState) -> str:
    """Why others may use less at this moment than the owner set; nothing where they may not."""
    lending, limit = shown.lending, shown.rules.limit_bytes
    if not 0 < lending.lent_bytes < shown.most_bytes:
        return ""
    left = max(0, limit - lending.own_bytes) if limit else shown.most_bytes
    why = "the limit leaves no more" if left <= lending.lent_bytes else "no more is free"
    return f"; {size(lending.lent_bytes)} now, as {why}"


def _screen(rules: LendingRules, reads: LendingReadings) -> str:
    if not rules.screen:
        return "lends beside full-screen programs"
    now = {True: "filled", False: "not filled", None: "not told"}[reads.full_screen]
    return f"pauses while a program fills it (now: {now})"


def _network(rules: LendingRules, reads: LendingReadings) -> str:
    if not rules.network:
        return "lends on any"
    words = {"free": "neither", "metered": "metered", "vpn": "VPN"}
    return f"pauses on a VPN or a metered one (now: {words.get(reads.network or '', 'not told')})"


def _battery(percent: int, reading: BatteryReading | None) -> str:
    rule = f"on battery only above {percent} %"
    if percent == 0:
        return "at any level"
    if percent == 100:
        rule = "only while it is plugged in"
    if reading is None:
        return f"{rule} (now: no battery)"
    power = "plugged in" if reading.plugged else "on battery"
    return f"{rule} (now: {reading.percent:.0f} %, {power})"
