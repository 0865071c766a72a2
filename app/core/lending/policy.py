"""The lending policy: whether this machine lends, and how much, given its owner's rules and its readings. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from app.core.errors import Reason
from app.core.lending.hours import Span, within

RESERVE_BYTES = 1 << 30  # never lent, but kept for the owner's next program; on small machines, a tenth of the memory
STEP_BYTES = 64 << 20  # free memory is reported in steps, so that other machines do not hear about every page
SHORT_SHARE = 0.5  # share of the reserve: if less is free, the owner's programs need the lent memory
CRITICAL_SHARE = 0.125  # share of the reserve: if less is free, running answers are not waited for
BATTERY_GAP_PERCENT = 10  # lending resumes this far above the level at which it paused (UX.md TC3)
BATTERY_CRITICAL_PERCENT = 5
GPU_BUSY_PERCENT = 30  # load from another program that pauses lending; the pause ends at half of it
HOT_CELSIUS = 95  # most processors throttle at 95 to 105
HOT_LEAST, HOT_MOST = 50, 105  # the range an owner may choose from
COOLER_CELSIUS = 15.0  # lending resumes this far below the temperature at which it paused
MAX_THREADS = 1024
MAX_PROGRAMS = 64
# below the minimum, transfers shared by several machines would be too slow
LINK_LEAST_MBIT, LINK_MOST_MBIT = 2, 100_000
MAX_PROGRAM_CHARACTERS = 100

# How long no rule may object before lending resumes. Otherwise brief changes would cause layers to be loaded and
# discarded again and again.
CALM_SECONDS = {
    "pause_program": 15.0,
    "pause_gpu": 60.0,
    "pause_memory": 60.0,
    "pause_hot": 60.0,
    "pause_screen": 15.0,
    "pause_vpn": 15.0,
    "pause_metered": 15.0,
}

PROCESSOR = "cpu"  # the device that stands for main memory


@dataclass(frozen=True, slots=True)
class Rules:
    """The owner's choices. The defaults work without any choice.

    on: whether anything is lent. memory_bytes: the most that is lent; 0 for nothing; None for half of the memory
    that is free when the node starts. devices: names of the devices lent; empty for all. idle_s: how long the owner
    must have been away; 0 to lend even while someone is using the computer. hours: when to lend; empty for always.
    battery_percent: on battery, lend only above this level; 0 for any level; 100 for only while plugged in.
    programs: executables that pause lending while they run. gpu: pause while another program keeps a graphics card
    busy. drain_s: how long a running answer may take to finish when a pause begins. threads: processor threads for
    each run of layers that others load from now on; 0 for all. hot: pause while the processor is hotter than
    hot_celsius. screen: pause while a program fills the screen, such as a game, a movie or slides. network: pause
    while this computer is on a VPN or a metered network. link_mbit: the most that Poolhouse sends, and receives, in
    Mbit/s; 0 for no limit. limit_bytes: the most that all models may use here, others' and the owner's together; 0
    for all free memory.
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

    def __post_init__(self) -> None:
        sound = (
            (self.memory_bytes is None or 0 <= self.memory_bytes <= 1 << 50)
            and 0 <= self.limit_bytes <= 1 << 50
            and 0 <= self.idle_s <= 7 * 86400
            and 0 <= self.battery_percent <= 100
            and 0 <= self.drain_s <= 600
            and 0 <= self.threads <= MAX_THREADS
            and HOT_LEAST <= self.hot_celsius <= HOT_MOST
            and (not self.link_mbit or LINK_LEAST_MBIT <= self.link_mbit <= LINK_MOST_MBIT)
            and len(self.programs) <= MAX_PROGRAMS
            and all(0 < len(name) <= MAX_PROGRAM_CHARACTERS for name in self.programs)
        )
        if not sound:
            raise ValueError("rules that cannot be")


@dataclass(frozen=True, slots=True)
class Battery:
    """The battery as the system reports it."""

    percent: float
    plugged: bool


Network = Literal["free", "metered", "vpn"]


@dataclass(frozen=True, slots=True)
class Readings:
    """The readings of the machine at one moment. They are None if the system does not provide them.

    now_s: from a monotonic clock. weekday (0 is Monday) and minute: local time. idle_s: time since the owner's last
    key press or pointer event; None also if nobody is signed in. programs: the running programs among those that
    the rules name. gpu_percent: how busy other programs keep the busiest graphics card. hottest_c: the hottest part
    of the processor. full_screen: whether a program fills the screen. network: the kind of network behind the
    default route.
    """

    now_s: float
    weekday: int = 0
    minute: int = 0
    idle_s: float | None = None
    battery: Battery | None = None
    programs: frozenset[str] = frozenset()
    gpu_percent: float | None = None
    hottest_c: float | None = None
    watts: float | None = None  # power consumption; not used by any rule
    full_screen: bool | None = None
    network: Network | None = None


@dataclass(frozen=True, slots=True)
class LendableMemory:
    """The memory at one moment, in bytes.

    most: the owner's limit for others. promised: reserved for others. unloaded: the part of promised that has not
    been taken from the free memory yet. own: used by this machine's own models. limit: for others and own models
    together; 0 for none.
    """

    most_bytes: int
    total_bytes: int
    free_bytes: int
    promised_bytes: int = 0
    unloaded_bytes: int = 0
    own_bytes: int = 0
    limit_bytes: int = 0

    @property
    def reserve_bytes(self) -> int:
        """Return the bytes that always stay with the owner."""
        return min(RESERVE_BYTES, self.total_bytes // 10)

    @property
    def lent_bytes(self) -> int:
        """Return the bytes that others may use in total: at most what they have now plus what is free.

        The owner's models reduce this only if they leave too little free memory, or too little of the limit for all
        models.
        """
        free = max(0, self.free_bytes - self.unloaded_bytes - self.reserve_bytes)
        steps = free // STEP_BYTES * STEP_BYTES
        most = min(self.most_bytes, self.limit_bytes - self.own_bytes) if self.limit_bytes else self.most_bytes
        return max(0, min(most, self.promised_bytes + steps))


@dataclass(frozen=True, slots=True)
class Allowed:
    """Others may use this many bytes, on these devices (empty: all)."""

    bytes: int
    devices: tuple[str, ...] = ()

    def has(self, device: str) -> bool:
        return not self.devices or device in self.devices


@dataclass(frozen=True, slots=True)
class Denied:
    """Lending is not allowed now. `at_once`: the machine needs its memory, so running answers are not waited for.

    objected_s: when a rule last objected.
    """

    why: Reason
    objected_s: float
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class NothingLent:
    """The owner lends nothing."""


Verdict = Allowed | Denied | NothingLent


def may_lend(rules: Rules, senses: Readings, room: LendableMemory, before: Verdict | None = None) -> Verdict:
    """Decide whether this machine lends now. `before`: the last verdict, or None if the rules have changed.

    A denial lasts until its cause is clearly over: the thresholds for pausing and resuming differ, and brief causes
    must have been absent for a while.
    """
    elsewhere = rules.devices and PROCESSOR not in rules.devices
    if not rules.on or rules.memory_bytes == 0 or elsewhere:
        return NothingLent()  # engines compute in main memory only, so nothing else can be lent yet
    denied = before if isinstance(before, Denied) else None
    paused_for = denied.why.code if denied else ""
    code = _objection(rules, senses, room, paused_for)
    if code is not None:
        return Denied(Reason(code), senses.now_s, _in_need(senses, room))
    if denied and senses.now_s - denied.objected_s < CALM_SECONDS.get(paused_for, 0.0):
        return replace(denied, at_once=False)
    return Allowed(room.lent_bytes, rules.devices)


def _objection(rules: Rules, senses: Readings, room: LendableMemory, paused_for: str) -> str | None:
    """Return the reason code of the first rule that forbids lending. `paused_for`: the reason for the current pause."""
    if not within(rules.hours, senses.weekday, senses.minute):
        return "pause_hours"
    if senses.idle_s is not None and senses.idle_s < rules.idle_s:
        return "pause_active"
    if _battery_low(rules, senses.battery, paused_for == "pause_battery"):
        return "pause_battery"
    if senses.programs & _executables(rules.programs):
        return "pause_program"
    busy = GPU_BUSY_PERCENT / 2 if paused_for == "pause_gpu" else GPU_BUSY_PERCENT
    if rules.gpu and senses.gpu_percent is not None and senses.gpu_percent >= busy:
        return "pause_gpu"
    if rules.screen and senses.full_screen:
        return "pause_screen"
    if rules.network and senses.network in ("metered", "vpn"):
        return f"pause_{senses.network}"
    most_c = rules.hot_celsius - (COOLER_CELSIUS if paused_for == "pause_hot" else 0)
    if rules.hot and senses.hottest_c is not None and senses.hottest_c >= most_c:
        return "pause_hot"
    share = 1.0 if paused_for == "pause_memory" else SHORT_SHARE
    if room.free_bytes < share * room.reserve_bytes:
        return "pause_memory"
    if room.promised_bytes > room.most_bytes:
        return "pause_less"
    return None


def _battery_low(rules: Rules, battery: Battery | None, paused: bool) -> bool:
    if battery is None or battery.plugged or not rules.battery_percent:
        return False
    level = rules.battery_percent + (BATTERY_GAP_PERCENT if paused else 0)
    return level >= 100 or battery.percent < level


def _in_need(senses: Readings, room: LendableMemory) -> bool:
    """Return whether memory or battery is about to run out (SAFETY.md 8)."""
    battery = senses.battery
    empty = battery and not battery.plugged and battery.percent <= BATTERY_CRITICAL_PERCENT
    return bool(empty) or room.free_bytes < CRITICAL_SHARE * room.reserve_bytes


def executable(name: str) -> str:
    """Return a program's name for comparison: without folder or `.exe`, in lowercase."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1].casefold()
    return last.removesuffix(".exe")


def _executables(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(executable, names))


def with_figures(why: Reason, senses: Readings) -> Reason:
    """Return the reason with the current readings, or unchanged if they add nothing."""
    match why.code:
        case "pause_battery" if senses.battery is not None:
            return Reason("pause_battery_at", {"percent": round(senses.battery.percent)})
        case "pause_program" if senses.programs:
            return Reason("pause_program_named", {"program": min(senses.programs)})
        case "pause_hot" if senses.hottest_c is not None:
            return Reason("pause_hot_at", {"degrees": round(senses.hottest_c)})
    return why
