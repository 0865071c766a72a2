"""Text about machines and links, such as states, roles, memory, layers and speeds."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale

from app.api.snapshot import LayerRange
from app.gui.look import formats
from app.gui.look.sentences import model_name
from app.gui.pool.machine_facts import LenderLink, LinkFacts, MachineFacts

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 24 * 3600
NOTICEABLE, BRAKE = 0.1, 0.3  # fractions of the request time
LEND, USE_AND_LEND, ADMIN, GUEST = "lend", "use_and_lend", "admin", "guest"
ROLES = {LEND: ("lender",), USE_AND_LEND: ("host", "lender"), GUEST: ("guest",), ADMIN: ("admin", "host", "lender")}


@dataclass(frozen=True, slots=True)
class Badge:
    """A short text with an icon and a theme color."""

    word: str
    icon: str
    color: str


def state_badge(machine: MachineFacts) -> Badge:
    """Return a badge for the state of a machine."""
    if machine.left_out:
        return Badge(_tr("Left out"), "left-out", "muted")
    return {
        "ready": Badge(_tr("Ready"), "check", "good"),
        "working": Badge(_tr("Working"), "activity", "accent"),
        "loaded": Badge(_tr("Loaded"), "models", "good"),
        "draining": Badge(_tr("Finishing"), "pause", "warning"),
        "paused": Badge(_tr("Paused"), "pause", "warning"),
        "offline": Badge(_tr("Offline"), "tray-away", "muted"),
        "left_out": Badge(_tr("Left out"), "left-out", "muted"),
        "off": Badge(_tr("Lends nothing"), "left-out", "muted"),
        "guest": Badge(_tr("Guest"), "chat", "muted"),
        "user": Badge(_tr("Uses models"), "chat", "muted"),
    }.get(machine.state, Badge(machine.state, "info", "muted"))


def unnamed_machine() -> str:
    """Return the label of a nearby machine that does not announce its name."""
    return _tr("Unnamed machine")


def relation(machine: MachineFacts) -> str:
    """Return `This machine, host`, `This machine` or `Host`, whichever applies, or ""."""
    if machine.this:
        return _tr("This machine, host") if machine.host else _tr("This machine")
    return _tr("Host") if machine.host else ""


def state_reason(machine: MachineFacts) -> str:
    """Return the reason for the state of a machine. If an offline machine has none, return when it was last seen."""
    if machine.left_out:
        return _tr("You excluded this machine.")
    if machine.reason:
        return machine.reason
    if machine.state != "offline":
        return ""
    if machine.seen_at is None:
        return _tr("Not seen by this computer yet.")
    return _tr("Last seen {when}.").format(when=moment(machine.seen_at))


def temperature(facts: MachineFacts) -> str:
    """Return the processor temperature, or "" if the system does not report it."""
    return "" if facts.hardware.hottest_c is None else f"{formats.number(facts.hardware.hottest_c)} °C"


def power(facts: MachineFacts) -> str:
    """Return the power draw, or "" if the system does not report it."""
    return "" if facts.hardware.watts is None else f"{formats.number(facts.hardware.watts)} W"


def link_limit(facts: MachineFacts) -> str:
    """Return the network limit that the machine's owner has set for Poolhouse."""
    return _tr("at most {rate} Mbit/s").format(rate=formats.number(facts.hardware.link_mbit))


def version_note(facts: MachineFacts) -> str:
    """Return a note with the Poolhouse version of a machine, or "" if this machine runs the same version."""
    text = _tr("Runs Poolhouse {version}")
    return text.format(version=facts.other_version) if facts.other_version else ""


def lent(machine: MachineFacts) -> str:
    """Return the used and lent memory, such as `0.4 of 1.0 GiB`."""
    n_used = machine.memory.used - machine.memory.own
    n_lent = max(0, machine.memory.lent - machine.memory.own)
    if not n_lent:
        return _tr("holds {used}").format(used=formats.size(n_used)) if n_used else _tr("lends nothing")
    used, whole = formats.size(n_used), formats.size(n_lent)
    if not n_used:
        return _tr("lends {lent}").format(lent=whole)
    if used.split()[-1] == whole.split()[-1]:
        used = used.split()[0]
    return _tr("{used} of {lent}").format(used=used, lent=whole)


def own_memory(machine: MachineFacts) -> str:
    """Return the memory used by models loaded on the machine itself, which is not lent."""
    size = formats.size(machine.memory.own)
    return _tr("{size} used by the model").format(size=size) if machine.memory.own else ""


def lent_memory(machine: MachineFacts) -> str:
    """Describe the lent memory in use or, if there is none, the memory used by the machine's own models.

    The text does not need a heading.
    """
    n_used, amount = machine.memory.used - machine.memory.own, lent(machine)
    if not n_used:
        return own_memory(machine) or amount
    if machine.memory.own:
        text, own = _tr("{lent} lent, {own} used here"), formats.size(machine.memory.own)
        return text.format(lent=formats.size(n_used), own=own)
    return _tr("{part} lent").format(part=amount) if machine.memory.lent else amount


def total_memory(size: str) -> str:
    """Return the label of a machine's total memory."""
    return _tr("{size} total").format(size=size)


def all_memory(machine: MachineFacts) -> str:
    """Return the memory used by the machine's own models, the lent memory and the total memory."""
    amounts = ", ".join(filter(None, (own_memory(machine), lent(machine))))
    if not machine.memory.total:
        return amounts
    text = _tr("{memory}; {total} total")
    return text.format(memory=amounts, total=formats.size(machine.memory.total))


def own_use_note(machine: MachineFacts) -> str:
    """Return a note that models loaded on this machine may use more than the lent memory, or "" for other machines."""
    if not (machine.this and machine.memory.lent):
        return ""
    return _tr("This limits how much memory others can use. Models that you load here may use more.")


def largest_model(machine: MachineFacts, room_bytes: int) -> str:
    """Return a sentence with the size of the largest model that fits, and the limit for lent memory if smaller."""
    lent = machine.memory.lent
    text = _tr("Models of up to {size} fit on this machine now.")
    if 0 < lent < room_bytes:
        text = _tr("Models of up to {size} fit on this machine now. Others can use at most {lent} of this memory.")
    return text.format(size=formats.size(room_bytes), lent=formats.size(lent))


def layer_ranges(ranges: Iterable[LayerRange]) -> str:
    """Return layer ranges such as `layers 1–4, 13–16`, numbered from 1."""
    text = ", ".join(f"{first + 1}" if last == first + 1 else f"{first + 1}–{last}" for first, last in ranges)
    return _tr("layers {runs}").format(runs=text) if text else ""


def held_models(machine: MachineFacts) -> str:
    """Describe the models on a machine: a language model or some of its layers, an embedding model and a reranker.

    If another host placed layers there, the text names at most that host.
    """
    vectors = machine.held.embedder and _tr("creates embeddings with {model}").format(model=machine.held.embedder)
    scores = machine.held.reranker and _tr("scores texts with {model}").format(model=machine.held.reranker)
    return ", ".join(filter(None, (_language_model(machine), vectors, scores)))


def _language_model(machine: MachineFacts) -> str:
    if machine.held.by_model:
        each = _tr("{model}: {layers}")
        held = ((model_name(name), layer_ranges(ranges)) for name, ranges in machine.held.by_model)
        return "; ".join(each.format(model=name, layers=layers) for name, layers in held)
    whole = machine.held.replica
    if whole is None:
        return layer_ranges(machine.held.layers) or _of_others(machine)
    match whole.state:
        case "lost":
            return _tr("whole model: lost")
        case "recovering":
            return _tr("whole model: being rebuilt")
        case "draining":
            return _tr("whole model: finishing")
    many = whole.answering + whole.waiting
    if not many:
        return _tr("whole model: idle")
    return QCoreApplication.translate("Household", "whole model: %n answer(s)", "", many)


def _of_others(machine: MachineFacts) -> str:
    """Describe the models on a machine that are not part of the displayed placement."""
    if machine.held.has_own:
        return ", ".join(map(model_name, machine.held.shared)) or _tr("its own model")
    if machine.held.hidden:
        return _tr("layers of {names}").format(names=", ".join(map(model_name, machine.held.hidden)))
    if machine.used_by:
        return _tr("layers for {names}").format(names=", ".join(machine.used_by))
    return _tr("layers for another machine") if machine.memory.used > machine.memory.own else ""


def used_by(names: Iterable[str]) -> str:
    """Return a phrase that names the machines using this one."""
    return _tr("used by {names}").format(names=", ".join(names))


def roles_text(roles: Iterable[str]) -> str:
    """Return the label of a combination of roles, or "" for no roles."""
    granted = set(roles)
    if "admin" in granted:
        return role_name(ADMIN)
    if "lender" in granted and granted & {"host", "guest"}:
        return role_name(USE_AND_LEND)
    if "host" in granted:
        return _tr("Use models")
    if "guest" in granted:
        return role_name(GUEST)
    return role_name(LEND) if "lender" in granted else ""


def role_name(name: str) -> str:
    """Return the label of an entry of ROLES."""
    return {
        LEND: _tr("Lend only"),
        USE_AND_LEND: _tr("Use models and lend"),
        GUEST: _tr("Use models only"),
        ADMIN: _tr("Use, lend, and add or remove machines"),
    }[name]


def not_admin_note(machines: Iterable[MachineFacts]) -> str:
    """Return a note that this machine may not change the household, with the names of the machines that may."""
    names = [machine.name for machine in machines if "admin" in machine.roles and not machine.this]
    if not names:
        return _tr("This machine can't change the household.")
    text = _tr("This machine can't change the household. Make the change on {names}.")
    return text.format(names=", ".join(names))


def kind_badge(name: str) -> Badge:
    """Return a badge for a kind of network interface."""
    return {
        "ethernet": Badge(_tr("cable"), "cable", "muted"),
        "thunderbolt": Badge(_tr("Thunderbolt"), "cable", "muted"),
        "wifi": Badge(_tr("Wi-Fi"), "wifi", "muted"),
        "vpn": Badge(_tr("VPN"), "key", "warning"),
        "virtual": Badge(_tr("virtual"), "link", "warning"),
        "loopback": Badge(_tr("same computer"), "link", "muted"),
    }.get(name, Badge(_tr("unknown type"), "link", "muted"))


def poor_link_badge(link: LinkFacts) -> Badge:
    """Return a badge for a link that could use a faster interface, which the details panel offers."""
    text = _tr("{kind} (not the fastest option)").format(kind=kind_badge(link.worst_kind).word)
    return Badge(text, "warning", "warning")


def share_badge(part_of_time: float) -> Badge:
    """Return a badge for the fraction of the request time spent on a link."""
    percent = formats.percent(part_of_time)
    if part_of_time < NOTICEABLE:
        return Badge(_tr("{percent}, good").format(percent=percent), "check", "good")
    if part_of_time < BRAKE:
        text = _tr("{percent}, noticeable").format(percent=percent)
        return Badge(text, "warning", "warning")
    return Badge(_tr("{percent}, main bottleneck").format(percent=percent), "warning", "error")


def link_carrier(link: LinkFacts) -> str:
    """Describe the interfaces of a link, for example `cable (eth0, 1.00 Gbit/s), Wi-Fi (wlan0) at the other end`.

    The other end is omitted if its interface is unknown, or if both ends are on this computer.
    """
    text = _end(link.kind, link.interface, link.negotiated_bits_per_s)
    if link.kind == link.far_kind == "loopback":
        return text
    if link.far_interface or link.far_kind not in (link.kind, "unknown", ""):
        there = _end(link.far_kind, link.far_interface, link.far_negotiated_bits_per_s)
        text = _tr("{here} here, {there} on the other machine").format(here=text, there=there)
    return text


def _end(of_kind: str, interface: str, bits_per_s: int | None) -> str:
    """Describe the interface at one end of a link: its kind, name and negotiated speed."""
    inside = [interface] if interface else []
    if bits_per_s:
        inside.append(formats.rate(bits_per_s / 8))
    return kind_badge(of_kind).word + (f" ({', '.join(inside)})" if inside else "")


def link_ends(between: LenderLink) -> str:
    """Return the names of both ends, for example `attic-pc – studio-mac`."""
    return " – ".join(between.names)


def link_line(between: LenderLink) -> str:
    """Describe a link in one line, for example `attic-pc – studio-mac: 941 Mbit/s, 0.5 ms, cable`."""
    return f"{link_ends(between)}: {link_summary(between.link)}"


def link_summary(link: LinkFacts) -> str:
    """Return the speed and the kind of a link, for example `941 Mbit/s, 0.5 ms, cable`."""
    return f"{link_speed(link)}, {kind_badge(link.worst_kind).word}"


def link_details(between: LenderLink) -> tuple[str, ...]:
    """Return the lines of a link's tooltip: its ends, speed and interfaces, and when it was measured."""
    at = measured_when(between.link)
    when = at and _tr("Measured {when}").format(when=at)
    return link_ends(between), link_speed(between.link), link_carrier(between.link), when


def link_speed(link: LinkFacts) -> str:
    """Return the throughput of the slower direction and the round-trip time, for example `941 Mbit/s, 0.5 ms`."""
    slower = link.slower_bytes_per_s
    rate = formats.rate(slower) if slower is not None else _tr("not measured")
    if link.round_trip_s is None:
        return rate
    return f"{rate}, {milliseconds(link.round_trip_s)}"


def milliseconds(value: float) -> str:
    """Format a round-trip time, always in milliseconds to make links easy to compare."""
    ms = 1000 * value
    return f"{formats.number(ms, 1 if ms < 100 else 0)} ms"


def compute_share(facts: MachineFacts) -> str:
    """Return the forecast percentage of the request time spent computing on a machine, or "" without a forecast."""
    return "" if facts.share is None else formats.percent(facts.share)


def age(at: float, now: float | None = None) -> str:
    """Return how long ago a measurement was made, such as `5 min ago`. Old measurements may no longer be accurate."""
    return _tr("{age} ago").format(age=short_age(at, now))


def short_age(at: float, now: float | None = None) -> str:
    """Return how long ago a measurement was made in a short form for narrow columns, such as `5 min`."""
    seconds = max(0, int((time.time() if now is None else now) - at))
    if seconds < MINUTE_S:
        return f"{seconds} s"
    if seconds < HOUR_S:
        return f"{seconds // MINUTE_S} min"
    if seconds < DAY_S:
        return f"{seconds // HOUR_S} h"
    return _tr("{days} d").format(days=formats.number(seconds // DAY_S))


def measured_when(link: LinkFacts) -> str:
    """Return when and how long ago a link was measured, or "" if it never was."""
    at = link.measured_at
    return f"{moment(at)}, {age(at)}" if at else ""


def moment(at: float) -> str:
    """Format a Unix time, with the date if it is not today."""
    when = QDateTime.fromSecsSinceEpoch(round(at))
    locale, short = QLocale(), QLocale.FormatType.ShortFormat
    if when.date() == QDateTime.currentDateTime().date():
        return locale.toString(when.time(), short)
    return locale.toString(when, short)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Household", text)
