"""The lending policy, which applies the owner's rules to sensor readings.

It decides whether this machine lends now, and how much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from app.core.errors import Reason
from app.core.lending.hours import Span, is_within

# never lent but kept for the next program that the owner starts; on small machines, a tenth of the memory
RESERVE_BYTES = 1 << 30
STEP_BYTES = 64 << 20  # the granularity of reported free memory, so that other machines need not hear about every page
SHORT_SHARE = 0.5  # fraction of the reserve; with less free memory, the owner's programs need the lent memory
CRITICAL_SHARE = 0.125  # fraction of the reserve; with less free memory, running answers may not finish
BATTERY_GAP_PERCENT = 10  # lending resumes at this much above the level at which it paused (UX.md TC3)
BATTERY_CRITICAL_PERCENT = 5
GPU_BUSY_PERCENT = 30  # load of other programs at which lending pauses; it resumes below half of that
HOT_CELSIUS = 95  # most processors throttle between 95 and 105 degrees
HOT_LEAST, HOT_MOST = 50, 105  # the range an owner may choose from
COOLER_CELSIUS = 15.0  # lending resumes at this much below the temperature at which it paused
CARD_HOT_LEAST, CARD_HOT_MOST = 50, 110  # most cards throttle between 83 and 110 degrees
MAX_THREADS = 1024
MAX_PROGRAMS = 64
# below the minimum, transfers to several machines at a time would be too slow
LINK_LEAST_MBIT, LINK_MOST_MBIT = 2, 100_000
MAX_PROGRAM_CHARACTERS = 100

# The time without an objection before lending resumes. Otherwise, brief changes would load and discard layers again and
# again.
CALM_SECONDS = {
    "pause_program": 15.0,
    "pause_gpu": 60.0,
    "pause_memory": 60.0,
    "pause_hot": 60.0,
    "pause_card_hot": 60.0,
    "pause_no_card": 15.0,
    "pause_screen": 15.0,
    "pause_vpn": 15.0,
    "pause_metered": 15.0,
}

PROCESSOR = "cpu"  # the device that represents main memory


@dataclass(frozen=True, slots=True)
class Rules:
    """The owner's rules for lending. The defaults need no changes.

    on: whether anything is lent. memory_bytes: the maximum to lend; 0 for nothing; None for half of the memory that is
    free when the node starts. devices: names of the lent devices; empty for all. idle_s: how long the owner must have
    been away; 0 to lend even while someone is using the computer. hours: when to lend; empty for always.
    battery_percent: on battery, lend only above this level; 0 for any level; 100 for only while plugged in. programs:
    executables that pause lending while they run. gpu: pause while another program keeps a graphics card busy. drain_s:
    how long a running answer may take to finish when a pause begins. threads: processor threads for each run of layers
    that other machines load from now on; 0 for all. hot: pause while the processor is hotter than hot_celsius. screen:
    pause while a program fills the screen, such as a game, a movie or slides. network: pause while this computer is on
    a VPN or a metered network. link_mbit: the maximum rate in each direction that Poolhouse may use, in Mbit/s; 0 for
    no limit. limit_bytes: the maximum for all models on this machine, both the owner's and those of other machines; 0
    for all free memory. card_celsius: pause while a graphics card that computes is at least this hot; 0 for any
    temperature.
    """

    on: bool = True
    memory_bytes: int | None = None
    devices: tuple[str, ...] = ()
    idle_s: float = 0.0
    hours: tuple[Span, ...] = ()
    battery_percent: int = 50
    programs: tuple[str, ...] = ()
    gpu: bool = True
    drain_s: float = 30.0
    threads: int = 0
    hot: bool = True
    hot_celsius: int = HOT_CELSIUS
    screen: bool = True
    network: bool = False
    link_mbit: int = 0
    limit_bytes: int = 0
    card_celsius: int = 0

    def __post_init__(self) -> None:
        sound = (
            (self.memory_bytes is None or 0 <= self.memory_bytes <= 1 << 50)
            and 0 <= self.limit_bytes <= 1 << 50
            and 0 <= self.idle_s <= 7 * 86400
            and 0 <= self.battery_percent <= 100
            and 0 <= self.drain_s <= 600
            and 0 <= self.threads <= MAX_THREADS
            and HOT_LEAST <= self.hot_celsius <= HOT_MOST
            and (not self.card_celsius or CARD_HOT_LEAST <= self.card_celsius <= CARD_HOT_MOST)
            and (not self.link_mbit or LINK_LEAST_MBIT <= self.link_mbit <= LINK_MOST_MBIT)
            and len(self.programs) <= MAX_PROGRAMS
            and all(0 < len(name) <= MAX_PROGRAM_CHARACTERS for name in self.programs)
        )
        if not sound:
            raise ValueError("rules that cannot be")


@dataclass(frozen=True, slots=True)
class Battery:
    """The state of the battery, as the system reports it."""

    percent: float
    plugged: bool


Network = Literal["free", "metered", "vpn"]


@dataclass(frozen=True, slots=True)
class Readings:
    """The sensor readings of this machine at one moment. A reading is None if the system does not provide it.

    now_s: from a monotonic clock. weekday (0 is Monday) and minute: local time. idle_s: time since the owner last
    pressed a key or moved the pointer; also None if nobody is signed in. programs: programs named in the rules that are
    running. gpu_percent: load of the busiest graphics card from other programs. hottest_c: temperature of the hottest
    part of the processor. full_screen: whether a program fills the screen. network: the kind of network behind the
    default route. card_c: temperature of the hottest graphics card that computes. lacks_card: whether the owner lends
    only with a graphics card and none can be used. tests_card: whether the cards are being tested for the first time
    since the start; layers that arrive before the tests end would stay on the processor. card_off: whether lent layers
    are on a card that the owner has switched off. on_processor: whether lent layers are on the processor although the
    owner lends only with a card.
    """

    now_s: float
    weekday: int = 0
    minute: int = 0
    idle_s: float | None = None
    battery: Battery | None = None
    programs: frozenset[str] = frozenset()
    gpu_percent: float | None = None
    hottest_c: float | None = None
    watts: float | None = None  # power consumption, which no rule uses
    full_screen: bool | None = None
    network: Network | None = None
    card_c: float | None = None
    lacks_card: bool = False
    tests_card: bool = False
    card_off: bool = False
    on_processor: bool = False


@dataclass(frozen=True, slots=True)
class LendableMemory:
    """The memory of this machine at one moment, in bytes.

    most: the owner's limit for other machines. promised: reserved for other machines. unloaded: the part of `promised`
    that still counts as free because nothing has been loaded into it yet. own: used by this machine's own models.
    limit: the maximum for all models together; 0 for no maximum.
    """

    most_bytes: int
    total_bytes: int
    free_bytes: int
    promised_bytes: int = 0
    unloaded_bytes: int = 0
    own_bytes: int = 0
    limit_bytes: int = 0
    # Main memory, if the other figures are those of graphics cards or include them. What a card computes still needs
    # some of it, and so does the owner.
    main_total_bytes: int = 0
    main_free_bytes: int = 0

    @property
    def reserve_bytes(self) -> int:
        """Return the bytes that are never lent."""
        return _reserve(self.total_bytes)

    def is_short(self, share: float) -> bool:
        """Return whether less than this share of the reserve is free in this memory or in main memory."""
        main_is_short = self.main_free_bytes < share * _reserve(self.main_total_bytes)
        return main_is_short or self.free_bytes < share * self.reserve_bytes

    @property
    def lent_bytes(self) -> int:
        """Return how many bytes other machines may use in total: at most their current share plus the free memory.

        The owner's models reduce this only if they leave too little free memory, or too little of the limit for all
        models.
        """
        free = max(0, self.free_bytes - self.unloaded_bytes - self.reserve_bytes)
        steps = free // STEP_BYTES * STEP_BYTES
        most = min(self.most_bytes, self.limit_bytes - self.own_bytes) if self.limit_bytes else self.most_bytes
        return max(0, min(most, self.promised_bytes + steps))


def _reserve(total_bytes: int) -> int:
    return min(RESERVE_BYTES, total_bytes // 10)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The verdict that other machines may use this many bytes on these devices.

    An empty list of devices means all devices.
    """

    bytes: int
    devices: tuple[str, ...] = ()

    def has(self, device: str) -> bool:
        return not self.devices or device in self.devices


@dataclass(frozen=True, slots=True)
class Denied:
    """The verdict that lending is not allowed now.

    at_once: whether the machine needs its memory immediately, so running answers may not finish. objected_s: when a
    rule last forbade lending.
    """

    why: Reason
    objected_s: float
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class NothingLent:
    """The verdict that the owner lends nothing."""


Verdict = Allowed | Denied | NothingLent


def may_lend(rules: Rules, readings: Readings, memory: LendableMemory, before: Verdict | None = None) -> Verdict:
    """Decide whether this machine lends now. `before` is the previous verdict, or None if the rules have changed.

    A denial lasts until its cause is clearly over: the thresholds for pausing and resuming differ, and a brief cause
    must have been absent for a while.
    """
    elsewhere = rules.devices and PROCESSOR not in rules.devices
    if not rules.on or rules.memory_bytes == 0 or elsewhere:
        return NothingLent()  # to lend only cards is another setting: `card_only` of GraphicsSettings
    denied = before if isinstance(before, Denied) else None
    paused_for = denied.why.code if denied else ""
    code = _objection(rules, readings, memory, paused_for)
    if code is not None:
        return Denied(Reason(code), readings.now_s, _in_need(readings, memory))
    if denied and readings.now_s - denied.objected_s < CALM_SECONDS.get(paused_for, 0.0):
        return replace(denied, at_once=False)
    return Allowed(memory.lent_bytes, rules.devices)


def _objection(rules: Rules, readings: Readings, memory: LendableMemory, paused_for: str) -> str | None:
    """Return the reason code of the first rule that forbids lending, or None.

    paused_for: the code of the current pause.
    """
    if readings.card_off:
        return "pause_card_off"
    if readings.on_processor:
        return "pause_card_only"
    if not is_within(rules.hours, readings.weekday, readings.minute):
        return "pause_hours"
    if readings.idle_s is not None and readings.idle_s < rules.idle_s:
        return "pause_active"
    if _battery_low(rules, readings.battery, paused_for == "pause_battery"):
        return "pause_battery"
    if readings.programs & _executables(rules.programs):
        return "pause_program"
    busy = GPU_BUSY_PERCENT / 2 if paused_for == "pause_gpu" else GPU_BUSY_PERCENT
    if rules.gpu and readings.gpu_percent is not None and readings.gpu_percent >= busy:
        return "pause_gpu"
    if _card_hot(rules, readings, paused_for == "pause_card_hot"):
        return "pause_card_hot"
    if readings.tests_card:
        return "pause_card_test"
    if readings.lacks_card:
        return "pause_no_card"
    if rules.screen and readings.full_screen:
        return "pause_screen"
    if rules.network and readings.network in ("metered", "vpn"):
        return f"pause_{readings.network}"
    most_c = rules.hot_celsius - (COOLER_CELSIUS if paused_for == "pause_hot" else 0)
    if rules.hot and readings.hottest_c is not None and readings.hottest_c >= most_c:
        return "pause_hot"
    share = 1.0 if paused_for == "pause_memory" else SHORT_SHARE
    if memory.is_short(share):
        return "pause_memory"
    if memory.promised_bytes > memory.most_bytes:
        return "pause_less"
    return None


def _battery_low(rules: Rules, battery: Battery | None, paused: bool) -> bool:
    if battery is None or battery.plugged or not rules.battery_percent:
        return False
    level = rules.battery_percent + (BATTERY_GAP_PERCENT if paused else 0)
    return level >= 100 or battery.percent < level


def _card_hot(rules: Rules, readings: Readings, paused: bool) -> bool:
    if not rules.card_celsius or readings.card_c is None:
        return False
    return readings.card_c >= rules.card_celsius - (COOLER_CELSIUS if paused else 0)


def _in_need(readings: Readings, memory: LendableMemory) -> bool:
    """Return whether memory or battery is almost exhausted (SAFETY.md 8)."""
    battery = readings.battery
    empty = battery and not battery.plugged and battery.percent <= BATTERY_CRITICAL_PERCENT
    return bool(empty) or memory.is_short(CRITICAL_SHARE)


def executable(name: str) -> str:
    """Return a program's name in the form used for comparison: lowercase, without folder or `.exe`."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1].casefold()
    return last.removesuffix(".exe")


def _executables(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(executable, names))


def with_figures(why: Reason, readings: Readings) -> Reason:
    """Return the reason with the reading that caused it added to its facts.

    If there is no such reading, the reason is returned unchanged.
    """
    match why.code:
        case "pause_battery" if readings.battery is not None:
            return Reason("pause_battery_at", {"percent": round(readings.battery.percent)})
        case "pause_program" if readings.programs:
            return Reason("pause_program_named", {"program": min(readings.programs)})
        case "pause_hot" if readings.hottest_c is not None:
            return Reason("pause_hot_at", {"degrees": round(readings.hottest_c)})
        case "pause_card_hot" if readings.card_c is not None:
            return Reason("pause_card_hot_at", {"degrees": round(readings.card_c)})
    return why
