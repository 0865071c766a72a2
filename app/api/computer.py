"""The owner's computer: its hardware, settings, programs, diagnostics and journal."""

from __future__ import annotations

import msgspec

from app.api.responses import StageFigures
from app.core.errors import Fact, Reason
from app.core.scheduler.requester import Requester


class Memory(msgspec.Struct, frozen=True):
    """The memory of this computer."""

    total_bytes: int = 0
    free_bytes: int = 0


class Disk(msgspec.Struct, frozen=True):
    """The disk on which models are stored."""

    folder: str = ""
    total_bytes: int = 0
    free_bytes: int = 0


class Device(msgspec.Struct, frozen=True):
    """A processor or an accelerator on which an engine can compute."""

    name: str = ""
    description: str = ""
    kind: str = "other"  # cpu, gpu, igpu, accelerator or other
    api: str = ""  # CUDA, ROCm, Vulkan, Metal or CPU
    free_bytes: int = 0
    total_bytes: int = 0


class Engine(msgspec.Struct, frozen=True):
    """An inference engine's description of itself, or the reason why it cannot be used."""

    name: str = ""
    version: str = ""
    missing: str = ""
    features: list[str] = []
    devices: list[Device] = []
    missing_facts: Reason | None = None


class UnusedGraphics(msgspec.Struct, frozen=True):
    """A graphics card that no engine uses, and what to do about it."""

    reason: str | None = None
    reason_facts: Reason | None = None
    cure: str | None = None
    cure_facts: Reason | None = None


class Card(msgspec.Struct, frozen=True):
    """The graphics card that computes."""

    key: str = ""  # stays the same over restarts
    label: str = ""
    api: str = ""
    is_integrated: bool = False  # uses main memory
    total_bytes: int = 0
    celsius: float | None = None  # None if unknown, like the next
    busy_percent: float | None = None  # by all programs


class CardState(msgspec.Struct, frozen=True):
    """A graphics card that a back end sees. A value that the driver does not report is None."""

    key: str = ""  # stays the same over restarts
    label: str = ""
    api: str = ""
    is_integrated: bool = False
    total_bytes: int = 0
    on: bool = True  # the owner lets it compute
    computes: bool = False
    reason: str | None = None  # why it does not compute
    reason_facts: Reason | None = None
    celsius: float | None = None
    busy_percent: float | None = None
    others_percent: float | None = None  # by other programs


class Cards(msgspec.Struct, frozen=True):
    """The response of the `/cards` routes: the graphics cards, and the owner's limits for all of them."""

    cards: list[CardState] = []
    memory_percent: int = 100  # the most of a card's memory that all models together may use
    card_only: bool = False  # the processor never computes for other machines


class UnusedCard(msgspec.Struct, frozen=True):
    """A graphics card, or an engine pack without one, that does not compute, and why."""

    label: str = ""
    reason: str | None = None
    reason_facts: Reason | None = None


class RefusedFamily(msgspec.Struct, frozen=True):
    """A model family that the graphics card does not compute, so that the processor does."""

    family: str = ""  # architecture and number format
    device: str = ""
    reason: str | None = None
    reason_facts: Reason | None = None


class Computer(msgspec.Struct, frozen=True):
    """The response to `GET /machine`."""

    system: str = ""
    processor: str = ""
    cores: int = 0
    threads: int = 0  # the maximum for one worker
    threads_now: int = 0
    hottest_c: float | None = None
    memory: Memory = Memory()
    disk: Disk = Disk()
    engines: list[Engine] = []
    unused_graphics: UnusedGraphics | None = None  # cards for which no engine pack is installed
    card: Card | None = None
    more_cards: list[Card] = []  # that compute together with it
    unused_cards: list[UnusedCard] = []
    refused_families: list[RefusedFamily] = []


class Game(msgspec.Struct, frozen=True):
    """An installed game."""

    name: str = ""
    program: str = ""


class Programs(msgspec.Struct, frozen=True):
    """The response to `GET /programs`: the running programs and the installed games."""

    programs: list[str] = []
    games: list[Game] = []


class Autostart(msgspec.Struct, frozen=True):
    """The response of the `/autostart` routes: whether Poolhouse starts at sign-in, and where this is recorded."""

    on: bool = False
    where: str = ""


class Interface(msgspec.Struct, frozen=True):
    """A network interface of this computer."""

    name: str = ""
    kind: str = ""
    addresses: list[str] = []
    up: bool = False
    unasked: bool = False  # used without having been chosen
    chosen: bool = False
    bits_per_s: int | None = None


class FolderUse(msgspec.Struct, frozen=True):
    """A folder of Poolhouse, and how much disk space it uses."""

    what: str = ""  # models, stages or logs
    path: str = ""
    bytes: int = 0
    free_bytes: int = 0


class Settings(msgspec.Struct, frozen=True):
    """The response of the `/settings` routes."""

    address: str = ""
    port: int = 0
    port_fixed: bool = False  # set on the command line, so it cannot be changed
    discovery: bool = True
    look_for_updates: bool = False
    share_models: bool = True
    answer_household: bool = True  # other members may ask the models that are loaded here
    ask_household: bool = True  # the models that other hosts have loaded are offered here
    exact: bool = False  # loads use the same processor instructions on all computers, unless told otherwise
    interfaces: list[Interface] = []
    restart: bool = False  # some settings take effect only after a restart
    keys: str = ""  # where secrets are kept
    keys_facts: Reason | None = None
    home: str = ""
    folders: list[FolderUse] = []


class Walls(msgspec.Struct, frozen=True):
    """The response to `GET /walls`: how strictly the worker that reads model files is confined."""

    level: str = ""
    cause: str | None = None
    cause_facts: Reason | None = None
    cure: str | None = None
    cure_facts: Reason | None = None


class Check(msgspec.Struct, frozen=True):
    """The finding of one diagnostic check. `ok` is None for a note, which is not a fault."""

    name: str = ""
    ok: bool | None = None
    cause: str | None = None
    cause_facts: Reason | None = None
    cure: str | None = None
    cure_facts: Reason | None = None
    code: str = ""
    machine: str = ""
    address: str = ""
    tested: bool = True


class Checks(msgspec.Struct, frozen=True):
    """The response to `GET /doctor`."""

    checks: list[Check] = []


class Updates(msgspec.Struct, frozen=True, kw_only=True):
    """The response of the `/updates` routes."""

    place: str | None = None  # where this build looks for updates; None if it cannot
    daily: bool = False
    last_contact: float | None = None
    own: str = ""  # the running version
    version: str | None = None  # the newest one that is known
    newer: bool = False
    date: str = ""
    changes: str = ""  # Markdown
    download_bytes: int = 0
    staged: bool = False  # released gradually, and not for this computer so far
    can_install: bool = False
    cannot: str | None = None  # why not
    cannot_facts: Reason | None = None
    phase: str = ""  # looking, downloading or installing
    done_bytes: int = 0
    total_bytes: int = 0
    ready: str | None = None  # the version that a restart starts
    previous: str | None = None  # the version that going back would start
    warning: str | None = None  # which machines the new version does not understand
    warning_facts: Reason | None = None
    protocols: dict[str, int] = {}  # of the connected machines, by name
    asked_by: str = ""  # the machine whose user asks this one to update
    asked_version: str = ""
    notice: str | None = None  # a version that did not start
    notice_facts: Reason | None = None
    error: str | None = None  # why the last installation failed
    error_facts: Reason | None = None


class AskedMachine(msgspec.Struct, frozen=True):
    """A machine of the household, and its response to the request to update it."""

    name: str = ""
    answer: str = ""  # asked: its owner is; settled: it has this version, or its owner said no; "": it can't be asked


class AskedMachines(msgspec.Struct, frozen=True):
    """The response to `POST /updates/ask`."""

    machines: list[AskedMachine] = []
    version: str = ""


class HistoryKey(msgspec.Struct, frozen=True):
    """The response of the `/history/key` routes: the key for encrypted chats, and where it is stored."""

    key: str | None = None
    where: str = ""
    where_facts: Reason | None = None
    place: str = ""
    place_facts: Reason | None = None


# The journal


class AnswerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The journal entry for a completed answer."""

    number: int = 0
    at: float = 0.0
    seconds: float = 0.0
    model: str = ""
    end: str = ""  # stop, length, full, stopped or failed
    tokens: int = 0
    alone: bool = False  # no other answer was in progress at the same time
    request: str = ""
    whose: Requester | None = None
    prompt_tokens: int | None = None
    reused_tokens: int = 0
    queued_s: float = 0.0
    ttft_s: float | None = None
    decode_tok_s: float | None = None
    forecast_ttft_s: float | None = None
    forecast_tok_s: float | None = None
    stages: list[StageFigures] = []


class EventEntry(msgspec.Struct, frozen=True):
    """The journal entry for an event. `kind` is machine, model, lending or node."""

    number: int = 0
    at: float = 0.0
    code: str = ""
    facts: dict[str, Fact] = {}
    kind: str = ""
    sentence: str = ""


class AnswerInProgress(msgspec.Struct, frozen=True):
    """An answer that is being generated."""

    number: int = 0
    model: str = ""
    request: str = ""
    whose: Requester | None = None
    seconds: float = 0.0
    tokens: int = 0
    tok_s: float | None = None


class LentTotal(msgspec.Struct, frozen=True):
    """The total work that this computer has done for other computers."""

    since: float = 0.0
    seconds: float = 0.0
    rows: int = 0  # computed token positions
    bytes_in: int = 0
    bytes_out: int = 0
    watt_hours: float = 0.0


class Journal(msgspec.Struct, frozen=True):
    """The response to `GET /journal`."""

    last: int = 0
    answers: list[AnswerEntry] = []
    events: list[EventEntry] = []
    now: list[AnswerInProgress] = []
    lent: LentTotal = LentTotal()
