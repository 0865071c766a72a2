"""What a machine or a link is called: states, roles, what carries a link, layers, memory."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale

from app.gui.look import formats
from app.gui.look.sentences import model_name
from app.gui.pool.machine_facts import Between, LinkFacts, MachineFacts, Run

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 24 * 3600
NOTICEABLE, BRAKE = 0.1, 0.3  # of a request's time
LEND, USE_AND_LEND, ADMIN, GUEST = "lend", "use_and_lend", "admin", "guest"
ROLES = {LEND: ("lender",), USE_AND_LEND: ("host", "lender"), GUEST: ("guest",), ADMIN: ("admin", "host", "lender")}


@dataclass(frozen=True, slots=True)
class Shown:
    """A word with its picture and its colour (a token of the theme)."""

    word: str
    icon: str
    colour: str


def state(machine: MachineFacts) -> Shown:
    """How a machine stands."""
    if machine.left_out:
        return Shown(_tr("Left out"), "left-out", "muted")
    return {
        "ready": Shown(_tr("Ready"), "check", "good"),
        "working": Shown(_tr("Working"), "activity", "accent"),
        "loaded": Shown(_tr("Loaded"), "models", "good"),
        "draining": Shown(_tr("Draining"), "pause", "warning"),
        "paused": Shown(_tr("Paused"), "pause", "warning"),
        "offline": Shown(_tr("Offline"), "tray-away", "muted"),
        "left_out": Shown(_tr("Left out"), "left-out", "muted"),
        "off": Shown(_tr("Lends nothing"), "left-out", "muted"),
        "guest": Shown(_tr("Guest"), "chat", "muted"),
        "user": Shown(_tr("Uses models"), "chat", "muted"),
    }.get(machine.state, Shown(machine.state, "info", "muted"))


def nameless() -> str:
    """A machine that is heard, and tells no name."""
    return _tr("A machine without a name")


def part(machine: MachineFacts) -> str:
    """What it is for us: `This machine, host`; nothing for another one that is no host."""
    if machine.this:
        return _tr("This machine, host") if machine.host else _tr("This machine")
    return _tr("Host") if machine.host else ""


def why(machine: MachineFacts) -> str:
    """The reason of its state, or when it was seen last."""
    if machine.left_out:
        return _tr("Left out by you.")
    if machine.reason:
        return machine.reason
    if machine.state != "offline":
        return ""
    if machine.seen_at is None:
        return _tr("Not seen by this computer yet.")
    return _tr("Last seen {when}.").format(when=moment(machine.seen_at))


def heat(facts: MachineFacts) -> str:
    """Of its processor; empty where its system does not tell."""
    return "" if facts.hottest_c is None else f"{formats.number(facts.hottest_c)} °C"


def power(facts: MachineFacts) -> str:
    """What it draws; empty where its system does not tell."""
    return "" if facts.watts is None else f"{formats.number(facts.watts)} W"


def link_limit(facts: MachineFacts) -> str:
    """What its owner lets Poolhouse use of its network."""
    return _tr("at most {rate} Mbit/s").format(rate=formats.number(facts.link_mbit))


def odd_version(facts: MachineFacts) -> str:
    """The app's, where it is not this machine's."""
    told = _tr("It runs Poolhouse {version}").format(version=facts.other_version)
    return told if facts.other_version else ""


def lent(machine: MachineFacts) -> str:
    """`0.4 of 1.0 GiB`: held by others, of what is lent to them."""
    n_used = machine.used_bytes - machine.own_bytes
    n_lent = max(0, machine.lent_bytes - machine.own_bytes)
    if not n_lent:
        return _tr("holds {used}").format(used=formats.size(n_used)) if n_used else _tr("lends nothing")
    used, whole = formats.size(n_used), formats.size(n_lent)
    if not n_used:
        return _tr("lends {lent}").format(lent=whole)
    if used.split()[-1] == whole.split()[-1]:
        used = used.split()[0]
    return _tr("{used} of {lent}").format(used=used, lent=whole)


def own_memory(machine: MachineFacts) -> str:
    """What its own models take, which is lent to nobody."""
    size = formats.size(machine.own_bytes)
    return _tr("{size} used by the model").format(size=size) if machine.own_bytes else ""


def lent_memory(machine: MachineFacts) -> str:
    """What is lent, where no heading says so; of a machine whose own model nobody shares it with, what that takes."""
    n_used, told = machine.used_bytes - machine.own_bytes, lent(machine)
    if not n_used:
        return own_memory(machine) or told
    if machine.own_bytes:
        text, own = _tr("{lent} lent, {own} used here"), formats.size(machine.own_bytes)
        return text.format(lent=formats.size(n_used), own=own)
    return _tr("{part} lent").format(part=told) if machine.lent_bytes else told


def in_all(size: str) -> str:
    """All memory of a machine."""
    return _tr("{size} in all").format(size=size)


def all_memory(machine: MachineFacts) -> str:
    """What it holds, what it lends, and what there is."""
    told = ", ".join(filter(None, (own_memory(machine), lent(machine))))
    if not machine.total_bytes:
        return told
    text = _tr("{memory}; it has {total} in all")
    return text.format(memory=told, total=formats.size(machine.total_bytes))


def own_use(machine: MachineFacts) -> str:
    """Why a model that fits here may be larger than what is lent."""
    if not (machine.this and machine.lent_bytes):
        return ""
    return _tr("What it lends is the limit for others; a model that you load here may take more.")


def fits_on(machine: MachineFacts, room_bytes: int) -> str:
    """What this machine holds alone, and where that is more, the amount that its card shows."""
    lent = machine.lent_bytes
    text = _tr("Models of up to {size} fit on it today.")
    if 0 < lent < room_bytes:
        text = _tr("Models of up to {size} fit on it today; others may use at most {lent} of it.")
    return text.format(size=formats.size(room_bytes), lent=formats.size(lent))


def layers(runs: Iterable[Run]) -> str:
    """`layers 1–4, 13–16`; counted from one."""
    told = ", ".join(f"{first + 1}" if last == first + 1 else f"{first + 1}–{last}" for first, last in runs)
    return _tr("layers {runs}").format(runs=told) if told else ""


def holds(machine: MachineFacts) -> str:
    """Its layers; or that it holds the whole model as others do, and what it does with it; and what gives
    vectors or scores texts beside.

    Of what others placed there only its users are known, or that it is something.
    """
    vectors = machine.vectors and _tr("vectors by {model}").format(model=machine.vectors)
    scores = machine.scores and _tr("scores texts with {model}").format(model=machine.scores)
    return ", ".join(one for one in (_to_write(machine), vectors, scores) if one)


def _to_write(machine: MachineFacts) -> str:
    if machine.of_models:
        each = _tr("{model}: {layers}")
        return "; ".join(each.format(model=model_name(name), layers=layers(runs)) for name, runs in machine.of_models)
    whole = machine.replica
    if whole is None:
        return layers(machine.layers) or _of_others(machine)
    match whole.state:
        case "lost":
            return _tr("whole model: lost")
        case "recovering":
            return _tr("whole model: being rebuilt")
        case "draining":
            return _tr("whole model: leaving")
    many = whole.answering + whole.waiting
    if not many:
        return _tr("whole model: idle")
    return QCoreApplication.translate("Household", "whole model: %n answer(s)", "", many)


def _of_others(machine: MachineFacts) -> str:
    """What it holds that is not of the placement that is shown."""
    if machine.has_own:
        return _tr("a model of its own")
    if machine.not_shown:
        return _tr("layers of {names}").format(names=", ".join(map(model_name, machine.not_shown)))
    if machine.used_by:
        return _tr("layers of {names}").format(names=", ".join(machine.used_by))
    return _tr("layers of another machine") if machine.used_bytes > machine.own_bytes else ""


def used_by(names: Iterable[str]) -> str:
    """Who uses it."""
    return _tr("used by {names}").format(names=", ".join(names))


def roles(of: Iterable[str]) -> str:
    """What a machine may do; nothing while it is in no household."""
    given = set(of)
    if "admin" in given:
        return may(ADMIN)
    if "lender" in given and given & {"host", "guest"}:
        return may(USE_AND_LEND)
    if "host" in given:
        return _tr("Use models")
    if "guest" in given:
        return may(GUEST)
    return may(LEND) if "lender" in given else ""


def may(name: str) -> str:
    """What one of ROLES is called, wherever it is shown or chosen."""
    return {
        LEND: _tr("Lend only"),
        USE_AND_LEND: _tr("Use models and lend"),
        GUEST: _tr("Use models only"),
        ADMIN: _tr("Use, lend, and add or remove machines"),
    }[name]


def no_right(machines: Iterable[MachineFacts]) -> str:
    """That this machine may not change the household, and who may."""
    names = [one.name for one in machines if "admin" in one.roles and not one.this]
    if not names:
        return _tr("This machine may not change the household.")
    text = _tr("This machine may not change the household. Do it on {names}.")
    return text.format(names=", ".join(names))


def kind(name: str) -> Shown:
    """What carries a link."""
    return {
        "ethernet": Shown(_tr("cable"), "cable", "muted"),
        "thunderbolt": Shown(_tr("Thunderbolt"), "cable", "muted"),
        "wifi": Shown(_tr("Wi-Fi"), "wifi", "muted"),
        "vpn": Shown(_tr("VPN"), "key", "warning"),
        "virtual": Shown(_tr("virtual"), "link", "warning"),
        "loopback": Shown(_tr("same computer"), "link", "muted"),
    }.get(name, Shown(_tr("kind unknown"), "link", "muted"))


def bad_way(link: LinkFacts) -> Shown:
    """What carries it, where something else would be better; the details say what, and change it."""
    text = _tr("{kind}, not the best way").format(kind=kind(link.worst_kind).word)
    return Shown(text, "warning", "warning")


def share(part_of_time: float) -> Shown:
    """What the way there and back costs of the time."""
    percent = formats.percent(part_of_time)
    if part_of_time < NOTICEABLE:
        return Shown(_tr("{percent}, good").format(percent=percent), "check", "good")
    if part_of_time < BRAKE:
        text = _tr("{percent}, noticeable").format(percent=percent)
        return Shown(text, "warning", "warning")
    return Shown(_tr("{percent}, main brake").format(percent=percent), "warning", "error")


def carried(link: LinkFacts) -> str:
    """`cable (eth0, 1.00 Gb/s), Wi-Fi (wlan0) there`; the other end where it says something."""
    told = _end(link.kind, link.interface, link.negotiated_bits_per_s)
    if link.kind == link.far_kind == "loopback":
        return told
    if link.far_interface or link.far_kind not in (link.kind, "unknown", ""):
        there = _end(link.far_kind, link.far_interface, link.far_negotiated_bits_per_s)
        told = _tr("{here}, {there} there").format(here=told, there=there)
    return told


def _end(of_kind: str, interface: str, bits_per_s: int | None) -> str:
    """What an end of a link is, with its name and the speed of its card."""
    inside = [interface] if interface else []
    if bits_per_s:
        inside.append(formats.rate(bits_per_s / 8))
    return kind(of_kind).word + (f" ({', '.join(inside)})" if inside else "")


def ends(one: Between) -> str:
    """`attic-pc – studio-mac`"""
    return " – ".join(one.names)


def between(one: Between) -> str:
    """`attic-pc – studio-mac: 941 Mb/s, 0.5 ms, cable`, in a line."""
    return f"{ends(one)}: {way(one.link)}"


def way(link: LinkFacts) -> str:
    """`941 Mb/s, 0.5 ms, cable`"""
    return f"{speed(link)}, {kind(link.worst_kind).word}"


def all_between(one: Between) -> tuple[str, ...]:
    """The same with the interfaces at both ends, and when it was measured."""
    at = measured(one.link)
    when = at and _tr("Measured {when}").format(when=at)
    return ends(one), speed(one.link), carried(one.link), when


def speed(link: LinkFacts) -> str:
    """The slower way and the round trip: `941 Mb/s, 0.5 ms`."""
    slower = link.slower_bytes_per_s
    rate = formats.rate(slower) if slower is not None else _tr("not measured")
    if link.round_trip_s is None:
        return rate
    return f"{rate}, {milliseconds(link.round_trip_s)}"


def milliseconds(value: float) -> str:
    """A round trip, always in ms, so that links can be compared."""
    ms = 1000 * value
    return f"{formats.number(ms, 1 if ms < 100 else 0)} ms"


def computes(facts: MachineFacts) -> str:
    """What its computing takes of the time of a request; empty where that is not forecast."""
    return "" if facts.share is None else formats.percent(facts.share)


def age(at: float, now: float | None = None) -> str:
    """How long ago a measurement was made: old ones say little of today's network."""
    return _tr("{age} ago").format(age=short_age(at, now))


def short_age(at: float, now: float | None = None) -> str:
    """`5 min`, for a narrow column."""
    seconds = max(0, int((time.time() if now is None else now) - at))
    if seconds < MINUTE_S:
        return f"{seconds} s"
    if seconds < HOUR_S:
        return f"{seconds // MINUTE_S} min"
    if seconds < DAY_S:
        return f"{seconds // HOUR_S} h"
    return _tr("{days} d").format(days=formats.number(seconds // DAY_S))


def measured(link: LinkFacts) -> str:
    """When, and how long ago that is; empty where it never was."""
    at = link.measured_at
    return f"{moment(at)}, {age(at)}" if at else ""


def moment(at: float) -> str:
    """A time of today, or a date with it."""
    when = QDateTime.fromSecsSinceEpoch(round(at))
    locale, short = QLocale(), QLocale.FormatType.ShortFormat
    if when.date() == QDateTime.currentDateTime().date():
        return locale.toString(when.time(), short)
    return locale.toString(when, short)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Household", text)
