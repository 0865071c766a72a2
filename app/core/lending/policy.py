"""The lending policy: whether this machine lends, and how much, by its owner's rules and its readings. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from app.core.errors import Reason
from app.core.lending.hours import Span, within

RESERVE_BYTES = 1 << 30  # never lent, but kept for the owner's next program; a tenth of a small machine
STEP_BYTES = 64 << 20  # free memory is reported in steps: the others need not hear of every page
SHORT_SHARE = 0.5  # of the reserve: with less free, the owner's programs need what is lent
CRITICAL_SHARE = 0.125  # of the reserve: then no answer is waited for
BATTERY_GAP_PERCENT = 10  # lending resumes this far above the level at which it paused (UX.md TC3)
BATTERY_CRITICAL_PERCENT = 5
GPU_BUSY_PERCENT = 30  # with another program; half of it ends the pause
HOT_CELSIUS = 95  # most processors slow themselves down at 95 to 105
HOT_LEAST, HOT_MOST = 50, 105  # the range an owner may choose from
COOLER_CELSIUS = 15.0  # lending resumes this far below the temperature at which it paused
MAX_THREADS = 1024
MAX_PROGRAMS = 64
LINK_LEAST_MBIT, LINK_MOST_MBIT = 2, 100_000  # with less, bodies that several share are too slow
MAX_PROGRAM_CHARACTERS = 100

# How long no rule must object before lending resumes. Otherwise brief changes would cause layers to be loaded and
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

PROCESSOR = "cpu"  # the device of main memory


@dataclass(frozen=True, slots=True)
class Rules:
    """The owner's choices. The defaults require no choice at all.

    on: whether anything is lent at all.
    memory_bytes: the most that is lent; 0: nothing; None: half of the memory that is free when the node starts.
    devices: names of the devices lent; empty: all.
    idle_s: how long the owner must have been away; 0: lend while somebody is there too.
    hours: when to lend; empty: always.
    battery_percent: on battery, lend only above this level; 0: at any level; 100: only while plugged in.
    programs: executables that pause lending while they run.
    gpu: pause while another program keeps a graphics card busy.
    drain_s: how long a running answer may take to end when a pause begins.
    threads: of the processor, for each run of layers that others load from now on; 0: all.
    hot: pause while the processor is hotter than hot_celsius.
    screen: pause while a program fills the screen: a game, a movie, slides.
    network: pause while this computer is on a VPN or on a metered network.
    link_mbit: the most that Poolhouse sends, and receives, in Mbit/s; 0: no limit.
    limit_bytes: the most that all models may take here, others' and one's own together; 0: all that is free.
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
    """The readings of the machine at one moment.

    now_s: from a monotonic clock. weekday (0 is Monday) and minute: local time.
    idle_s: since the owner's last key or pointer event; None: nobody is signed in, or no source tells.
    programs: those named by the rules that are running. gpu_percent: how busy other programs keep the busiest graphics
    card. hottest_c: the processor's hottest part. full_screen: whether a program fills the screen. network: the kind of
    the default route. None where the system does not tell.
    """

    now_s: float
    weekday: int = 0
    minute: int = 0
    idle_s: float | None = None
    battery: Battery | None = None
    programs: frozenset[str] = frozenset()
    gpu_percent: float | None = None
    hottest_c: float | None = None
    watts: float | None = None  # as far as the system tells; no rule asks for it
    full_screen: bool | None = None
    network: Network | None = None


@dataclass(frozen=True, slots=True)
class LendableMemory:
    """The memory at one moment, in bytes.

    most: the owner's limit for others. promised: to others. unloaded: the part of what is promised that is not yet
    taken from the free memory. own: held by this machine's own models. limit: for those and others together; 0 for
    none.
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
        """Return the bytes that stay with the owner whatever is lent."""
        return min(RESERVE_BYTES, self.total_bytes // 10)

    @property
    def lent_bytes(self) -> int:
        """Return the bytes that others may use in total: never more than they have now plus what is free.

        The owner's models reduce it only if they leave too little free memory, or too little of a limit for all
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
    """Lending is not allowed now. `at_once`: the machine is in need, so running answers are not waited for.

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
    """Decide whether this machine lends now. `before`: the last verdict, None when the rules changed.

    A denial lasts until the reading that caused it is clearly over: the thresholds are apart, and short-lived causes
    must be gone for a while.
    """
    elsewhere = rules.devices and PROCESSOR not in rules.devices
    if not rules.on or rules.memory_bytes == 0 or elsewhere:
        return NothingLent()  # engines compute in main memory only: nothing else can be lent yet
    denied = before if isinstance(before, Denied) else None
    paused_for = denied.why.code if denied else ""
    code = _objection(rules, senses, room, paused_for)
    if code is not None:
        return Denied(Reason(code), senses.now_s, _in_need(senses, room))
    if denied and senses.now_s - denied.objected_s < CALM_SECONDS.get(paused_for, 0.0):
        return replace(denied, at_once=False)
    return Allowed(room.lent_bytes, rules.devices)


def _objection(rules: Rules, senses: Readings, room: LendableMemory, paused_for: str) -> str | None:
    """Return the reason code of the first rule that forbids lending. `paused_for`: the reason of the current pause."""
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
    """Return a program's name for comparison: no folder, no `.exe`, lowercase."""
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
